"""sacct against what the reference printed of the same jobs (sacct_reference/): all of it, byte for byte."""

from __future__ import annotations

import asyncio
import calendar
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accounting.store import Store
from grammar.hostlist import expand
from grammar.times import parse_duration
from grammar.tres import parse_tres
from slurmk.commands import sacct
from slurmk.commands.call import Call
from slurmk.commands.dispatch import dispatch
from slurmk.commands.sacct_fields import FIELDS
from slurmk.core.effects import SaveJob, SaveStep
from slurmk.core.events import Caller
from slurmk.model.job import (
    BATCH_STEP,
    Allocation,
    Credentials,
    GresShare,
    Job,
    JobFiles,
    JobRequest,
    NodeShare,
    Spread,
    Step,
    Usage,
)
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobState, Reason

REFERENCE = Path(__file__).parent / "sacct_reference"
NOW = calendar.timegm((2026, 11, 30, 8, 11, 0))
NODES = tuple(Node(f"n{number}", cpus=8 if number < 5 else 16) for number in range(1, 9))
SITE = Site(
    "reference",
    NODES,
    tuple(Partition(name, tuple(node.name for node in NODES)) for name in ("debug", "gpu", "cpu")),
    default_memory_per_cpu=100,
)
NOT_OURS = (
    "AssocID AveCPUFreq DBIndex Flags MaxDiskReadNode MaxDiskReadTask MaxDiskWriteNode MaxDiskWriteTask MaxPagesNode"
    " MaxPagesTask TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode TRESUsageInMinTask"
    " TRESUsageOutMaxNode TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask"
    " ConsumedEnergy ConsumedEnergyRaw PlannedCPURAW TRESUsageInTot TRESUsageOutTot UserCPU SystemCPU TotalCPU"
)
"""Fields for which slurmk has no numbers, or its own, or that the recorded text has rounded."""


