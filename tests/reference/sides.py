"""The two sides of a comparison: a real Slurm, and slurmk on an embedded cluster with that Slurm's own configuration.

A case is a list of shell commands run one after another on a side. What must differ between the sides is replaced
before texts are compared: job ids by the order in which they were given out, times and dates, SLUIDs, the host name,
versions and directories. Everything else has to be the same, to the blank.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SLURMK = Path(sys.executable).parent / "slurmk"


ROOM = 9000
"""How many jobs, with those that ended lately, the reference may know so that a comparison's own find room."""


@dataclass(frozen=True)
class Answer:
    """What one command gave."""

    command: str
    code: int
    output: str
    errors: str

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.output}{self.errors}[exit {self.code}]\n"


@dataclass
class Side:
    """One cluster that commands can be run on. ``work`` is the directory they run in."""

    name: str
    environment: Mapping[str, str]
    work: Path
    jobs: list[int] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def run(
        self,
        command: str,
        *,
        user: str | None = None,
        stdin: str | None = None,
        timeout: float = 60,
        directory: Path | None = None,
    ) -> Answer:
        """Run a shell command; ``{0}``, ``{1}`` … in it are the job ids that this side has given out since ``clear``."""
        text = re.sub(r"\{(\d+)\}", lambda match: str(self.jobs[int(match[1])]), command)
        done = subprocess.run(
            ["bash", "-c", text],
            capture_output=True,
            input=stdin.encode() if stdin is not None else None,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            env=dict(self.environment),
            cwd=directory or self.work,
            user=user,
            group=pwd.getpwnam(user).pw_gid if user else None,
            extra_groups=[] if user else None,
            timeout=timeout,
        )
        output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        for match in re.finditer(
            r"Submitted batch job (\d+)|^(\d+)(?:;\w+)?$|job (\d+) queued and waiting|StepId=(\d+)|ed job allocation (\d+)$"
            r"|^JobId=(\d+) (?:Array|Het|Job)",
            output + errors,
            re.M,
        ):
            if match[2] and "--parsable" not in command:
                continue
            number = int(next(group for group in match.groups() if group))
            if number not in self.jobs:
                self.jobs.append(number)
                self.seen.add(number)
        return Answer(command, done.returncode, output, errors)

    def wait(self, condition: str, seconds: float = 180) -> None:
        """Run a shell command until it succeeds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(condition).code == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.name}: {condition}: not within {seconds} s")

    def own(self) -> set[int]:
        """The unfinished jobs that were submitted through this side: by their ids, or by where they were submitted."""
        return {job for job, work in self._unfinished() if job in self.seen or work.startswith(str(self.work))}

    def strangers(self) -> set[int]:
        """The unfinished jobs of others, who use the reference at the same time."""
        return {job for job, _ in self._unfinished()} - self.own()

    def quiet(self) -> bool:
        """Whether nothing but this side's own jobs is there, no node is kept from them, and there is room for more."""
        if self.strangers() or self.run("sinfo -h -N -o %t -t down,drain,maint,resv,fail").output:
            return False
        return int(self.run("squeue -h -t all -r -o x | wc -l").output) < ROOM

    def clear(self) -> None:
        """End the jobs that were submitted through this side and forget the ids seen so far."""
        own = self.own()
        for job in own:
            self.run(f"scancel --quiet {job}")
        self.wait(f'[ -z "$(squeue -h -j {",".join(map(str, own))} -t PD,R,CG,S,CF 2>/dev/null)" ]' if own else "true")
        self.jobs.clear()
        self.seen.clear()
        for entry in self.work.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _unfinished(self) -> list[tuple[int, str]]:
        rows = self.run("squeue -h -a -t PD,R,CG,S,CF -o '%A|%Z'").output.splitlines()
        return [(int(job), work) for job, _, work in (row.partition("|") for row in rows) if job.isdigit()]


TIMES = (
    (re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d\b"), "<date>"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}\b)?"), "<time>"),
    (re.compile(r"\bs[0-9A-Z]{13}\b"), "<sluid>"),
    (re.compile(r"slurm 26\.05\.\d+( \(slurmk [\d.]+\))?"), "<version>"),
)


