"""stepd in a pod: the container's first process, and the whole of what slurmk adds to the image that a job brings.

A small shell script from the programs' ConfigMap finds a Python and runs this. What the job is comes in its Secret; that
it may begin is the controller's to say, so that a pod that somebody made a second time runs nothing. The pod then tells
its address, and learns from the controller those of the job's other pods, which it writes to its hosts file: the names of
nodes, and what pods call themselves, resolve without any DNS.

stepd runs as the job's user here, so a process of the job can read what stepd reads and speak as it does. The controller
believes it only what concerns that job (see ``bridge.link``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
import zlib

from slurmk import wire
from slurmk.stepd import cgroup, messages, processes, texts
from slurmk.stepd.node import Node, claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Sequence

    Message = Dict[str, Any]

RUN = "/slurmk/run"
SECRET = "/slurmk/job"
"""Where the pod's own directory and the job's Secret are mounted (see bridge.kubernetes.programs)."""

TERMINATION_LOG = "/dev/termination-log"
LONGEST_MESSAGE = 4000
"""Bytes that Kubernetes keeps of it."""

OWN_OF_CONTAINER = ("HOME", "HOSTNAME", "LC_CTYPE", "OLDPWD", "PWD", "SHLVL", "TERM", "_")
"""Variables of the container that its runtime or shell set, not its image."""

ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,252})")

MARK = "# slurmk: the job's nodes"

_COMMANDS = """
sbatch srun salloc squeue scancel sinfo sacct scontrol sacctmgr sprio sdiag sstat sattach sbcast strigger
scrontab sshare sreport swait
"""
COMMANDS = _COMMANDS.split()

SHIM = """import sys
sys.path.insert(0, {library!r})
from slurmk.client.shim import main
main(sys.argv[0].rpartition("/")[2], {address!r})
"""

LOCAL_PART = """import sys
sys.path.insert(0, {library!r})
from slurmk.stepd.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""``stepd srun`` and its kin, which the user's commands become (STEPD_IN_POD of bridge.launcher)."""

LONGEST_SHEBANG = 120


class Pod(Node):
    """The stepd of a pod. ``place`` also has address (the pod's), instance (which pod it is of those that there may have
    been in this place) and hosts (a file, empty where the pod is alone). ``described`` is what the Secret says of the job."""

    def __init__(self, place: Mapping[str, Any], described: Dict[str, Any]) -> None:
        super().__init__(place)
        self.described = described
        self.deleted = False
        self._challenge = ""
        self._trusted = False

    # ---------------------------------------------------------------- the controller

    def _registration(self, challenge: str) -> Message:
        self._challenge = messages.nonce()
        self._trusted = False
        return dict(
            super()._registration(challenge),
            nonce=self._challenge,
            instance=self.place["instance"],
            address=self.place["address"],
            host=socket.gethostname(),
            described=bool(self.described),
        )

    async def _obey(self, message: Message) -> None:
        kind = message.get("kind")
        if not self._trusted:
            if kind == "unknown" and self._released:  # the job is forgotten, and so is what it could be proven with
                self._abandon()
                return
            if kind != "welcome" or not messages.proven(
                self.place["secret"], self._challenge, "controller", message.get("proof")
            ):
                raise wire.WireError("who answered is not the controller")
            self._trusted = True
        elif kind == "begin":
            self._count_from(message.get("time"), self.described)
            await self._begin(self.described)
        elif kind == "job":
            self._count_from(message.get("time"), message["job"])
            await super()._obey(message)
        elif kind == "peers":
            self._learn(message["addresses"])
        else:
            await super()._obey(message)

    async def _begin(self, job: Mapping[str, Any]) -> None:
        await super()._begin(adapted(job, self.place, os.environ) if not self.job else job)

    def _count_from(self, time: Any, job: Dict[str, Any]) -> None:
        """The job's time begins now, at the controller's ``time``: what its pods took to come is not its own."""
        late = time - job["start_time"] if isinstance(time, int) and not self._informed else 0
        if late > 0:
            job["start_time"] += late
            if job["end_time"] is not None:
                job["end_time"] += late
            if self._end_time is not None:
                self._end_time += late

    def _learn(self, addresses: Mapping[str, Any]) -> None:
        if self.place["hosts"]:
            write_hosts(str(self.place["hosts"]), addresses)

    # ---------------------------------------------------------------- the end

    def _told_to_end(self) -> None:
        """The pod is being deleted, and not because the controller ended the job: else it would have said so first."""
        if not self.terminating and not self.deleted:
            self.deleted = True
            self.reports.add("deleted")
            self.terminate(float(self.job.get("kill_wait", 30)))

    @property
    def exit_code(self) -> int:
        """What the container ends with: as a shell would show the batch script's end, and 1 when the pod never began."""
        if not self.job:
            return 1
        return 0 if self.batch_status is None else texts.exit_code(self.batch_status) & 0xFF


def adapted(job: Mapping[str, Any], place: Mapping[str, Any], environ: Mapping[str, str]) -> Dict[str, Any]:
    """The job's description as it is true in this pod."""
    run = str(place["run"])
    image = {name: value for name, value in environ.items() if not name.startswith("SLURMK_") and name not in OWN_OF_CONTAINER}
    brought = bool(job["request"].get("container"))
    submitted = job["environment"]
    return dict(
        job,
        nodes=[dict(node, gres=numbered(node["gres"])) for node in job["nodes"]],
        environment=dict(submitted, **image) if brought else dict(image, **submitted),
        listen=place["address"],
        advertise=place["address"],
        commands=os.path.join(run, "bin"),
        variables=dict(job.get("variables", {}), **variables(place)),
    )


