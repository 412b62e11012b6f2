"""scrontab's tables on disk: they come back as they were; a broken file is kept, and no job is ended for it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk.core.crontabs import Crontabs, Entry, Table, restored
from slurmk.daemon.crontabs import CrontabKeeper


def test_tables_come_back(tmp_path: Path) -> None:
    path = tmp_path / "crontabs.json"
    keeper = CrontabKeeper(path)
    assert keeper.crontabs.tables == {}
    keeper.crontabs.tables[1000] = Table("@daily ä\udcff\n", (Entry(7, 0, 0),))
    keeper.save()
    assert path.stat().st_mode & 0o777 == 0o600
    again = CrontabKeeper(path)
    assert again.crontabs == keeper.crontabs
    assert not again.lost
    assert again.crontabs.job_ids() == {7}


@pytest.mark.parametrize("content", ["[", "{}x", '[{"user": 1}]', '[{"user": "a", "text": "", "entries": []}]', "[1]"])
def test_a_broken_file_is_kept(tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "crontabs.json"
    path.write_text(content)
    keeper = CrontabKeeper(path)
    assert keeper.lost
    assert keeper.crontabs.tables == {}
    assert (tmp_path / "crontabs.broken").read_text() == content
    assert [level for _, level, _ in caplog.record_tuples] == [logging.ERROR]


ENTRIES = st.lists(st.builds(Entry, st.integers(1, 99), st.integers(0, 9), st.integers(0, 9)), max_size=3).map(tuple)


@given(st.dictionaries(st.integers(0, 2**32), st.builds(Table, st.text(), ENTRIES), max_size=4))
def test_what_is_saved_is_restored(tables: dict[int, Table]) -> None:
    crontabs = Crontabs(tables)
    assert restored(crontabs.saved()) == crontabs
