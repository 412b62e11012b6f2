"""The state directory, which root's programs run from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurmk.daemon.__main__ import prepare


def test_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    with pytest.raises(PermissionError, match="belongs to another user"):
        prepare(theirs)
    assert not (theirs / "state").exists()


def test_own_directory_is_made_with_a_closed_database(tmp_path: Path) -> None:
    prepare(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "state").stat().st_mode & 0o777 == 0o700
