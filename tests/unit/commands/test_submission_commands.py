"""sbatch and srun with the real machine: answers, files, environments, waiting, and the step that srun describes."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import pytest
from command_fakes import ALICE, ROOT, FakeController, FakeOutput, reference_site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.launcher import JobFiles
from slurmk.commands import sbatch, srun
from slurmk.commands.call import Call, Unreadable
from slurmk.commands.submission import exported, split_export, unclosed_export, wants_login
from slurmk.core.events import Caller, Event, Submit
from slurmk.model.job import Job
from slurmk.model.step import StepRequest

SCRIPT = b"#!/bin/sh\n#SBATCH -n 2\ntrue\n"
TOO_LONG = "Pathname of a file, directory or other parameter too long"
WORDS = st.text(max_size=10) | st.sampled_from(
    ["-n", "2", "--mem", "1G", ":", "-N", "-w", "n1", "s", "true", "-r", "--pty", "--wrap=x", "--hold", "-a", "1-3"]
)
VARIABLES = st.sampled_from(["SBATCH_TIMELIMIT", "SBATCH_GRES", "SBATCH_EXPORT", "SLURM_EXIT_ERROR"])


class Controller(FakeController):
    """Keeps the files of submissions, plans for --test-only, and can end jobs while somebody waits."""

    def __init__(self, **site: Any) -> None:
        super().__init__(reference_site(first_job_id=1000, **site))
        self.files: list[JobFiles] = []
        self.exit_code = 0

    async def apply(self, event: Event, files: Any = ()) -> Any:
        self.files += files
        return await super().apply(event, files)

    async def plan_for(self, event: Event) -> object:
        from slurmk.planner.plan import will_run

        assert isinstance(event, Submit)
        tried = self.machine.trial(event)
        return will_run(*tried) if isinstance(tried, tuple) else tried

    async def job_changed(self, job_id: int) -> Job | None:
        await asyncio.sleep(0)
        self.start_all()
        for job in list(self.machine.jobs.values()):
            if job.batch and job.allocation is not None and not job.state.finished:
                self.end(job.job_id, self.exit_code)
        return self.machine.jobs.get(job_id)

    def access(self, job: Job) -> Mapping[str, str]:
        return {"SLURMK_SRUN": "/usr/bin/python3 '/d d/stepd.pyz' srun", "SLURMK_ADDRESS": f"unix:{job.job_id}"}


class Files(FakeOutput):
    """A caller with these files."""

    def __init__(self, stdin: bytes = b"", **files: bytes) -> None:
        super().__init__(stdin)
        self.files = {name.replace("__", "/"): content for name, content in files.items()}

    async def read(self, path: str, limit: int) -> bytes:
        if path == "/dir":
            raise Unreadable(21, os.strerror(21))
        if path not in self.files:
            raise Unreadable(2, os.strerror(2))
        return self.files[path][:limit]


def call(
    module: Any,
    *words: str,
    controller: Controller | None = None,
    output: Files | None = None,
    environment: Mapping[str, str] | None = None,
    caller: Caller = ROOT,
) -> tuple[int, str, str, Controller, Files]:
    controller = controller or Controller()
    output = output or Files(s=SCRIPT)
    request = Call(module.NAME, words, "/w", environment or {}, caller, 0, host="login")
    code = asyncio.run(module.run(request, controller, output))
    return code, "".join(output.out), "".join(output.err), controller, output


# ------------------------------------------------------------------------------------------------- sbatch


def test_a_script_its_arguments_and_environment_go_with_the_job() -> None:
    environment = {"A": "1", "SLURM_CPUS_PER_TASK": "9"}
    code, out, err, controller, _ = call(sbatch, "-c2", "s", "-n", "9", "a b", environment=environment)
    assert (code, out, err) == (0, "Submitted batch job 1000\n", "")
    job, files = controller.machine.jobs[1000], controller.files[0]
    assert (job.name, job.command, job.submit_line) == ("s", "/w/s", "sbatch -c2 s -n 9 a b")
    assert job.request.tasks == 2
    assert (files.script, files.arguments) == (SCRIPT, (b"-n", b"9", b"a b"))
    assert files.environment[b"A"] == b"1"
    assert files.environment[b"SLURM_CPUS_PER_TASK"] == b"2"
    assert files.environment[b"SLURM_NTASKS"] == b"2"
    assert files.environment[b"SLURM_SUBMIT_DIR"] == b"/w"
    assert files.environment[b"SLURM_JOB_NAME"] == b"s"


@pytest.mark.parametrize(
    ("words", "threads"),
    [
        ((), 1),
        (("--ntasks-per-socket=2",), 1),
        (("--sockets-per-node=2",), None),
        (("--cores-per-socket=2",), None),
        (("--ntasks-per-core=1",), None),
        (("--threads-per-core=2",), 2),
    ],
)
def test_a_hint_gives_way_to_a_layout_in_numbers(words: tuple[str, ...], threads: int | None) -> None:
    _, _, _, controller, _ = call(sbatch, "--hint=nomultithread", "-H", *words, "--wrap=true")
    assert controller.machine.jobs[1000].request.threads_per_core == threads


@pytest.mark.parametrize(("mode", "told"), [("truncate", b"t"), ("append", b"a")])
def test_a_script_is_told_of_its_dependency_and_open_mode(mode: str, told: bytes) -> None:
    _, _, err, controller, _ = call(sbatch, f"--open-mode={mode}", "-d", "singleton", "--wrap=true")
    assert controller.files[0].environment[b"SLURM_OPEN_MODE"] == told, err
    assert controller.files[0].environment[b"SLURM_JOB_DEPENDENCY"] == b"singleton"


def test_a_script_from_standard_input() -> None:
    _, out, _, controller, _ = call(sbatch, output=Files(SCRIPT))
    assert out == "Submitted batch job 1000\n"
    assert controller.machine.jobs[1000].name == "sbatch"


def test_a_script_on_the_path() -> None:
    output = Files(**{"/bin/inpath": SCRIPT})
    _, _, _, controller, _ = call(sbatch, "inpath", output=output, environment={"PATH": "/sbin:/bin"})
    assert controller.machine.jobs[1000].command == "/bin/inpath"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nope",), "Unable to open file nope"),
        (("/dir",), "Batch script is empty!"),
        (("--wrap=true", "s"), "Script arguments not permitted with --wrap option"),
        (("big",), "Batch job submission failed: Pathname of a file, directory or other parameter too long"),
        (
            ("--comment", "x" * 3000, "s"),
            "Batch job submission failed: Pathname of a file, directory or other parameter too long",
        ),
    ],
)
def test_what_is_not_submitted(words: tuple[str, ...], error: str) -> None:
    output = Files(s=SCRIPT, big=SCRIPT + b"#" * (4 << 20))
    code, out, err, controller, _ = call(sbatch, *words, output=output)
    assert (code, out, err) == (1, "", f"sbatch: error: {error}\n")
    assert not controller.machine.jobs


@pytest.mark.parametrize(
    ("directives", "script", "submitted"),
    [
        (b"#BB one\n#DW two", SCRIPT, b"#!/bin/sh\n#BB one\n#DW two\n#SBATCH -n 2\ntrue\n"),
        (b"exit 3\n", b"#!/bin/sh", b"#!/bin/sh\nexit 3\n"),
        (b"#SBATCH -n 3\n", SCRIPT, b"#!/bin/sh\n#SBATCH -n 3\n#SBATCH -n 2\ntrue\n"),
    ],
)
def test_the_file_of_bbf_becomes_part_of_the_script(directives: bytes, script: bytes, submitted: bytes) -> None:
    code, _, err, controller, _ = call(sbatch, "--bbf=bb", "s", output=Files(s=script, bb=directives))
    assert (code, err) == (0, "")
    assert controller.files[0].script == submitted
    assert controller.machine.jobs[1000].request.tasks == (2 if b"-n 2" in script else None)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--bbf=nope",), "Invalid --bbf specification"),
        (("--bbf=empty",), "Invalid --bbf specification"),
        (("--bbf=",), "Invalid --bbf specification"),
        (("--bb=x", "--bbf=bb"), "Cannot specify both --burst-buffer and --bbf"),
    ],
)
def test_files_of_bbf_that_mean_nothing(words: tuple[str, ...], error: str) -> None:
    for command, operand in ((sbatch, "s"), (srun, "true")):
        name = command.NAME
        code, out, err, controller, _ = call(command, *words, operand, output=Files(s=SCRIPT, bb=b"#BB\n", empty=b""))
        assert (code, out, err) == (1, "", f"{name}: error: {error}\n")
        assert not controller.machine.jobs


def test_the_file_of_bbf_is_shown_of_an_allocation() -> None:
    _, _, _, controller, _ = call(srun, "--bbf=bb", "true", output=Files(bb=b"#BB one\n"))
    assert controller.machine.jobs[1000].request.burst_buffer == "#BB one\n"


def test_only_root_submits_for_others() -> None:
    code, _, err, _, _ = call(sbatch, "--uid=root", "--wrap=true", caller=ALICE)
    assert (code, err) == (255, "sbatch: error: --uid only permitted by root user\n")


def test_the_cluster_may_be_named() -> None:
    assert call(sbatch, "-M", "reference", "--wrap=true")[1] == "Submitted batch job 1000 on cluster reference\n"
    assert call(sbatch, "-M", "reference", "--parsable", "--wrap=true")[1] == "1000;reference\n"


def test_a_het_job_is_one_submission() -> None:
    words = ("-n1", "-J", "nm", "-t5", "-p", "gpu", ":", "-n2", "--wrap=true")
    _, out, _, controller, _ = call(sbatch, *words)
    assert out == "Submitted batch job 1000\n"
    first, second = (controller.machine.jobs[job_id] for job_id in (1000, 1001))
    assert (second.het_job_id, second.name, second.time_limit) == (1000, "nm", 5)
    assert (first.partitions, second.partitions) == (("gpu",), ("debug",))


@pytest.mark.parametrize(
    ("typed", "name", "shown"),
    [
        ("-t3", "time", "00:03:00"),
        ("-t1-2:03:04", "time", "1-02:04:00"),
        ("-t0", "time", "UNLIMITED"),
        ("--time-min=1:30", "time-min", "00:02:00"),
        ("--mem=1024K", "mem", "1"),
        ("--mem=2048", "mem", "2G"),
        ("--mem=1500", "mem", "1500"),
        ("--mem=0", "mem", "0?"),
        ("--mem-per-cpu=3G", "mem-per-cpu", "3G"),
        ("--tmp=1T", "tmp", "1T"),
        ("-N2-2", "nodes", "2"),
        ("-N1,3", "nodes", "1-3"),
        ("-N0-3", "nodes", "0-3"),
        ("--signal=15", "signal", "TERM"),
        ("--signal=B:10@60", "signal", "B:USR1"),
        ("--signal=BR:USR2@100", "signal", "RB:USR2@100"),
        ("--nice", "nice", "100"),
        ("--exclusive", "exclusive", "exclusive"),
        ("--exclusive=user", "exclusive", "user"),
        ("-s", "oversubscribe", "oversubscribe"),
        ("--contiguous", "contiguous", "set"),
        ("--gres=gpu:1,gpu:1", "gres", "gres/gpu:1,gres/gpu:1"),
        ("--gres=none", "gres", "none"),
        ("--mail-type=ALL", "mail-type", "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"),
        ("--mail-type=NONE", "mail-type", "NONE"),
        ("--switches=2", "switches", "2"),
        ("--switches=1@5:00", "switches", "1@00:05:00"),
        ("--profile=all", "profile", "Energy,Lustre,Network,Task"),
        ("--profile=none", "profile", "None"),
        ("--requeue", "requeue", "requeue"),
        ("--no-requeue", "no-requeue", "no-requeue"),
        ("--open-mode=append", "open-mode", "a"),
        ("--open-mode=truncate", "open-mode", "t"),
        ("--delay-boot=5", "delay-boot", "00:05:00"),
        ("--cpu-freq=1000-2000:performance", "cpu-freq", "1000-2000:Performance"),
        ("--distribution=block:cyclic,NoPack", "distribution", "block:cyclic,nopack"),
        ("--distribution=*", "distribution", "block"),
        ("--propagate", "propagate", "ALL"),
        ("-k", "no-kill", "set"),
        ("--no-kill=off", "no-kill", "unset"),
        ("-onone", "output", "/dev/null"),
        ("--oom-kill-step", "oom-kill-step", "1"),
        ("--priority=TOP", "priority", "-3"),
        ("--begin=2030-01-01", "begin", "2030-01-01T00:00:00"),
    ],
)
def test_options_are_listed_by_what_they_came_to(typed: str, name: str, shown: str) -> None:
    _, _, err, _, _ = call(sbatch, "-v", "-H", typed, "--wrap=true")
    assert f"sbatch: {name:<20}: {shown}\n" in err


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3 << 8, 3), (9, 1)])
def test_wait_gives_the_jobs_exit_code(status: int, code: int) -> None:
    controller = Controller()
    controller.exit_code = status
    assert call(sbatch, "-W", "--wrap=true", controller=controller)[0] == code


def test_test_only_says_when_and_where() -> None:
    code, out, err, controller, _ = call(sbatch, "--test-only", "-N2", "-n4", "-p", "cpu", "--wrap=true")
    assert (code, out) == (0, "")
    assert err.startswith(
        "sbatch: Job 1000 to start at 2026-11-30T12:00:00 a using 4 processors on nodes n[5-6] in partition cpu"
    )
    assert not controller.machine.jobs
    for command, words in ((sbatch, ("--wrap=true",)), (srun, ("true",))):
        err = call(command, "--test-only", "-M", "reference", "-p", "cpu", *words)[2]
        assert f"{command.NAME}: Job 1000 to start at 2026-11-30T12:00:00 on cluster reference a using 1 processors" in err
    code, _, err, _, _ = call(sbatch, "--test-only", "-n999", "--wrap=true")
    assert (code, err) == (1, "allocation failure: Requested node configuration is not available\n")


def test_help_and_version_submit_nothing() -> None:
    for words in (("--help",), ("--usage",), ("-V",), ("--autocomplete=ex",)):
        code, out, _, controller, _ = call(sbatch, *words)
        assert code == 0
        assert out
        assert not controller.machine.jobs
    assert "--exclusive=\n--exclusive \n" in call(sbatch, "--autocomplete=ex")[1]


def environment_of(controller: Controller) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in controller.files[0].environment.items()}


def test_exported_environments() -> None:
    mine = {"A": "1", "B": "2", "SLURM_X": "3", "HOME": "/h"}
    assert exported(mine, None) == exported(mine, "all") == mine
    for nothing in ("NIL", "none", "", "MISSING"):
        assert exported(mine, nothing) == {"SLURM_X": "3"}
    assert exported(mine, "ALL,A=5,C=6") == {**mine, "A": "5", "C": "6"}
    assert exported(mine, "A=5,ALL") == mine
    assert exported(mine, "B,C=x y,=5,, D=1") == {"SLURM_X": "3", "B": "2", "C": "x y", " D": "1"}


@pytest.mark.parametrize(
    ("text", "words", "unclosed"),
    [
        ("A='1,2',B,C=\"x,y\"", ["A='1,2'", "B", 'C="x,y"'], None),
        ('A=x"1,2"y,B', ['A=x"1,2"y', "B"], None),
        ("A=a\\,b", ["A=a\\", "b"], None),
        ("A=1,B='x,C", ["A=1", "B='x,C"], "B='x,C"),
        ("", [], None),
    ],
)
def test_words_of_an_export_list(text: str, words: list[str], unclosed: str | None) -> None:
    assert split_export(text) == words
    assert unclosed_export(text) == unclosed


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), False),
        (("--export=ALL",), False),
        (("--export=NIL",), False),
        (("--export=NONE",), True),
        (("--export=ALL,A=1",), True),
        (("--export=",), True),
        (("--get-user-env",), True),
    ],
)
def test_who_gets_the_environment_of_a_login(words: tuple[str, ...], asked: bool) -> None:
    _, _, _, controller, _ = call(sbatch, *words, "--wrap", "true")
    assert wants_login(controller.machine.jobs[1000].request) is asked
    assert ("SLURM_GET_USER_ENV" in environment_of(controller)) is asked


@pytest.mark.parametrize(("name", "path"), [("f", "f"), ("3", "/dev/fd/3"), ("2", "2")])
def test_an_export_file_is_the_environment(name: str, path: str) -> None:
    output = Files(**{path: b"P=1\0Q=a b\nc\0R\0=5\0S=\0T=1\0T=2"})
    words = (f"--export-file={name}", "--export=A", "--wrap", "true")
    _, _, err, controller, _ = call(sbatch, *words, environment={"A": "1", "SLURM_X": "3"}, output=output)
    found = environment_of(controller)
    assert err == ""
    assert found.items() >= {"P": "1", "Q": "a b\nc", "S": "", "T": "2", "SLURM_X": "3"}.items()
    assert not {"A", "R", "", "SLURM_EXPORT_ENV"} & found.keys()


def test_export_files_that_cannot_be_read() -> None:
    code, _, err, _, _ = call(sbatch, "--export-file=nosuch", "--wrap", "true")
    assert (code, err) == (1, "sbatch: error: Could not open user environment file nosuch\n")
    code, _, err, controller, _ = call(sbatch, "--export-file=/dir", "--wrap", "true")
    assert (code, err) == (0, "sbatch: error: read(environment_file): Is a directory\n")
    assert 1000 in controller.machine.jobs


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.text(max_size=10) | st.sampled_from(["-n", "2", "--mem", "1G", ":", "--wrap=x", "-N", "-w", "n1", "s", "--hold"])
    ),
    st.binary(max_size=80),
    st.dictionaries(
        st.sampled_from(["SBATCH_TIMELIMIT", "SBATCH_GRES", "SBATCH_EXPORT", "SLURM_EXIT_ERROR"]), st.text(max_size=8)
    ),
)
def test_any_submission_is_answered(words: list[str], tail: bytes, environment: dict[str, str]) -> None:
    output = Files(b"#!/bin/sh\n#SBATCH " + tail, s=b"#!/bin/sh\n#SBATCH " + tail)
    code, _, err, controller, _ = call(sbatch, *words, output=output, environment=environment)
    assert 0 <= code <= 255
    assert not (controller.machine.jobs and err.startswith("sbatch: error: Batch job submission failed"))


# ------------------------------------------------------------------------------------------------- srun


def running(**request: Any) -> Controller:
    controller = Controller()
    controller.submit(tasks=4, minimum_nodes=2, maximum_nodes=2, **request)
    controller.start_all()
    return controller


def step_of(output: Files) -> StepRequest:
    assert output.executed is not None
    environment = output.executed[1]
    pieces = [environment["SLURMK_STEP"]]
    while piece := environment.get(f"SLURMK_STEP_{len(pieces)}"):
        pieces.append(piece)
    return StepRequest.from_object(json.loads("".join(pieces)))


def test_a_step_in_a_job() -> None:
    environment = {"SLURM_JOB_ID": "1000", "SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NAME": "j", "X": "1"}
    words = ("-l", "-c2", "-o", "o-%t", "-K", "-W", "5", "--gres=gpu:1", "--mem=1G", "-m", "plane=2", "hostname", "-f")
    code, _, err, _, output = call(srun, *words, controller=running(), environment=environment)
    assert (code, err) == (0, "")
    step = step_of(output)
    assert (step.name, step.argv, step.cwd, step.job_id) == ("hostname", ("hostname", "-f"), "/w", 1000)
    assert (step.tasks, step.minimum_nodes, step.cpus_per_task, step.memory_per_node) == (4, 2, 2, 1024)
    assert (step.label, step.output, step.wait, step.kill_on_bad_exit) == (True, "o-%t", 5, True)
    assert (step.gres, step.distribution, step.plane_size) == ("gres/gpu:1", "plane", 2)
    assert not step.owns_allocation
    assert output.executed is not None
    program, became = output.executed
    assert program == ["/usr/bin/python3", "/d d/stepd.pyz", "srun"]
    assert (became["X"], became["SLURMK_ADDRESS"]) == ("1", "unix:1000")


def test_a_step_request_survives_its_variables() -> None:
    words = ("x" * 300_000, "\udcff\n'\"")
    _, _, _, _, output = call(srun, "env", *words, controller=running(), environment={"SLURM_JOB_ID": "1000"})
    assert output.executed is not None
    assert all(len(value) <= 131_000 for name, value in output.executed[1].items() if name.startswith("SLURMK_STEP"))
    assert step_of(output).argv == ("env", *words)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("-N3", "true"), "error: Only allocated 2 nodes asked for 3"),
        (("-r", "5", "-N1", "true"), "error: --relative and --nodes option incompatible with count of allocated nodes (5+1>2)"),
        (("-w", "n8", "true"), "error: Unable to create step for job 1000: Requested node configuration is not available"),
        (("-n", "x", "true"), 'error: Invalid numeric value "x" for --ntasks.'),
        ((), "fatal: No command given to execute."),
        (("--multi-prog", "nope"), "error: Could not open multi_prog config file nope"),
    ],
)
def test_steps_that_cannot_be(words: tuple[str, ...], error: str) -> None:
    code, _, err, _, _ = call(srun, *words, controller=running(), environment={"SLURM_JOB_ID": "1000"})
    assert (code, err) == (1, f"srun: {error}\n")


def test_one_task_on_two_nodes_is_warned_of() -> None:
    environment = {"SLURM_JOB_ID": "1000", "SLURM_JOB_NUM_NODES": "2"}
    _, _, err, _, output = call(srun, "-n1", "true", controller=running(), environment=environment)
    assert err == "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
    assert (step_of(output).tasks, step_of(output).minimum_nodes) == (1, 1)


def test_jobs_that_steps_cannot_run_in() -> None:
    _, _, err, _, _ = call(srun, "--jobid=9", "true")
    assert err.splitlines() == [
        "srun: error: Unable to confirm allocation for job 9: Invalid job id specified",
        "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 9",
    ]
    code, _, err, _, output = call(srun, "--jobid=1000", "true", controller=running(), caller=ALICE)
    assert code == 1
    assert "Access/permission denied" in err
    assert output.executed is None


def test_exported_variables_of_a_step() -> None:
    environment = {"SLURM_JOB_ID": "1000", "A": "1", "B": "2"}
    _, _, _, _, output = call(srun, "--export=B,C=3", "env", controller=running(), environment=environment)
    assert output.executed is not None
    became = output.executed[1]
    assert ("A" in became, became["B"], became["C"], became["SLURM_JOB_ID"]) == (False, "2", "3", "1000")


@pytest.mark.parametrize(
    ("words", "there", "nodelist"),
    [("--gpus=5", 2, None), ("-w n1 --gpus=5", 2, "n1"), ("-w n1,n2 -n1", 1, None), ("-w n1,n2", 2, "n[1-2]")],
)
def test_the_step_of_an_allocation_spans_the_nodes_that_it_got(words: str, there: int, nodelist: str | None) -> None:
    code, _, _, controller, output = call(srun, *words.split(), "hostname")
    allocation = controller.machine.jobs[1000].allocation
    assert (code, allocation is not None and len(allocation.nodes)) == (0, there)
    step = step_of(output)
    assert (step.minimum_nodes, step.nodelist) == (there, nodelist)


def test_srun_on_its_own_makes_an_allocation() -> None:
    code, _, err, controller, output = call(srun, "-N2", "-J", "nm", "hostname")
    assert (code, err) == (0, "")
    job = controller.machine.jobs[1000]
    assert (job.batch, job.name, job.command) == (False, "nm", "hostname")
    step = step_of(output)
    assert step.owns_allocation
    assert (step.job_id, step.minimum_nodes) == (1000, 2)


def test_srun_on_its_own_is_refused_in_its_words() -> None:
    code, _, err, _, _ = call(srun, "-p", "nope", "true")
    assert (code, err) == (
        1,
        "srun: error: invalid partition specified: nope\n"
        "srun: error: Unable to allocate resources: Invalid partition name specified\n",
    )


def test_srun_says_that_it_waits_and_cancels_what_nobody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srun, "AT_ONCE", 0.01)

    class Busy(Controller):
        async def job_changed(self, job_id: int) -> Job | None:
            await asyncio.sleep(3600)
            raise AssertionError

    async def leave(controller: Controller, output: Files) -> None:
        request = Call("srun", ("true",), "/w", {}, ROOT, 0)
        task = asyncio.ensure_future(srun.run(request, controller, output))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    controller, output = Busy(), Files()
    asyncio.run(leave(controller, output))
    assert "".join(output.err) == "srun: job 1000 queued and waiting for resources\n"
    assert controller.machine.jobs[1000].state.finished


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(st.text(max_size=10) | st.sampled_from(["-n", "2", "--mem", "1G", ":", "-N", "-w", "n1", "true", "-r", "--pty"]))
)
def test_any_step_is_answered(words: list[str]) -> None:
    code, _, err, _, output = call(srun, *words, controller=running(), environment={"SLURM_JOB_ID": "1000"})
    assert output.executed is not None or code or err or output.out


@pytest.mark.parametrize(("value", "umask"), [("0077", 0o077), ("27", 0o027), ("zz", 0), ("", 0), (None, 0o022)])
def test_the_umask_may_be_said_in_the_environment(value: str | None, umask: int) -> None:
    environment = {} if value is None else {"SLURM_UMASK": value}
    _, _, _, controller, _ = call(sbatch, "--wrap", "true", environment=environment)
    assert controller.machine.jobs[1000].umask == umask
    assert "SLURM_UMASK" not in environment_of(controller)


def test_sharing_tasks_is_for_steps() -> None:
    code, _, err, _, _ = call(sbatch, "--gres-flags=allow-task-sharing", "--wrap", "true")
    assert (code, err) == (255, "sbatch: error: --gres-flags=allow-task-sharing is only used with srun.\n")


def test_test_only_of_a_het_job_is_one_line() -> None:
    words = ("--test-only", "-n1", "-w", "n1", ":", "-n3", "-w", "n5", "-p", "cpu", "--wrap", "true")
    code, out, err, _, _ = call(sbatch, *words)
    assert (code, out) == (0, "")
    assert re.fullmatch(r"sbatch: Job 1000 to start at \S+ using 4 processors on n\[1,5\]\n", err)
    code, _, err, _, _ = call(sbatch, "--test-only", "-n1", ":", "-p", "nosuch", "--wrap", "true")
    assert (code, err.splitlines()[-1]) == (1, "allocation failure: Invalid partition name specified")


def test_test_only_beyond_the_partitions_limit() -> None:
    code, _, err, _, _ = call(sbatch, "--test-only", "-t", "5-0", "-w", "n1", "--wrap", "true")
    assert code == 0
    assert "a using 1 processors on nodes n1 in partition debug" in err


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3 << 8, 3), (9, 1), (0xFF00, 255)])
def test_wait_gives_the_scripts_exit_code(status: int, code: int) -> None:
    controller = Controller()
    controller.exit_code = status
    assert call(sbatch, "--wait", "--wrap", "true", controller=controller)[0] == code
