"""Command lines and scripts of sbatch, srun and salloc, and what a real Slurm 26.05.5 said to them.

Each line of ``recorded/submissions.jsonl`` is a case: what is typed (``run``: variables, the command, its options), the
script or the standard input where there is one, and the recorded answer. A case was run as root on a cluster with the
reference's configuration, in an otherwise empty environment; ``record.py`` records them anew.

sbatch gets ``--hold --parsable`` before its options, and ``--wrap=true`` or the script ``s.sh`` after them, unless the
case is ``bare``. srun and salloc run a command that shows their job. ``{0}`` stands for the job's id, ``{work}`` for the
working directory, ``{host}`` for the host's name. ``fields`` are those of ``scontrol show job`` that differ from a
submission without options (the rows of the file that have ``plain``); None: the field is not printed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded" / "submissions.jsonl"

FIELDS = """
    JobName Priority Nice Account QOS WCKey JobState Requeue BatchFlag Reboot TimeLimit TimeMin Deadline Partition
    ReqNodeList ExcNodeList NumNodes NumCPUs NumTasks CPUs/Task ReqB:S:C:T ReqTRES Socks/Node NtasksPerN:B:S:C CoreSpec
    ThreadSpec MinCPUsNode MinMemoryCPU MinMemoryNode MinTmpDiskNode Features BatchFeatures Prefer DelayBoot
    OverSubscribe Exclusive Contiguous Licenses Network Command WorkDir StdErr StdIn StdOut Comment ArrayTaskId
    ArrayTaskThrottle TresPerJob TresPerNode TresPerSocket TresPerTask TresBind TresFreq CpusPerTres MemPerTres
    NtasksPerTRES MailUser MailType Switches Dependency KillOnInvalidDependent BurstBuffer MCS_label Container
    ContainerID Extra SegmentSize ConsolidateSegments SpreadSegments OOMKillStep GresEnforceBind GresOneTaskPerSharing
    ContainerType SpreadJob ClusterFeatures Reservation StepMgrEnabled ExternalJob HetJobOffset
    """.split()  # noqa: SIM905
"""The fields that a submission decides."""

CHANGING = re.compile(
    r"(?m)^(srun|salloc): (job \S+ (queued and waiting for|has been allocated) resources|Pending job allocation \S+"
    r"|Job allocation \S+ has been revoked\.|Relinquishing job allocation \S+|Granted job allocation \S+"
    r"|Nodes \S+ are ready for job)\n"
)
"""What srun and salloc say of their waiting, which depends on the cluster's speed."""

SHOW = "scontrol show job $SLURM_JOB_ID"


@dataclass(frozen=True)
class SubmissionCase:
    """One submission and its recorded answer."""

    run: str
    script: str | None = None
    stdin: str | None = None
    bare: bool = False
    plain: bool = False
    code: int = 0
    output: str = ""
    errors: str = ""
    fields: Mapping[str, str | None] = field(default_factory=dict)
    job: bool = False

    @cached_property
    def _parts(self) -> tuple[dict[str, str], str, tuple[str, ...]]:
        words = shlex.split(self.run)
        count = next(index for index, word in enumerate(words) if word in ("sbatch", "srun", "salloc"))
        pairs = (word.partition("=") for word in words[:count])
        return {name: value for name, _, value in pairs}, words[count], tuple(words[count + 1 :])

    @property
    def name(self) -> str:
        """The case in a line: what is typed, and the script."""
        extra = self.script if self.script is not None else self.stdin
        return self.run + (f" <{extra!r}>" if extra is not None else "")

    @property
    def environment(self) -> Mapping[str, str]:
        return self._parts[0]

    @property
    def command(self) -> str:
        return self._parts[1]

    @property
    def words(self) -> tuple[str, ...]:
        """The command's arguments."""
        typed = self._parts[2]
        if self.bare:
            return typed
        if self.command == "sbatch":
            return ("--hold", "--parsable", *typed, "--wrap=true" if self.script is None else "s.sh")
        return (*typed, "bash", "-c", SHOW)

    @property
    def line(self) -> str:
        """For a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, self.command, shlex.join(self.words)])


LATELY = re.compile(r"\b20[12]\d-\d\d-\d\dT\d\d:\d\d:\d\d\b")
"""Times that depend on when a case was run."""


def fields_of(text: str) -> dict[str, str]:
    """The fields of the first record of ``scontrol show job`` that a submission decides."""
    text = text.partition("\n\n")[0]
    pairs = re.findall(r"([A-Za-z:/_]+)=(.*?)(?=\s+[A-Za-z:/_]+=|\n|$)", text)
    return {name: LATELY.sub("{time}", value.strip()) for name, value in pairs if name in FIELDS}


def with_places(text: str, jobs: Sequence[int]) -> str:
    """``text`` with ``{0}``, ``{1}`` … for the ids of jobs, leading zeros left alone."""
    for order, job in enumerate(jobs):
        text = re.sub(rf"(?<![1-9])(?<![1-9]0)(0*){job}(?!\d)", rf"\g<1>{{{order}}}", text)
    return text


def load() -> tuple[SubmissionCase, ...]:
    """Every recorded case."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return tuple(SubmissionCase(**row) for row in rows)


SUBMISSIONS = load() if RECORDED.exists() else ()

PLAIN: Mapping[str, Mapping[str, str | None]] = {case.command: case.fields for case in SUBMISSIONS if case.plain}
"""The fields of a submission without options, by command."""
