"""All comparisons: the lists named CASES of the modules ``cases_*`` beside this one."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from sides import Case

CHOSEN = os.environ.get("SLURMK_COMPARE", "").split()
"""Only these modules, by what follows ``cases_`` in their names; all where none is named."""

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
    if not CHOSEN or path.stem.removeprefix("cases_") in CHOSEN
    for case in import_module(path.stem).CASES
]
