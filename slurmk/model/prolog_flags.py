"""PrologFlags of slurm.conf: its words, what they bring with them, and which exclude each other (slurm.conf(5))."""

from __future__ import annotations

from collections.abc import Iterable

IMPLIED: dict[str, tuple[str, ...]] = {
    "Alloc": (),
    "Contain": ("Alloc",),
    "DeferBatch": ("Alloc",),
    "ForceRequeueOnFail": ("Alloc",),
    "NoHold": ("Alloc",),
    "RunInJob": ("Alloc", "Contain"),
    "Serial": (),
    "X11": ("Alloc", "Contain"),
}
"""Each word in the order in which they are shown, and those that it stands for as well."""

NOT_TOGETHER = frozenset({"Contain", "X11"})
"""With these NoHold is refused."""


class PrologFlagsError(ValueError):
    """The words say nothing that could be done; the text says why."""


def parse_prolog_flags(words: Iterable[str]) -> tuple[str, ...]:
    """All flags that ``words`` set, as they are shown. Raises PrologFlagsError."""
    known = {name.lower(): name for name in IMPLIED}
    found: set[str] = set()
    for word in filter(None, (word.strip().lower() for word in words)):
        if word not in known:
            raise PrologFlagsError(f"Invalid PrologFlag: {word}")
        found.update((known[word], *IMPLIED[known[word]]))
    if "NoHold" in found and found & NOT_TOGETHER:
        raise PrologFlagsError("PrologFlags invalid combination: NoHold cannot be combined with Contain and/or X11")
    return tuple(name for name in IMPLIED if name in found)
