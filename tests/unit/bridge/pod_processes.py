"""Pods without Kubernetes: what would run in each is a process here, with folders in the place of its volumes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedded_launcher import SITE, Cluster, make_job

from bridge.kubernetes.programs import described as description_of
from bridge.kubernetes.programs import program_files, secret_data
from bridge.link import Attempt, Seat, StepdLink, attempt_of, attempt_secret, command_secret, step_secret
from slurmk.commands.call import Call, Output
from slurmk.core.events import Caller, KillFlag
from slurmk.daemon.connection import Doorkeeper, Member
from slurmk.model.job import Job, JobFiles
from slurmk.model.step import StepRequest


class PodProcesses:
    """As much of a launcher as ``embedded_launcher.Cluster`` uses, with stepds in the role that they have in pods."""

    def __init__(self, folder: Path, controller: str, link: StepdLink) -> None:
        self.folder = folder
        self.controller = controller
        self.link = link
        self.python = sys.executable
        self.pods: dict[tuple[int, str], subprocess.Popen[bytes]] = {}
        self.jobs: dict[tuple[int, int], tuple[Job, JobFiles]] = {}
        programs = folder / "programs"
        programs.mkdir()
        for name, content in program_files().items():
            (programs / name).write_bytes(content)

    def run_folder(self, job_id: int, node: str, instance: str = "1") -> Path:
        """The pod's own directory."""
        return self.folder / f"{job_id}-{node}-{instance}"

    async def launch(self, job: Job, files: JobFiles) -> None:
        assert job.allocation is not None
        self.expect(job, files)
        for node in job.allocation.nodes:
            self.start(job, files, node)

    def expect(self, job: Job, files: JobFiles) -> Attempt:
        """Let the link know of the attempt."""
        assert job.allocation is not None
        self.jobs[job.job_id, job.restarts] = (job, files)
        secret = attempt_secret(files.secret, job.job_id, job.restarts)
        nodes = job.allocation.nodes
        attempt = attempt_of(job.job_id, job.restarts, secret, lambda: description_of(job, files, SITE), nodes, pods=True)
        self.link.expect(attempt)
        return attempt

    def start(
        self,
        job: Job,
        files: JobFiles,
        node: str,
        instance: str = "1",
        described: bool = True,
        image: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """One pod. ``described`` is false for one whose Secret could not hold the description; ``image`` is what the image
        puts into the environment."""
        assert job.allocation is not None
        run = self.run_folder(job.job_id, node, instance)
        secret = run.with_name(run.name + ".secret")
        run.mkdir()
        secret.mkdir()
        for name, content in secret_data(job, files, SITE, self.controller).items():
            if described or name != "description":
                (secret / name).write_bytes(content)
        if len(job.allocation.nodes) > 1:
            (run / "hosts").write_text("127.0.0.1 localhost\n")
        environment = {
            "PATH": os.environ["PATH"],
            "SLURMK_RUN": str(run),
            "SLURMK_SECRET": str(secret),
            "SLURMK_NODE": node,
            "SLURMK_POD_IP": "127.0.0.1",
            "SLURMK_POD_UID": f"{node}-{instance}",
            **(image or {}),
        }
        with open(run.with_name(run.name + ".log"), "wb") as log:
            pod = subprocess.Popen(
                [self.python, "-ISE", str(self.folder / "programs" / "stepd.pyz"), "pod"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        self.pods[job.job_id, f"{node}-{instance}"] = pod
        return pod

    async def signal(
        self, job_id: int, restart: int, signal: int, step_id: int | None = None, flags: KillFlag = KillFlag.NONE
    ) -> None:
        self.link.signal((job_id, restart), signal, step_id, int(flags))

    async def terminate(
        self,
        job_id: int,
        restart: int,
        kill_wait: int,
        nodes: Sequence[str],
        cause: str = "",
        ended: Mapping[str, int] | None = None,
    ) -> None:
        self.link.terminate((job_id, restart), kill_wait, nodes, cause, ended)

    async def shrink(self, job_id: int, restart: int, nodes: Sequence[str], lost: Sequence[str]) -> None:
        self.link.shrink((job_id, restart), nodes)
        self.link.terminate((job_id, restart), 0, lost)

    async def update_limit(self, job_id: int, restart: int, end_time: int | None) -> None:
        self.link.limit((job_id, restart), end_time)

    async def ask(
        self, job_id: int, restart: int, nodes: Sequence[str], question: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        return await self.link.ask((job_id, restart), nodes, question)

    def access(self, job: Job, secret: bytes) -> Mapping[str, str]:
        attempt = self.link.attempts[job.job_id, job.restarts]
        return {
            "SLURMK_SRUN": f"{sys.executable} -ISE {self.folder / 'programs' / 'stepd.pyz'} srun",
            "SLURMK_STEP_MANAGER": attempt.manager,
            "SLURMK_JOB_SECRET": step_secret(attempt.secret),
        }

    def member(self, job_id: int, restart: int) -> Member | None:
        """What daemon.members finds: a member while the attempt lives."""
        attempt = self.link.attempts.get((job_id, restart))
        if attempt is None:
            return None
        job, _ = self.jobs[job_id, restart]
        caller = Caller(job.credentials.user_id, job.credentials.user_name, False)
        return Member(bytes.fromhex(command_secret(attempt.secret)), caller, job.credentials.group_id)

    async def stop(self) -> None:
        """End every pod that still runs."""
        for pod in self.pods.values():
            if pod.poll() is None:
                pod.kill()
            pod.wait(10)


@dataclass
class Pods(Cluster):
    """The controller's side in a test, with commands from pods in ``calls``."""

    calls: list[Call] = field(default_factory=list)

    async def answer(self, call: Call, output: Output) -> int:
        """Commands that pods run: ``srun`` makes a step; any other says who it was taken for."""
        self.calls.append(call)
        if call.command != "srun":
            output.write(f"{call.caller.user_name} {call.caller.user_id} {call.group_id} {call.remote} {call.arguments[-1:]}\n")
            return 4
        job_id = int(call.environment["SLURM_JOB_ID"])
        step = StepRequest(
            name="step",
            argv=tuple(call.arguments),
            cwd=call.directory,
            umask=call.umask,
            submit_line="srun",
            job_id=job_id,
            tasks=2,
            minimum_nodes=2,
        )
        access = self.launcher.access(self.jobs[job_id], self.files[job_id].secret)
        local = Path(call.environment["SLURMK_CREDENTIAL"]).with_name("stepd")  # STEPD_IN_POD is below / in a real one
        output.execute([str(local), "srun"], {**call.environment, **access, **step.to_variables()})
        return 0


@asynccontextmanager
async def pods(folder: Path) -> AsyncIterator[Pods]:
    """A controller that listens by TCP, and nothing else of one; its pods are ended with it."""
    work = folder / "work"
    work.mkdir()

    def forget(attempt: Attempt, seat: Seat) -> None:
        if all(each.released for each in attempt.seats.values()):
            link.forget(attempt)

    link = StepdLink(time.time, lambda attempt, seat: None, forget)

    async def look_up(user_id: int) -> Caller:
        raise AssertionError("nobody is known by a uid here")

    cluster: Pods
    door = Doorkeeper(
        lambda call, output: cluster.answer(call, output),
        look_up,
        link.attach,
        1000,
        lambda job_id, restart: cluster.launcher.member(job_id, restart),  # type: ignore[attr-defined]
    )
    server = await asyncio.get_running_loop().create_server(door.remote, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    launcher = PodProcesses(folder, f"127.0.0.1:{port}", link)
    cluster = Pods(launcher, work)  # type: ignore[arg-type]
    link.report = cluster.report
    try:
        yield cluster
    finally:
        await launcher.stop()
        server.close()
        await door.close()
        await door.let_stepds_go()


def logs(cluster: Pods) -> str:
    """What all pods wrote to their logs."""
    launcher: PodProcesses = cluster.launcher  # type: ignore[assignment]
    with contextlib.suppress(OSError):
        return "".join(path.read_text() for path in launcher.folder.glob("*.log"))
    return ""


__all__ = ("PodProcesses", "Pods", "logs", "make_job", "pods")
