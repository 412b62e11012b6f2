"""The file of triggers: what is in it comes back, none is no fault, a broken one is told."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import pytest

from slurmk.daemon.triggers import TriggerKeeper


def keeper(path: Path) -> TriggerKeeper:
    return TriggerKeeper(path, cast(Any, None), lambda: 0.0)


def test_no_file_is_no_fault(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not keeper(tmp_path / "triggers.json").triggers.rows
    assert caplog.record_tuples == []


def test_a_broken_file_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "triggers.json"
    path.write_text("[")
    assert not keeper(path).triggers.rows
    [(_, level, text)] = caplog.record_tuples
    assert level == logging.ERROR
    assert str(path) in text
