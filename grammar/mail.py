"""``--mail-type``: which events a job's user is told of by mail."""

from __future__ import annotations

from collections.abc import Iterable

from grammar.errors import GrammarError

EVENTS: tuple[tuple[str, str], ...] = (
    ("ARRAY_TASKS", "ARRAY_TASKS"),
    ("INVALID_DEPEND", "INVALID_DEPENDENCY"),
    ("BEGIN", "BEGIN"),
    ("END", "END"),
    ("FAIL", "FAIL"),
    ("REQUEUE", "REQUEUE"),
    ("STAGE_OUT", "STAGE_OUT"),
    ("TIME_LIMIT_50", "TIME=50%"),
    ("TIME_LIMIT_80", "TIME=80%"),
    ("TIME_LIMIT_90", "TIME=90%"),
    ("TIME_LIMIT", "TIME=100%"),
)
"""The option's word and the REST API's, in the order in which ``scontrol show job`` prints them."""

_REST = dict(EVENTS)
_WORDS = {rest: word for word, rest in EVENTS}
_ALL = ("INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT")


def parse_mail_type(text: str) -> tuple[str, ...]:
    """The REST API's words for ``BEGIN,END``, in printing order; NONE anywhere in it means none. Words that mean nothing are
    passed over beside one that does. Raises GrammarError."""
    found: set[str] = set()
    words = [word.upper() for word in text.split(",")]
    for word in words:
        if word == "ALL":
            found.update(_ALL)
        elif word in _REST:
            found.add(word)
    if not found and "NONE" not in words:
        raise GrammarError("Invalid --mail-type specification")
    return () if "NONE" in words else tuple(rest for word, rest in EVENTS if word in found)


def format_mail_type(events: Iterable[str]) -> str:
    """The inverse: the option's words of the REST API's."""
    given = set(events)
    return ",".join(word for word, rest in EVENTS if rest in given)