def normalised(side: Side, text: str) -> str:
    """``text`` with what must differ replaced."""
    for form in (str(side.work), str(side.work).replace("/", r"\/")):  # as in text, and as in JSON
        text = text.replace(form, "<work>")
    for pattern, replacement in TIMES:
        text = pattern.sub(replacement, text)
    for order, job in sorted(enumerate(side.jobs), key=lambda pair: -pair[1]):  # of a fresh reference small: not those in times
        number = rf"(?<!\d)(?<!\d:)0*{job}(?!\d|:\d)"
        text = re.sub(number, lambda match, order=order: f"<{order}>".rjust(len(match[0])), text)  # type: ignore[misc]
    text = text.replace(f"SLURM_PRIO_PROCESS={os.nice(0)}\n", "SLURM_PRIO_PROCESS=0\n")  # of who runs the tests
    return text.replace(os.uname().nodename, "<host>")


@dataclass(frozen=True)
class Case:
    """One comparison. ``setup`` makes the situation (its answers are not compared), ``until`` is a shell condition that
    tells when it is there, ``command`` is compared. ``differs`` is the reason of a difference on purpose; ``ignore`` are
    regular expressions whose matches are blanked on both sides (those that end in a newline: taken out, for lines that may
    be there or not); ``title`` is shown instead of a long command."""

    command: str
    setup: tuple[str, ...] = ()
    until: str = ""
    user: str | None = None
    stdin: str | None = None
    differs: str = ""
    ignore: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.command


def answers(side: Side, cases: Iterable[Case]) -> list[str]:
    """What a side says to cases that share one situation (that of the first), as normalised text.

    A case's own jobs are forgotten with it, so that one that differs does not renumber those of all the others.
    """
    said = []
    situation = list(side.jobs)
    for case in cases:
        for path, content in case.files.items():
            (side.work / path).write_text(content)
        answer = side.run(case.command, user=case.user, stdin=case.stdin)
        text = normalised(side, f"{answer.output}--- errors\n{answer.errors}--- exit {answer.code}\n")
        for pattern in case.ignore:
            text = re.sub(pattern, "" if pattern.endswith(r"\n") else "<ignored>", text)
        said.append(text)
        side.jobs[:] = situation
    return said


def situate(side: Side, setup: Sequence[str], until: str) -> None:
    """Clear the side and make a situation on it."""
    side.clear()
    for command in setup:
        side.run(command)
    if until:
        side.wait(until)


def reference_side(script: str) -> Side:
    """The reference Slurm that ``script`` has started."""
    exports = subprocess.run([script, "env"], capture_output=True, text=True, check=True).stdout
    shell = subprocess.run(["bash", "-c", exports + "\nenv -0"], capture_output=True, text=True, check=True).stdout
    environment = dict(entry.split("=", 1) for entry in shell.split("\0") if entry)
    return Side("reference", _plain(environment), _work())


def slurmk_side(configuration: str, first_job: int = 1) -> tuple[Side, Path]:
    """slurmk on an embedded cluster of the same configuration; the side and its state directory.

    With the reference's next job id as ``first_job``, job ids take the same room in every column.
    """
    root = Path(tempfile.mkdtemp(prefix="slurmk-"))
    root.chmod(0o755)
    directory = root / "d"
    shutil.copytree(configuration, root / "etc")
    with (root / "etc" / "slurm.conf").open("a") as file:
        file.write(f"FirstJobId={first_job}\n")
    subprocess.run(
        [str(SLURMK), "up", "--detach", "--conf", str(root / "etc"), "--dir", str(directory)], check=True, capture_output=True
    )
    exports = subprocess.run([str(SLURMK), "env", "--dir", str(directory)], capture_output=True, text=True, check=True).stdout
    shell = subprocess.run(["bash", "-c", exports + "\nenv -0"], capture_output=True, text=True, check=True).stdout
    environment = dict(entry.split("=", 1) for entry in shell.split("\0") if entry)
    return Side("slurmk", _plain(environment), _work()), directory


def _plain(environment: dict[str, str]) -> dict[str, str]:
    """The same whatever started the tests has set: a home, a shell, and what names the cluster."""
    login = {"HOME": pwd.getpwuid(os.geteuid()).pw_dir, "SHELL": "/bin/bash"}
    kept = ("PATH", "SLURM_CONF", "SLURMK_SOCKET", "TZ")
    return login | {name: environment[name] for name in kept if name in environment} | {"LC_ALL": "C.UTF-8"}


def _work() -> Path:
    work = Path(tempfile.mkdtemp(prefix="compare-"))
    work.chmod(0o1777)
    return work
