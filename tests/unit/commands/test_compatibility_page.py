"""The compatibility page is the table's."""

from __future__ import annotations

from pathlib import Path

from slurmk.commands.compatibility import page


def test_page_is_up_to_date() -> None:
    written = (Path(__file__).parents[3] / "docs" / "compatibility.md").read_text()
    assert written == page(), "run: python -m slurmk.commands.compatibility > docs/compatibility.md"
