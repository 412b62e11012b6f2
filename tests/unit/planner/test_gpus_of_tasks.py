"""The GPUs that a job needs for its tasks when it says how many tasks one has (--ntasks-per-gpu)."""

from __future__ import annotations

import pytest

from slurmk.model.job import JobRequest
from slurmk.model.requested import gres, gres_per_job


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (JobRequest(tasks=4, ntasks_per_tres=2), "gres/gpu:2"),
        (JobRequest(tasks=5, ntasks_per_tres=2), "gres/gpu:3"),
        (JobRequest(tasks=4, ntasks_per_tres=2, tres_per_job="gres/gpu:4"), "gres/gpu:4"),
        (JobRequest(tasks=4, ntasks_per_tres=2, tres_per_node="gres/gpu:1"), None),
        (JobRequest(tasks=4), None),
        (JobRequest(ntasks_per_tres=2), None),
    ],
)
def test_gpus_of_a_job(request_: JobRequest, expected: str | None) -> None:
    assert gres_per_job(request_) == expected


def test_they_are_counted() -> None:
    assert gres(JobRequest(tasks=4, ntasks_per_tres=2)) == (("gpu", 2),)
