"""What sacct prints in a column that is too narrow, as a real Slurm does."""

from __future__ import annotations

import pytest

from slurmk.commands.sacct_fields import columns_of


@pytest.mark.parametrize(
    ("field", "text", "cell"),
    [
        ("state%3", "COMPLETED", "CO+"),
        ("state%-12", "COMPLETED", "COMPLETED   "),
        ("state%0", "COMPLETED", ""),
        ("jobid%2", "403.batch", "4+"),
        ("start%10", "2026-11-30T13:27:28", "##########"),
        ("end%-18", "2026-11-30T13:27:28", "##################"),
        ("start%19", "2026-11-30T13:27:28", "2026-11-30T13:27:28"),
        ("end%4", "Unknown", "Unkn"),
        ("start%3", "None", "Non"),
        ("elapsed%1", "00:00:05", "00:00:05"),
        ("alloccpus%1", "32", "32"),
        ("alloccpus%4", "32", "  32"),
        ("timelimitraw%1", "100", "+"),
        ("sluid%3", "sB59M8PAT7JE00", "sB59M8PAT7JE00"),
    ],
)
def test_a_narrow_column(field: str, text: str, cell: str) -> None:
    (column,) = columns_of(field)
    assert column.cell(text) == cell
