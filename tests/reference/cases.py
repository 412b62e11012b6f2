"""All comparisons: the lists named CASES of the modules ``cases_*`` beside this one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sides import Case

CASES: list[Case] = [
    case for path in sorted(Path(__file__).parent.glob("cases_*.py")) for case in import_module(path.stem).CASES
]
