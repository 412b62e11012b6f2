"""What the elements of an array are told of it: the step is the first that is written, not one of elements named one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.description import array_facts
from slurmk.model.job import Credentials, Job, JobRequest

JOB = Job(8, JobRequest(), Credentials(0, 0, "root", "root"), 1000, array_job_id=7)


@pytest.mark.parametrize(
    ("array", "step", "count"),
    [
        ("3-5:2", 2, 2),
        ("3,5", 1, 2),
        ("1,3,5", 1, 3),
        ("3-9:3%2", 3, 3),
        ("[3-5:2]", 2, 2),
        ("3-4", 1, 2),
        ("3", 1, 1),
        ("1-5:2,7%2", 2, 4),
        ("7,1-5:2", 2, 4),
        ("10-20:5,1-5:2", 5, 6),
        ("1-9:1,3-5:2", 1, 9),
        ("3-3:5,4", 5, 2),
        ("0,5,10", 1, 3),
    ],
)
def test_step_of_an_array(array: str, step: int, count: int) -> None:
    facts = array_facts(replace(JOB, request=JobRequest(array=array), array_task_id=3))
    assert facts is not None
    assert (facts["step"], facts["count"]) == (step, count)
