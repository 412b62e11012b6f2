"""A real cluster and how a test talks to it: an embedded one, or with SLURMK_E2E=kubernetes one on Kubernetes."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import on_kubernetes

SITE = Path(__file__).parent / "site"
SLURMK = Path(sys.executable).parent / "slurmk"

PATIENCE = 2 if on_kubernetes.CHOSEN else 1


@dataclass
class Cluster:
    """A cluster and how to talk to it. ``work`` is a directory that every user may write to."""

    directory: Path
    work: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def up(self) -> None:
        """Start (or start again) the controller; returns once it answers."""
        command = [str(SLURMK), "up", "--detach", "--dir", str(self.directory), *self.options]
        started = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert started.returncode == 0, started.stdout + started.stderr
        exports = subprocess.run(
            [str(SLURMK), "env", "--dir", str(self.directory)], capture_output=True, text=True, check=True
        ).stdout
        shell = subprocess.run(["bash", "-c", exports + "\nenv -0"], capture_output=True, text=True, check=True)
        pairs = (entry.partition("=") for entry in shell.stdout.split("\0") if entry)
        self.environment = {name: value for name, _, value in pairs}

    def down(self) -> None:
        """End the controller and all jobs."""
        subprocess.run(
            [str(SLURMK), "down", "--jobs", "--dir", str(self.directory)], capture_output=True, timeout=60, check=False
        )

    def run(
        self,
        command: str,
        *,
        user: str | None = None,
        stdin: str | None = None,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command with the cluster's commands on PATH; its code, output and errors."""
        return subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            env={**self.environment, **(environment or {})},
            cwd=directory or self.work,
            user=user,
            group=user and _group_of(user),
            extra_groups=[] if user else None,
            timeout=timeout,
        )

    def ok(self, command: str, **options: object) -> str:
        """The output of a command that must succeed, without its last line end."""
        done = self.run(command, **options)  # type: ignore[arg-type]
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    def submit(self, arguments: str, **options: object) -> int:
        """sbatch with these arguments; the job's id."""
        return int(self.ok(f"sbatch --parsable {arguments}", **options))

    def field(self, job: int | str, name: str) -> str:
        """One field of ``scontrol show job``, e.g. JobState, Reason, NodeList."""
        shown = self.ok(f"scontrol --oneliner show job {job}")
        return next((word.partition("=")[2] for word in shown.split() if word.startswith(f"{name}=")), "")

    def state(self, job: int | str) -> str:
        """The job's state by ``scontrol show job``."""
        return self.field(job, "JobState")

    def wait_state(self, job: int | str, *states: str, seconds: float = 30) -> str:
        """Wait until the job is in one of these states."""
        return wait_for(lambda: (state := self.state(job)) in states and state, seconds, lambda: f"{job}: {self.state(job)}")

    def wait_end(self, job: int | str, seconds: float = 30) -> str:
        """Wait until the job has ended and holds no node any more; its final state."""
        return self.wait_state(
            job, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", seconds=seconds
        )

    def output(self, job: int | str, pattern: str = "slurm-{}.out") -> str:
        """The text of a job's output file below ``work``."""
        return (self.work / pattern.format(job)).read_text()


def _group_of(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def wait_for(
    condition: Callable[[], object], seconds: float = 30, tell: Callable[[], str] = lambda: "the condition never held"
) -> str:
    """Poll until ``condition`` is true; its value as text. Pods take longer to come and go than processes."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return str(value)
        time.sleep(0.05)
    raise AssertionError(f"after {seconds} s: {tell()}")


def make_cluster(*options: str, kubernetes: Mapping[str, str] | None = None) -> Cluster:
    """A cluster in fresh directories with short names (a socket's path is limited), started. On Kubernetes, with what
    ``kubernetes`` gives to ``on_kubernetes.options_for``, where that is chosen or ``kubernetes`` is given."""
    root = Path(tempfile.mkdtemp(prefix="slurmk-"))
    root.chmod(0o755)
    work = root / "work"
    work.mkdir()
    work.chmod(0o1777)
    if on_kubernetes.CHOSEN or kubernetes is not None:
        options = on_kubernetes.options_for(root, **(kubernetes or {}))
    cluster = Cluster(root / "d", work, options=options)
    cluster.up()
    return cluster


def end_cluster(cluster: Cluster) -> None:
    """End it and remove its directories."""
    cluster.down()
    if "--kubernetes" in cluster.options:
        on_kubernetes.clean(cluster.directory.parent)
    shutil.rmtree(cluster.directory.parent, ignore_errors=True)
