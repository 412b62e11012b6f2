"""Records: what is dumped is loaded again, also by the next release."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmk.core.events import JobSelection, Kill, KillFlag
from slurmk.model import serial
from slurmk.model.job import (
    Allocation,
    Credentials,
    GresShare,
    Job,
    JobRequest,
    NodeShare,
    Step,
    Usage,
)
from slurmk.model.node import GresCapacity, Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobFlag, JobState, NodeFlag, Reason

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # lone surrogates stand for bytes that are no UTF-8
NUMBERS = st.integers(0, 2**40)
RANGES = st.builds(range, st.integers(0, 50), st.integers(51, 99), st.integers(1, 4))
JOBS = st.builds(
    Job,
    job_id=NUMBERS,
    request=st.from_type(JobRequest),
    credentials=st.builds(Credentials, NUMBERS, NUMBERS, TEXT, TEXT, st.tuples(NUMBERS, NUMBERS)),
    submit_time=NUMBERS,
    state=st.sampled_from(JobState),
    flags=st.builds(lambda one, other: one | other, st.sampled_from(JobFlag), st.sampled_from(JobFlag)),
    reason=st.sampled_from(Reason),
    name=TEXT,
    partitions=st.tuples(TEXT, TEXT),
    array_task_id=st.none() | NUMBERS,
    array_tasks=st.lists(RANGES, max_size=3).map(tuple),
    cancelled_by=st.none() | NUMBERS,
    allocation=st.none()
    | st.builds(
        Allocation,
        TEXT,
        st.lists(
            st.builds(NodeShare, TEXT, NUMBERS, NUMBERS, NUMBERS, st.tuples(st.builds(GresShare, TEXT, TEXT, NUMBERS))),
            max_size=3,
        ).map(tuple),
        st.booleans(),
    ),
    steps=st.lists(
        st.builds(Step, NUMBERS, NUMBERS, TEXT, st.sampled_from(JobState), NUMBERS, usage=st.builds(Usage, user_cpu=NUMBERS)),
        max_size=2,
    ).map(tuple),
    batch=st.booleans(),
)
JOB = Job(
    job_id=12,
    request=JobRequest(name="x", partition="debug", tasks=4, mail_type=("BEGIN", "END"), current_working_directory="/home/x"),
    credentials=Credentials(1, 2, "a", "b", (1, 2)),
    submit_time=1000,
    allocation=Allocation(
        "debug", tuple(NodeShare(f"n{n}", 4, 100, 2, (GresShare("gpu", "a100", 1, (0,)),), (1, 2)) for n in range(4))
    ),
    array_tasks=(range(0, 9, 2),),
    reason=Reason.PRIORITY,
)


@settings(max_examples=150, deadline=None)
@given(JOBS)
def test_a_job_comes_back_through_json(job: Job) -> None:
    assert serial.load(Job, json.loads(json.dumps(serial.dump(job)))) == job


@settings(max_examples=60, deadline=None)
@given(st.from_type(Node) | st.from_type(Partition) | st.from_type(Usage) | st.from_type(Step))
def test_other_values_come_back(value: object) -> None:
    assert serial.load(type(value), json.loads(json.dumps(serial.dump(value)))) == value


def test_mappings_flags_and_nested_events_come_back() -> None:
    site = Site(
        "c", (Node("n1", gres=(GresCapacity("gpu", "a100", 4),), flags=NodeFlag.DRAIN | NodeFlag.CLOUD),), (), licenses={"m": 4}
    )
    assert serial.load(Site, serial.dump(site)) == site
    from slurmk.core.events import Caller

    kill = Kill(1.5, Caller(0, "root", True), (JobSelection(3, (range(1, 4),)),), 9, KillFlag.BATCH | KillFlag.FULL)
    assert serial.load(Kill, json.loads(json.dumps(serial.dump(kill)))) == kill


def test_defaults_are_left_out_and_required_fields_are_not() -> None:
    assert serial.dump(Credentials(0, 0, "", "")) == {"user_id": 0, "group_id": 0, "user_name": "", "group_name": ""}
    assert serial.dump(JobRequest()) == {}
    assert serial.dump(JobRequest(requeue=False)) == {"requeue": False}  # said, though false


@dataclass(frozen=True, slots=True)
class _Old:
    name: str
    gone: int = 3


@dataclass(frozen=True, slots=True)
class _New:
    name: str
    words: Mapping[str, int] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    later: JobState | None = None
    inner: _New | None = None


def test_the_next_release_reads_the_records_of_this_one() -> None:
    assert serial.load(_New, serial.dump(_Old("x", 7))) == _New("x")
    full = _New("x", {"a": 1}, (2, "b"), JobState.FAILED, _New("y"))
    assert serial.load(_New, json.loads(json.dumps(serial.dump(full)))) == full
    assert serial.load(_Old, serial.dump(full)) == _Old("x")


@pytest.mark.parametrize(
    "data", [None, [], 3, {}, {"name": 1, "later": 99}, {"name": "x", "pair": 3}, {"name": "x", "inner": {"words": {}}}]
)
def test_what_is_no_record_is_one_clear_error(data: object) -> None:
    with pytest.raises(serial.SerialError):
        serial.load(_New, data)


def test_types_without_a_form_are_refused_when_first_used() -> None:
    @dataclass(frozen=True)
    class Odd:
        data: bytes

    with pytest.raises(TypeError):
        serial.dump(Odd(b""))
    with pytest.raises(TypeError):
        serial.dump(3)


def test_dumping_a_job_is_quick() -> None:
    jobs = [replace(JOB, job_id=number) for number in range(500)]
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for job in jobs:
            json.dumps(serial.dump(job))
        times.append((time.perf_counter() - start) / len(jobs))
    assert min(times) < 120e-6  # 28 µs on a quiet machine; the budget is 60
