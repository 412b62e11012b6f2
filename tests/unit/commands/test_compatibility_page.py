"""The compatibility page is the tables', and so is what ``slurmk compatibility --json`` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grammar.options import SUBMISSION
from slurmk.commands.compatibility import FIELDS, entries, main, page, tables


def test_page_is_up_to_date() -> None:
    written = (Path(__file__).parents[3] / "docs" / "compatibility.md").read_text()
    assert written == page(), "run: python -m slurmk.commands.compatibility > docs/compatibility.md"


def test_every_row_of_every_table_is_an_entry(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json"])
    told = [tuple(entry[name] for name in ("command", "kind", "name")) for entry in json.loads(capsys.readouterr().out)]
    assert len(told) == len(set(told))
    for row in SUBMISSION:
        assert {(command, "option", f"--{name}") for command in row.commands for name in row.names} <= set(told)
    for command, options in tables().items():
        assert {(command, "option", f"--{name}") for option in options for name in option.names} <= set(told)
    assert {(fields.command, fields.kind, name) for fields in FIELDS for name in fields.names} <= set(told)


def test_what_is_not_honoured_has_a_reason() -> None:
    assert [entry for entry in entries() if entry.status != "honoured" and not entry.reason] == []
