"""The cluster that each story starts with."""

from __future__ import annotations

import pytest
from core_story import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()
