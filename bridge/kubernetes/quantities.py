"""Kubernetes' quantities (``500m``, ``4Gi``, ``1e3``) as exact numbers, and back.

A quantity is a decimal number with a decimal (n u m k M G T P E) or binary (Ki Mi Gi Ti Pi Ei) suffix, or an exponent
(apimachinery, resource.Quantity). The API server gives back what was written, so every form turns up.
"""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?\Z", re.ASCII
)
_SUFFIXES = {
    **{suffix: Fraction(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}

MEBIBYTE = 1 << 20


class QuantityError(ValueError):
    """Text that is no quantity."""


def parse_quantity(text: object) -> Fraction:
    """The number that a quantity means; JSON numbers are taken as they are. Raises QuantityError."""
    match = _QUANTITY.match(str(text).strip())
    if match is None:
        raise QuantityError(f"not a quantity: {text}")
    number, exponent, suffix = match.groups()
    value = Fraction(number)
    if exponent:
        value *= Fraction(10) ** int(exponent[1:])
    return value * _SUFFIXES[suffix] if suffix else value


def parse_milli(text: object) -> int:
    """Thousandths, rounded up: what a CPU request counts in. Raises QuantityError."""
    return _ceiling(parse_quantity(text) * 1000)


def format_milli(milli: int) -> str:
    """``1500`` thousandths as ``1500m``, whole ones as ``2``."""
    whole, rest = divmod(milli, 1000)
    return f"{milli}m" if rest else str(whole)


def _ceiling(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
