"""The value languages that have a Lark grammar: ``NAME.lark`` beside this file.

A grammar is read when its language is first needed, then kept. All are LALR, so a text takes time in proportion to its
length, and their transformers are called while parsing, so no depth of nesting can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from grammar.errors import GrammarError

LONGEST = 65536
"""Characters of a value that are looked at; longer ones are refused."""


@cache
def _parser(language: str, transformer: Callable[[], Any]) -> Any:
    from lark import Lark

    text = (Path(__file__).parent / f"{language}.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", transformer=transformer())


def parse_with(language: str, transformer: Callable[[], Any], text: str, message: str) -> Any:
    """What the transformer makes of ``text``. Raises GrammarError with ``message`` and the position."""
    from lark.exceptions import LarkError

    if len(text) > LONGEST:
        raise GrammarError(message, LONGEST)
    try:
        return _parser(language, transformer).parse(text)
    except LarkError as error:
        position = getattr(error, "pos_in_stream", None)
        raise GrammarError(message, position if isinstance(position, int) else None) from None
