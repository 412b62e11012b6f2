"""Which CPUs tasks get, and what tells it: as the reference was seen to do it with task/affinity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slurmk.stepd import binding
from slurmk.stepd.binding import Machine, Unbindable, bind, cpu_wish, mask, on_node, read, variables

TWO_SOCKETS = Machine({cpu: (cpu % 8 // 4, cpu % 4, cpu % 8 // 4) for cpu in range(16)}, range(16))
"""Two sockets of four cores of two threads; the threads of core 0 are CPUs 0 and 8, as on most machines."""

SMALL = Machine({0: (0, 0, 0), 1: (0, 1, 0)}, (0, 1))


def masks(text: str, machine: Machine, cpus: Any, tasks: int, **asked: Any) -> list[str]:
    found = bind(read(text), machine, {"cpus": list(cpus), "tasks": tasks, **asked})
    return [mask(cpus or ()) for cpus in found.masks]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, {}),
        ({"cpu_bind": "q"}, {}),
        ({"cpu_bind": "rank"}, {}),
        ({"cpu_bind": "v"}, {"": "verbose", "_LIST": "", "_TYPE": "", "_VERBOSE": "verbose"}),
        ({"cpu_bind": "threads,cores"}, {"": "quiet,cores", "_LIST": "", "_TYPE": "cores", "_VERBOSE": "quiet"}),
        (
            {"cpu_bind": "mask_cpu:0x3,5*2"},
            {"": "quiet,mask_cpu:3,5,5", "_LIST": "3,5,5", "_TYPE": "mask_cpu:", "_VERBOSE": "quiet"},
        ),
        (
            {"cpu_bind": "map_cpu:0,1,v"},
            {"": "verbose,map_cpu:0,1", "_LIST": "0,1", "_TYPE": "map_cpu:", "_VERBOSE": "verbose"},
        ),
        ({"cpu_bind": "one_thread"}, {"": "quiet", "_LIST": "", "_TYPE": "", "_VERBOSE": "quiet"}),
        ({"hint": "nomultithread"}, {"": "quiet,threads", "_LIST": "", "_TYPE": "threads", "_VERBOSE": "quiet"}),
        ({"tasks_per_core": 1}, {"": "quiet,cores", "_LIST": "", "_TYPE": "cores", "_VERBOSE": "quiet"}),
        ({"tasks_per_socket": 2}, {"": "quiet,sockets", "_LIST": "", "_TYPE": "sockets", "_VERBOSE": "quiet"}),
    ],
)
def test_variables_of_what_was_asked_for(request_: dict[str, Any], expected: dict[str, str]) -> None:
    assert variables(request_) == {f"SLURM_CPU_BIND{name}": value for name, value in expected.items()}


def test_variables_of_memory() -> None:
    assert variables({"mem_bind": "prefer,local"}) == {
        "SLURM_MEM_BIND": "quiet,prefer,local",
        "SLURM_MEM_BIND_LIST": "",
        "SLURM_MEM_BIND_PREFER": "prefer",
        "SLURM_MEM_BIND_TYPE": "local",
        "SLURM_MEM_BIND_VERBOSE": "quiet",
    }


@pytest.mark.parametrize(
    ("text", "cpus", "tasks", "asked", "expected"),
    [
        ("", range(2), 1, {}, ["0x101"]),  # one core: its two threads
        ("", range(2), 2, {}, ["0x1", "0x100"]),
        ("", range(4), 3, {}, ["0x303"] * 3),  # nothing of which there are three
        ("", range(16), 2, {}, ["0xF0F", "0xF0F0"]),
        ("", range(16), 8, {"each": 2}, ["0x101", "0x1010"]),
        ("cores", range(16), 2, {}, ["0x101", "0x1010"]),
        ("cores", range(16), 2, {"distribution": "block:block"}, ["0x101", "0x101"]),
        ("threads", range(16), 2, {"distribution": "block:block", "threads_per_core": 1}, ["0x1", "0x2"]),
        ("threads", range(16), 1, {"each": 2, "distribution": "block:fcyclic"}, ["0x11"]),
        ("threads", range(16), 1, {"each": 2}, ["0x101"]),
        ("sockets", range(16), 3, {}, ["0xF0F", "0xF0F0", "0xF0F"]),
        ("ldoms", range(4), 2, {}, ["0x303", "0x303"]),
        ("map_cpu:8,1", range(16), 3, {}, ["0x100", "0x2", "0x100"]),
        ("mask_cpu:f0", range(16), 1, {}, ["0xF0"]),
        ("rank_ldom", range(2), 2, {}, ["0xF0F", "0xF0F0"]),
        ("mask_ldom:3", range(2), 1, {}, ["0xFFFF"]),
        ("none", range(2), 1, {}, ["0x0"]),
    ],
)
def test_masks(text: str, cpus: range, tasks: int, asked: dict[str, Any], expected: list[str]) -> None:
    assert masks(text, TWO_SOCKETS, cpus, tasks, **asked)[: len(expected)] == expected


def test_a_node_bigger_than_the_machine_shares_its_cpus() -> None:
    assert masks("", SMALL, range(8), 4) == ["0x3"] * 4
    assert masks("cores", SMALL, range(8), 4) == ["0x1", "0x2", "0x1", "0x2"]
    assert SMALL.cpus([6, 7]) == [0, 1]


def test_a_pod_that_may_use_few_cpus() -> None:
    pod = Machine(TWO_SOCKETS.places, (2, 10))
    assert masks("", pod, range(2), 2) == ["0x4", "0x400"]


@pytest.mark.parametrize("text", ["map_cpu:1", "mask_cpu:0x3"])
def test_cpus_that_are_not_the_steps_are_refused(text: str) -> None:
    with pytest.raises(Unbindable) as caught:
        masks(text, SMALL, range(1), 1)
    assert caught.value.allocated == "0x1"


@pytest.mark.parametrize(
    ("parameters", "request_", "expected"),
    [
        ({}, {"cpu_bind": "cores"}, None),
        ({"TaskPlugin": "task/affinity"}, {}, "quiet"),
        ({"TaskPlugin": "task/cgroup,task/affinity"}, {"cpu_bind": "v,cores"}, "verbose,cores"),
        ({"TaskPlugin": "task/affinity", "TaskPluginParam": "none"}, {}, None),
        ({"TaskPlugin": "task/affinity", "TaskPluginParam": "none"}, {"cpu_bind": "v"}, "verbose,none"),
        ({"TaskPlugin": "task/affinity", "TaskPluginParam": "none"}, {"hint": "nomultithread"}, "quiet,threads"),
        ({"TaskPlugin": "task/affinity", "TaskPluginParam": "Sockets,Verbose"}, {}, "verbose,sockets"),
    ],
)
def test_what_the_site_wants(parameters: dict[str, str], request_: dict[str, Any], expected: str | None) -> None:
    told = on_node({"parameters": parameters}, request_, [0], 1, "block")
    assert (told and told["wish"]) == expected


def test_lines() -> None:
    found = bind(read("verbose"), TWO_SOCKETS, {"cpus": range(16), "tasks": 2})
    line = binding.line(found, "n1", 5, 1, 42, TWO_SOCKETS)
    assert line == b"cpu-bind=MASK - n1, task  5  1 [42]: mask 0xf0f0 set\n"
    found = bind(read("v,none"), SMALL, {"cpus": [0], "tasks": 1})
    assert binding.line(found, "n1", 0, 0, 42, SMALL) == b"cpu-bind=NONE - n1, task  0  0 [42]: mask 0x3\n"


@given(
    text=some.sampled_from(["", "threads", "cores", "sockets", "ldoms", "none"]),
    first=some.integers(0, 40),
    count=some.integers(1, 20),
    tasks=some.integers(1, 20),
    each=some.integers(1, 5),
    distribution=some.sampled_from(["", "block", "block:block", "cyclic:cyclic", "block:fcyclic", "plane"]),
)
def test_no_task_gets_cpus_that_the_step_does_not_have(
    text: str, first: int, count: int, tasks: int, each: int, distribution: str
) -> None:
    cpus = list(range(first, first + count))
    for machine in (TWO_SOCKETS, SMALL):
        found = bind(read(text), machine, {"cpus": cpus, "tasks": tasks, "each": each, "distribution": distribution})
        assert len(found.masks) == tasks
        for own in found.masks:
            assert own is None or (own and set(own) <= set(machine.cpus(cpus)))


@given(some.text(alphabet="vq,:*x0123456789abcdefmask_cpunone", max_size=30))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(read(text).variables("X")["X"], str)
    assert cpu_wish({"cpu_bind": text}) is None or text