def rows() -> list[dict[str, str]]:
    lines = [line.split("\t") for line in (REFERENCE / "all.tsv").read_text().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def moment(text: str) -> int:
    return 0 if text in ("Unknown", "None") else calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def status(text: str) -> int:
    code, _, signal = text.partition(":")
    return int(code) << 8 | int(signal)


def size(text: str) -> int:
    return int(text.removesuffix("K")) * 1024 if text.endswith("K") else int(text or 0)


def disk(text: str) -> int:
    return int(dict(word.split("=") for word in text.split(","))["fs/disk"])


def spread(row: dict[str, str], most: int, average: int, name: str) -> Spread:
    tasks = int(row["NTasks"])
    least = average * tasks - most * (tasks - 1)
    node, task = row[f"{name}Node"], int(row[f"{name}Task"] or 0)
    return Spread(average * tasks, most, node, task, least, row["MinCPUNode"])


def microseconds(text: str) -> int:
    *rest, seconds = text.split(":")
    return round(float(seconds) * 1_000_000) + (int(rest[-1]) * 60_000_000 if rest else 0)


def allocation(row: dict[str, str]) -> Allocation | None:
    if row["NodeList"] == "None assigned":
        return None
    names = expand(row["NodeList"])
    tres = parse_tres(row["AllocTRES"])
    cpus, memory, gpus = tres["cpu"], tres["mem"], tres.get("gres/gpu", 0)
    shares = []
    for index, name in enumerate(names):
        last = index == len(names) - 1
        mine = cpus - (len(names) - 1) if index == 0 else 1
        gres = (GresShare("gpu", "a100", gpus, ()),) if last and gpus else ()
        shares.append(NodeShare(name, mine, memory // len(names), 1, gres))
    return Allocation(row["Partition"], tuple(shares))


def job_of(row: dict[str, str]) -> Job:
    state, _, by = row["State"].partition(" by ")
    requested = parse_tres(row["ReqTRES"])
    array, _, task = row["JobID"].partition("_")
    tasks: tuple[range, ...] = ()
    maximum = 0
    if task.startswith("["):
        tasks, maximum, task = (range(0, 10, 3), range(20, 21)), 2, ""
    directory = row["WorkDir"]
    given = {name: row[name].removeprefix(directory + "/") or None for name in ("StdOut", "StdErr")}
    if given["StdOut"] in ("slurm-%j.out", "slurm-%A_%a.out"):
        given["StdOut"] = None
    gpus = requested.get("gres/gpu", 0)
    request = JobRequest(
        tasks=requested["cpu"] if requested["cpu"] > 1 else None,
        minimum_nodes=requested["node"],
        memory_per_node=requested["mem"] // requested["node"],
        tres_per_job=f"gres/gpu:{gpus}" if gpus else None,
        constraints=row["Constraints"] or None,
        current_working_directory=directory,
        standard_output=given["StdOut"],
        standard_error=given["StdErr"],
        shared="none" if row["Exclusive"] == "NODE" else None,
    )
    return Job(
        job_id=int(row["JobIDRaw"]),
        request=request,
        credentials=Credentials(int(row["UID"]), int(row["GID"]), row["User"], row["Group"]),
        submit_time=moment(row["Submit"]),
        eligible_time=moment(row["Eligible"]),
        start_time=moment(row["Start"]),
        end_time=moment(row["End"]),
        state=JobState[state],
        cancelled_by=int(by) if by else None,
        reason=Reason(row["Reason"]),
        priority=int(row["Priority"]),
        name=row["JobName"],
        account=row["Account"],
        partitions=tuple(row["Partition"].split(",")),
        time_limit=0xFFFFFFFE if row["Timelimit"] == "Partition_Limit" else parse_duration(row["Timelimit"]),
        batch=row["StdIn"] != "",
        submit_line=row["SubmitLine"],
        sluid=row["SLUID"],
        array_job_id=int(array) if task or tasks else 0,
        array_task_id=int(task) if task else None,
        array_tasks=tasks,
        array_maximum_running=maximum,
        exit_code=status(row["ExitCode"]),
        derived_exit_code=status(row["DerivedExitCode"]),
        allocation=allocation(row),
    )


def step_of(row: dict[str, str]) -> Step:
    job_id, _, step = row["JobIDRaw"].partition(".")
    tres = parse_tres(row["AllocTRES"])
    gpus = tres.get("gres/gpu", 0)
    return Step(
        job_id=int(job_id),
        step_id=BATCH_STEP if step == "batch" else int(step),
        name=row["JobName"],
        state=JobState[row["State"]],
        start_time=moment(row["Start"]),
        end_time=moment(row["End"]),
        nodes=tuple(expand(row["NodeList"])),
        tasks=int(row["NTasks"]),
        cpus=tres["cpu"],
        memory=tres["mem"],
        gres=f"gres/gpu={gpus}" if gpus else "",
        exit_code=status(row["ExitCode"]),
        submit_line=row["SubmitLine"],
        distribution="" if row["Layout"] == "Unknown" else row["Layout"].lower(),
        usage=Usage(
            user_cpu=microseconds(row["UserCPU"]),
            system_cpu=microseconds(row["SystemCPU"]),
            tasks=int(row["NTasks"]),
            cpu=Spread(least_node=row["MinCPUNode"], least_task=int(row["MinCPUTask"]), most_node=row["MinCPUNode"]),
            disk_read=spread(row, disk(row["TRESUsageInMax"]), disk(row["TRESUsageInAve"]), "MaxDiskRead"),
            disk_write=spread(row, disk(row["TRESUsageOutMax"]), disk(row["TRESUsageOutAve"]), "MaxDiskWrite"),
            rss=spread(row, size(row["MaxRSS"]), size(row["AveRSS"]), "MaxRSS"),
            vsize=spread(row, size(row["MaxVMSize"]), size(row["AveVMSize"]), "MaxVMSize"),
            pages=spread(row, int(row["MaxPages"]), int(row["AvePages"]), "MaxPages"),
        ),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path_factory.mktemp('sacct')}/accounting.sqlite", SITE)
    made.open()
    everything = rows()
    jobs = [job_of(row) for row in everything if "." not in row["JobIDRaw"]]
    steps = [step_of(row) for row in everything if "." in row["JobIDRaw"]]
    for job in jobs:  # waiting first: the reason it waited for stays
        made.commit([SaveJob(replace(job, state=JobState.PENDING, allocation=None), new=True)])
    made.commit([*map(SaveJob, jobs), *(SaveStep(step, 0) for step in steps)], {1693: FILES, 1691: FILES})
    yield made
    made.close()


FILES = JobFiles(b"#!/bin/sh\nkill -9 $$\n", (), {b"HOME": b"/home/alice"}, b"s")


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(sacct.pwd, "getpwnam", _user)
    yield
    monkeypatch.undo()
    time.tzset()


def _user(name: str) -> Any:
    if name not in ("alice", "bob"):
        raise KeyError(name)
    return SimpleNamespace(pw_uid={"alice": 1001, "bob": 1002}[name])


class Sink:
    def __init__(self) -> None:
        self.out = b""
        self.err = b""

    def write(self, text: str | bytes) -> None:
        self.out += text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    def error(self, text: str | bytes) -> None:
        self.err += text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text

    async def drain(self) -> None:
        await asyncio.sleep(0)


class Answer:
    def __init__(self, code: int, sink: Sink) -> None:
        self.code, self.out, self.err = code, sink.out.decode(), sink.err.decode()


def ask(store: Store, *arguments: str, uid: int = 0, environment: dict[str, str] | None = None, site: Site = SITE) -> Answer:
    statistics = SimpleNamespace(requested=lambda *told: None)
    controller: Any = SimpleNamespace(
        machine=SimpleNamespace(site=site), store=store, now=lambda: float(NOW), statistics=statistics
    )
    caller = Caller(uid, {0: "root", 1001: "alice"}.get(uid, "bob"), uid == 0)
    call = Call("sacct", arguments, "/", environment or {}, caller, uid)
    sink: Any = Sink()
    return Answer(asyncio.run(dispatch(call, controller, sink)), sink)


def commands() -> list[tuple[str, list[str]]]:
    lines = (REFERENCE / "commands.tsv").read_text().splitlines()
    return [(name, shlex.split(arguments)) for name, _, arguments in (line.partition("\t") for line in lines)]


@pytest.mark.parametrize(("name", "arguments"), commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_prints_what_the_reference_printed(store: Store, name: str, arguments: list[str]) -> None:
    answer = ask(store, *arguments)
    assert answer.out == (REFERENCE / f"{name}.txt").read_text()
    assert (answer.err, answer.code) == ("", 0)


def test_every_field_prints_what_the_reference_printed(store: Store) -> None:
    jobs = ",".join(row["JobIDRaw"] for row in rows() if "." not in row["JobIDRaw"])
    lines = ask(store, "-P", "-D", "-j", jobs, "-o", "ALL", "--delimiter=\t").out.splitlines()
    names = lines[0].split("\t")
    assert names == [field.name for field in FIELDS] == list(rows()[0])
    different = [
        (expected["JobID"], name, value, expected[name])
        for line, expected in zip(lines[1:], rows(), strict=True)
        for name, value in zip(names, line.split("\t"), strict=True)
        if name not in NOT_OURS.split() and value != expected[name]
    ]
    assert different == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-j", "1229", "-o", "foo"], 'sacct: error: Invalid field requested: "foo"'),
        (["-o", "jobid,allocgres%20"], "sacct: fatal: AllocGRES has been removed, please use AllocTRES"),
        (["-o", "ReqGres"], "sacct: fatal: ReqGRES has been removed, please use ReqTRES"),
        (["-o", "allocgr"], 'sacct: error: Invalid field requested: "allocgr"'),
        (["-o", "reserved"], 'sacct: error: Invalid field requested: "reserved"'),
        (["-j", "xx"], "sacct: fatal: Bad job/step specified: xx"),
        (["-j", "0"], "sacct: fatal: Bad job/step specified: 0: JobID can not be zero"),
        (["-j", "-1"], "sacct: fatal: Bad job/step specified: -1"),
        (["-j", "12x"], "sacct: fatal: Bad job/step specified: 12x: JobID includes unexpected non-numeric characters"),
        (["-j", "12_"], "sacct: fatal: Bad job/step specified: 12_: Job Array ID must not be an empty string"),
        (["-j", "12."], "sacct: fatal: Bad job/step specified: 12.: StepID must not be an empty string"),
        (["-j", "1+"], "sacct: fatal: Bad job/step specified: 1+: HetJob component must not be an empty string"),
        (["-j", "12.foo"], "sacct: fatal: Bad job/step specified: 12.foo: StepID includes unexpected non-numeric characters"),
        (["-j", "12.0.1"], "sacct: fatal: Bad job/step specified: 12.0.1: StepID includes unexpected non-numeric characters"),
        (["-j", "12_x"], "sacct: fatal: Bad job/step specified: 12_x: Job Array ID includes unexpected non-numeric characters"),
        (
            ["-j", "12_[0-3]"],
            "sacct: fatal: Bad job/step specified: 12_[0-3]: JobID includes unexpected non-numeric characters",
        ),
        (["-j", "9" * 12], f"sacct: fatal: Bad job/step specified: {'9' * 12}: JobID larger than acceptable range"),
        (["-S", "garbage"], "Invalid time specification (pos=0): garbage"),
        (
            ["-S", "08:00", "-E", "07:00"],
            "sacct: error: Start time (2026-11-30T08:00:00) requested is after end time (2026-11-30T07:00:00).",
        ),
        (["-s", "foo"], "sacct: fatal: unrecognized job state value 'foo'"),
        (["-s", "CG"], "sacct: fatal: job state CG is not supported / accounted"),
        (["-u", "nouser"], "sacct: error: Invalid user id: nouser"),
        (["-g", "nogroup1"], "sacct: error: Invalid group id: nogroup1"),
        (["--units=X"], "sacct: error: Invalid unit type 'X'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type"),
        (
            ["-q", "nope"],
            "sacct: error: You gave a bad qos 'nope'. Valid QOS's are normal\nsacct: fatal: problem processing qos list",
        ),
        (["foo"], "sacct: error: Unknown arguments:\nsacct: error:  foo"),
        (["-Z"], "sacct: invalid option -- 'Z'"),
        (["-B"], "sacct: fatal: When requesting job scripts you must also request specific jobs with the '-j' option."),
        (["-B", "--env-vars"], "sacct: fatal: Options --batch-script and --env-vars are mutually exclusive"),
        (["-i", "x"], 'sacct: error: Invalid numeric value "x" for requested node range.'),
        (["-I", "3-"], 'sacct: error: Invalid numeric value "3-" for requested cpu range.'),
        (["-k", "foo"], "sacct: fatal: Invalid time limit specification"),
        (["-R", "foo"], "sacct: fatal: unrecognized job reason value 'foo'"),
        (["-F", "foo"], "sacct: error: str_2_job_flags: Invalid job flag foo"),
        (["--whole-hetjob=foo"], 'sacct: error: Invalid --whole-hetjob value "foo". Valid values: [yes|no].'),
        (["-c"], "Slurm job completion is disabled"),
    ],
)
def test_what_the_reference_refuses_is_refused_in_its_words(store: Store, arguments: list[str], message: str) -> None:
    answer = ask(store, *arguments)
    assert (answer.out, answer.err, answer.code) == ("", message + "\n", 1)


def test_sums_of_the_steps(store: Store) -> None:
    found = ask(store, "-n", "-P", "-X", "-j", "1687,1698", "-o", "usercpu,systemcpu,totalcpu,consumedenergy").out
    assert found == "00:00.012|00:00.038|00:00.050|0\n00:00:00|00:00:00|00:00:00|0\n"


def test_only_gres_that_accounting_counts_are_told(store: Store) -> None:
    with_gpus = [
        line for line in ask(store, "-a", "-n", "-P", "-X", "-o", "reqtres,alloctres").out.splitlines() if "gres" in line
    ]
    assert with_gpus, "some job has GPUs"
    site = replace(SITE, parameters={"AccountingStorageTRES": "gres/gpu"})
    assert "gres/gpu=" in ask(store, "-a", "-n", "-P", "-X", "-o", "reqtres,alloctres", site=site).out
    site = replace(SITE, parameters={"AccountingStorageTRES": "gres/nvme"})
    assert "gres/gpu" not in ask(store, "-a", "-n", "-P", "-o", "reqtres,alloctres", site=site).out


def test_users_see_their_own_jobs_unless_they_ask(store: Store) -> None:
    listed = ("-X", "-n", "-P", "-o", "jobidraw")
    assert len(ask(store, *listed, uid=1001).out.split()) == 11  # what is held was never eligible
    assert ask(store, *listed, uid=1002).out == ""
    for arguments in (("-a",), ("-u", "alice")):
        assert len(ask(store, *listed, *arguments, uid=1002).out.split()) == 11
    assert ask(store, *listed, "-j", "1687", uid=1002).out == "1687\n"


def test_private_jobs_stay_private(store: Store) -> None:
    site = replace(SITE, private_data=("jobs",))
    assert ask(store, "-n", "-a", uid=1002, site=site).out == ""
    assert ask(store, "-n", "-j", "1687", "-u", "alice", uid=1002, site=site).out == ""
    assert ask(store, "-n", "-X", "-j", "1687", uid=1001, site=site).out != ""


def test_the_format_may_come_from_the_environment(store: Store) -> None:
    environment = {"SACCT_FORMAT": "jobid%5,state%4"}
    assert ask(store, "-n", "-X", "-j", "1687", environment=environment).out == " 1687 COM+ \n"
    assert ask(store, "-n", "-X", "-j", "1687", "-b", environment=environment).out.startswith("1687 ")


def test_scripts_are_shown_to_their_owner_where_they_are_kept(store: Store) -> None:
    title = f"Batch Script for 1693\n{'-' * 80}\n"
    assert ask(store, "-B", "-j", "1693").out == title + "NONE\n"
    kept = replace(SITE, parameters={"AccountingStoreFlags": "job_script,job_env"})
    assert ask(store, "-B", "-j", "1693", site=kept, uid=1001).out == title + "#!/bin/sh\nkill -9 $$\n"
    assert ask(store, "-B", "-j", "1693", site=kept, uid=1002).out == ""
    environment = ask(store, "--env-vars", "-j", "1691_2", site=kept)
    assert environment.out.endswith("HOME=/home/alice\n")


def test_verbose_tells_the_window(store: Store) -> None:
    assert ask(store, "-v", "-n", "-X", "-j", "1").err == (
        "sacct: Jobs Eligible in the time window from Epoch 0 to Mon Nov 30 08:11:01 2026\n"
    )
    assert "Jobs RUNNING,FAILED in" in ask(store, "-v", "-s", "r,F", "-n").err


def test_a_wrong_host_list_finds_nothing(store: Store) -> None:
    answer = ask(store, "-n", "-N", "n[1")
    assert (answer.out, answer.err, answer.code) == ("", "sacct: error: Invalid argument\n", 1)


def test_other_clusters_have_no_jobs(store: Store) -> None:
    assert ask(store, "-n", "-M", "elsewhere").out == ""
    assert ask(store, "-n", "-M", "reference,elsewhere").out != ""


def test_help_names_every_option() -> None:
    text = ask(None, "--help").out  # type: ignore[arg-type]
    assert all(f"--{option.name}" in text for option in sacct.OPTIONS if not option.hidden)
    assert all(option.meaning or option.note for option in sacct.OPTIONS)


assert os.path.isdir(REFERENCE)


def test_a_job_has_no_energy_until_it_is_over(tmp_path: Path) -> None:
    step = next(step for row in rows() if "." in row["JobIDRaw"] and (step := step_of(row)).step_id != BATCH_STEP)
    ended = next(job_of(row) for row in rows() if row["JobIDRaw"] == str(step.job_id))
    told = {}
    for name, job in (("running", replace(ended, state=JobState.RUNNING, end_time=0)), ("ended", ended)):
        with closing(Store(f"sqlite:///{tmp_path}/{name}.sqlite", SITE)) as made:
            made.open()
            made.commit([SaveJob(replace(job, state=JobState.PENDING, allocation=None), new=True)])
            made.commit([SaveJob(job), SaveStep(step, 0)])
            told[name] = ask(made, "-n", "-P", "-j", str(step.job_id), "-o", "consumedenergy").out
    assert told == {"running": "\n0\n", "ended": "0\n0\n"}


@pytest.mark.parametrize(("minutes", "told"), [(5, "00:05:00|5"), (2880, "2-00:00:00|2880"), (None, "|"), (0xFFFFFFFF, "|")])
def test_a_step_has_the_limit_that_it_asked_for(tmp_path: Path, minutes: int | None, told: str) -> None:
    step = next(step for row in rows() if "." in row["JobIDRaw"] and (step := step_of(row)).step_id != BATCH_STEP)
    job = replace(next(job_of(row) for row in rows() if row["JobIDRaw"] == str(step.job_id)), time_limit=10)
    with closing(Store(f"sqlite:///{tmp_path}/limits.sqlite", SITE)) as made:
        made.open()
        made.commit([SaveJob(replace(job, state=JobState.PENDING, allocation=None), new=True)])
        made.commit([SaveJob(job), SaveStep(replace(step, time_limit=minutes), 0)])
        lines = ask(made, "-n", "-P", "-j", str(step.job_id), "-o", "timelimit,timelimitraw").out.splitlines()
    assert lines == ["00:10:00|10", told]