def variables(place: Mapping[str, Any]) -> Dict[str, str]:
    """What tells commands in the job where the controller is, and where to find what they prove to it."""
    return {"SLURMK_SOCKET": str(place["controller"]), "SLURMK_CREDENTIAL": os.path.join(str(place["run"]), "credential")}


def numbered(gres: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """GRES of one node as a container sees them: its GPUs are numbered from 0, whichever of the node's they are."""
    found, seen = [], 0
    for each in gres:
        kept = dict(each)
        if each["name"] == "gpu":
            kept["indices"] = list(range(seen, seen + int(each["count"])))
            seen += int(each["count"])
        found.append(kept)
    return found


def write_hosts(path: str, addresses: Mapping[str, Any]) -> None:
    """Put the addresses of the job's nodes into a hosts file, after what else it says. It is written in place, because
    it is mounted over /etc/hosts."""
    lines = [
        "%s\t%s\n" % (address, name)
        for name, address in sorted(addresses.items())
        if isinstance(address, str) and ADDRESS.fullmatch(address) and HOST.fullmatch(name)
    ]
    with contextlib.suppress(OSError), open(path, "r+", encoding="utf-8", errors="surrogateescape") as file:
        kept = file.read().partition(MARK)[0]
        file.seek(0)
        file.write(kept + MARK + "\n" + "".join(lines))
        file.truncate()


# ------------------------------------------------------------------------------------------------- before it begins


def node_of(environ: Mapping[str, str]) -> str:
    """The Slurm name of the node that this pod stands for; ValueError where the environment does not tell."""
    if environ.get("SLURMK_NODE"):
        return environ["SLURMK_NODE"]
    nodes = dict(pair.split("=", 1) for pair in environ.get("SLURMK_NODES", "").split(",") if "=" in pair)
    host = environ.get("SLURMK_KUBERNETES_NODE", "")
    if host not in nodes:
        raise ValueError("the pod does not say which of the job's nodes it is")
    return nodes[host]


def read_secret(folder: str) -> "tuple[Dict[str, Any], Dict[str, Any]]":
    """What the mounted Secret says: the place, and the job's description (empty where it was too large for a Secret)."""
    with open(os.path.join(folder, "place"), encoding="utf-8") as file:
        place = json.load(file)
    described: Dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "description"), "rb") as packed:
        described = json.loads(zlib.decompress(packed.read()))
    return place, described


def install(run: str, place: Mapping[str, Any]) -> None:
    """Put the commands in place below the pod's own directory, for the Python that runs this; their library is there."""
    library, binaries = os.path.join(run, "lib"), os.path.join(run, "bin")
    os.makedirs(binaries, exist_ok=True)
    shim = os.path.join(run, "shim")
    _write(shim, _shebang() + SHIM.format(library=library, address=os.fsencode(str(place["controller"]))), 0o755)
    for command in COMMANDS:
        with contextlib.suppress(FileExistsError):
            os.symlink("../shim", os.path.join(binaries, command))
    _write(os.path.join(run, "stepd"), _shebang() + LOCAL_PART.format(library=library), 0o755)
    credential = "%d %d %s\n" % (place["job"], place["restart"], messages.command_secret(str(place["secret"])))
    _write(os.path.join(run, "credential"), credential, 0o600)


def _shebang() -> str:
    line = "#!%s -ISE\n" % sys.executable
    if len(os.fsencode(line)) <= LONGEST_SHEBANG and " " not in sys.executable:
        return line
    return "#!/bin/sh\n'''exec' '%s' -ISE \"$0\" \"$@\"\n'''\n" % sys.executable


def _write(path: str, text: str, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(descriptor, mode)
        file.write(text)


def complain(text: str, log: str = TERMINATION_LOG) -> None:
    """Say why there is no job: to the container's log and, for the pod's status, to the termination log."""
    print("slurmk: error: %s" % text, file=sys.stderr, flush=True)
    with contextlib.suppress(OSError), open(log, "w", encoding="utf-8", errors="replace") as file:
        file.write(("slurmk: error: %s" % text)[:LONGEST_MESSAGE])


async def _live(place: Mapping[str, Any], described: Dict[str, Any]) -> int:
    pod = Pod(place, described)
    await pod.run()
    return pod.exit_code


def main(arguments: List[str]) -> int:
    """``pod``: everything else is in the environment and in the mounted Secret."""
    environ = os.environ
    run, secret = environ.get("SLURMK_RUN", RUN), environ.get("SLURMK_SECRET", SECRET)
    try:
        place, described = read_secret(secret)
        place.update(
            node=node_of(environ),
            directory=os.path.join(run, "node"),
            run=run,
            address=environ.get("SLURMK_POD_IP") or "127.0.0.1",
            instance=environ.get("SLURMK_POD_UID") or messages.nonce(),
            hosts=os.path.join(run, "hosts") if os.path.exists(os.path.join(run, "hosts")) else "",
        )
        os.makedirs(str(place["directory"]), exist_ok=True)
        install(run, place)
        if claim(str(place["directory"])) is None:
            complain("this pod has run already")
            return 1
    except (OSError, ValueError, KeyError, zlib.error) as error:
        complain("the pod of a job cannot begin: %s" % error)
        return 1
    os.chdir("/")
    processes.set_name("stepd %s" % place["job"])
    processes.adopt_orphans()
    cgroup.in_container()
    try:
        return asyncio.run(_live(place, described))
    except BaseException as error:
        import traceback

        traceback.print_exc()
        complain("stepd failed: %r" % error)
        return 1
