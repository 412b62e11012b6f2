"""Clusters for the tests of the commands: one controller for each worker, used by all of its tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from embedded import SITE, Cluster, end_cluster, make_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster of the site in ``tests/e2e/site``: nodes n[1-8], partitions debug, gpu and cpu."""
    made = make_cluster("--conf", str(SITE))
    yield made
    end_cluster(made)


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A cluster that the test may hurt."""
    made = make_cluster("--conf", str(SITE))
    yield made
    end_cluster(made)


@pytest.fixture
def other_user() -> str:
    """A user who is neither root nor the caller."""
    if os.geteuid() != 0:
        pytest.skip("needs root to act as another user")
    return "nobody"
