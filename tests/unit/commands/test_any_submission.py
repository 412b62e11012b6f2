"""Whatever a script or a command line holds, sbatch, srun and salloc accept it or refuse it with a message: no exception
reaches the daemon, and nobody waits for an answer."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from command_fakes import ROOT, FakeController, FakeOutput
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grammar.arguments import Argument
from grammar.options import COMMANDS, options_of, variables_of
from slurmk.commands.call import Call, Unreadable
from slurmk.commands.dispatch import dispatch
from slurmk.model.job import Job

WAITS = frozenset(("wait", "hold", "begin", "dependency", "deadline", "test-only"))
"""Options with which a command may rightly take its time, or that this controller does not answer."""

PIECES = st.sampled_from(
    "1 2 0 -1 4K 1G : = , % @ + * & | ( ) [ ] { } ~ gpu a100 n1 n[1-2] n[ gres/gpu cpu= mem afterok singleton now INFINITE "  # noqa: SIM905
    "99999999999 2-1 1-2:3 0x1 block plane ALL NONE ' \" \\ # $x `x` %j %N ..".split()
)
VALUES = st.lists(PIECES | st.text(max_size=3), max_size=5).map("".join)
ENCODINGS = st.binary(max_size=60)


class Controller(FakeController):
    def access(self, job: Job) -> dict[str, str]:
        return {"SLURMK_SRUN": "/stepd srun", "SLURMK_ADDRESS": "x", "SLURMK_STEP_MANAGER": "", "SLURMK_JOB_SECRET": ""}


class Caller(FakeOutput):
    script: bytes = b""

    async def read(self, path: str, limit: int) -> bytes:
        if path == "s.sh":
            return self.script[:limit]
        raise Unreadable(2, os.strerror(2))


def words_of(command: str) -> st.SearchStrategy[list[str]]:
    rows = [row for row in options_of(command) if row.name not in WAITS]
    flags = st.sampled_from([f"--{name}" for row in rows for name in row.names])
    shorts = st.sampled_from([f"-{row.short}" for row in rows if row.short])
    with_value = st.builds(lambda flag, value: [f"{flag}={value}"], flags, VALUES)
    apart = st.builds(lambda flag, value: [flag, value], flags | shorts, VALUES)
    together = st.builds(lambda flag, value: [f"{flag}{value}"], shorts, VALUES)
    return st.lists(with_value | apart | together | VALUES.map(lambda value: [value]), max_size=5).map(
        lambda parts: [word for part in parts for word in part]
    )


def environment_of(command: str) -> st.SearchStrategy[dict[str, str]]:
    known = [name for name, row in variables_of(command).items() if row.name not in WAITS]
    return st.dictionaries(st.sampled_from(known), VALUES, max_size=2)


def answer(command: str, words: list[str], environment: dict[str, str], script: bytes) -> None:
    controller, output = Controller(), Caller()
    output.script = script
    call = Call(command, words, "/w", environment, ROOT, 0, host="h")
    try:
        code: Any = asyncio.run(asyncio.wait_for(dispatch(call, controller, output), 20))
    except TimeoutError:
        if command == "sbatch" or not any(job.pending for job in controller.machine.jobs.values()):
            raise
        return  # srun and salloc wait for what is not free now
    said = "".join(output.out) + "".join(output.err)
    assert isinstance(code, int)
    assert controller.machine.jobs or said or code == 0
    assert "Traceback" not in said
    if code and command == "sbatch":
        assert not controller.machine.jobs, "refused, and yet submitted"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_command_line_of_sbatch(data: st.DataObject) -> None:
    words, environment = data.draw(words_of("sbatch")), data.draw(environment_of("sbatch"))
    answer("sbatch", [*words, "--wrap=true"], environment, b"")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    lines=st.lists(words_of("sbatch").map(" ".join) | VALUES, max_size=4),
    tail=ENCODINGS,
    mark=st.sampled_from(["SBATCH", "PBS", "BSUB"]),
)
def test_any_script(lines: list[str], tail: bytes, mark: str) -> None:
    head = "".join(f"#{mark} {line}\n" for line in lines).encode("utf-8", "surrogateescape")
    answer("sbatch", ["s.sh"], {}, b"#!/bin/sh\n" + head + b"#SBATCH " + tail + b"\n")


@settings(max_examples=100, deadline=None)
@given(script=ENCODINGS)
def test_any_bytes(script: bytes) -> None:
    answer("sbatch", ["s.sh"], {}, script)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"sbatch"}))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_command_line_of_the_others(command: str, data: st.DataObject) -> None:
    words, environment = data.draw(words_of(command)), data.draw(environment_of(command))
    answer(command, ["--immediate", *words, "true"], environment, b"")


def test_what_is_typed_covers_every_kind_of_option() -> None:
    arguments = {row.argument for command in COMMANDS for row in options_of(command)}
    assert arguments == set(Argument)
