"""A Kubernetes of the tests' own, that they may hurt: its API server can be killed, and what a controller says to it goes
through a proxy that loses, delays, refuses and counts requests.

``SLURMK_LAB_SCRIPT`` names the script that makes such a cluster (start, stop, env). It is started in ``KUBERNETES_LAB_DIR`` if
that is set, where it may run already and then goes on running, or else in a folder that is removed afterwards.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

Manifest = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]


class Lab:
    """The cluster. ``directory`` is its state."""

    def __init__(self, script: str, directory: Path) -> None:
        self.script = script
        self.directory = directory
        self.kubeconfig = directory / "admin.kubeconfig"
        self._environment = dict(os.environ, KUBERNETES_LAB_DIR=str(directory))
        self._environment.setdefault("KUBERNETES_LAB_PORT", "28300")
        self._kubectl = ""

    def start(self) -> None:
        """Start what does not run."""
        subprocess.run(
            [self.script, "start"], env=self._environment, check=True, timeout=240, stdout=subprocess.DEVNULL, stderr=None
        )
        said = subprocess.run([self.script, "env"], env=self._environment, check=True, capture_output=True, text=True).stdout
        path = next(word for word in said.split() if word.startswith("PATH=")).removeprefix("PATH=").split(":")[0]
        self._kubectl = f"{path}/kubectl"

    def stop(self) -> None:
        subprocess.run([self.script, "stop"], env=self._environment, check=False, timeout=60, stdout=subprocess.DEVNULL)

    @property
    def running(self) -> bool:
        return self.pid("apiserver") is not None

    def pid(self, program: str) -> int | None:
        """Of a program of the cluster that runs and is the one that was started."""
        with suppress(OSError, ValueError, IndexError):
            number, started = (self.directory / "run" / f"{program}.pid").read_text().split()
            values = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            return int(number) if values[19] == started and values[0] != "Z" else None
        return None

    def kill(self, program: str) -> None:
        pid = self.pid(program)
        assert pid is not None, f"{program} does not run"
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.pid(program) is None, 10)

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            [self._kubectl, "--kubeconfig", str(self.kubeconfig), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0 or not check, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def get(self, kind: str, namespace: str, *arguments: str) -> list[Manifest]:
        items: list[Manifest] = json.loads(self.kubectl("-n", namespace, "get", kind, "-o", "json", *arguments))["items"]
        return items

    @contextmanager
    def namespace(self, name: str) -> Iterator[str]:
        """A namespace that is gone afterwards, with all that is in it."""
        self.kubectl("create", "namespace", name)
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false", check=False)


@contextmanager
def started_lab() -> Iterator[Lab | None]:
    """The lab, or None where no script is named."""
    script = os.environ.get("SLURMK_LAB_SCRIPT", "")
    if not os.access(script, os.X_OK):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="slurmk-lab-", ignore_cleanup_errors=True) as temporary:
        lab = Lab(script, Path(os.environ.get("KUBERNETES_LAB_DIR") or temporary))
        ran = lab.running
        lab.start()
        try:
            yield lab
        finally:
            if not ran:
                lab.stop()


def until(holds: Callable[[], Any], seconds: float, what: str = "", pause: float = 0.1) -> Any:
    """Wait until something holds, and give what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < end, what or "it did not come about in time"
        time.sleep(pause)


# ------------------------------------------------------------------------------------------------ the way to it


@dataclass
class Fault:
    """What happens to requests that match: ``do`` gives an action's name and its argument.

    ``status`` (code, reason, seconds for Retry-After): an answer of ours. ``drop``: no answer, and nothing is done.
    ``lose``: it is done, and the answer is lost. ``delay`` (seconds). ``call`` (function): something is done first. Each
    ``times`` times.
    """

    matches: Callable[[str, str], bool]
    action: str
    argument: Any = None
    times: int = 1
    done: int = 0


@dataclass
class Proxy:
    """Passes on what is said to the API server, at ``http://127.0.0.1:PORT``."""

    lab: Lab
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    written_at: list[float] = field(default_factory=list)
    creations: Counter[str] = field(default_factory=Counter)  # POST answered 201, by kind and name

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._prepare())
        self.up()

    def stop(self) -> None:
        self.down()
        self._run(self._session.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def up(self) -> None:
        self._run(self._listen())

    def down(self) -> None:
        """Refuse connections, and cut those that there are."""
        self._run(self._close())

    def cut_watches(self) -> None:
        self._loop.call_soon_threadsafe(self._cut)

    def add(self, matches: Callable[[str, str], bool], action: str, argument: Any = None, times: int = 1) -> Fault:
        fault = Fault(matches, action, argument, times)
        self.faults.append(fault)
        return fault

    def kubeconfig(self, path: Path) -> Path:
        """A kubeconfig that leads here."""
        cluster = {"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "proxy", "context": {"cluster": "proxy", "user": "me"}}
        users = [{"name": "me", "user": {}}]
        content = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "proxy"}
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **content}))
        return path

    # -------------------------------------------------------------------- in the thread

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _prepare(self) -> None:
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = cluster["server"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile(mode="wb", suffix=".pem") as file:
            file.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            file.flush()
            context.load_cert_chain(file.name)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, ssl=context))
        self._streams: set[Any] = set()
        self._open: set[Any] = set()

    async def _listen(self) -> None:
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        for transport in list(self._open):
            transport.abort()
        await self._runner.cleanup()

    def _cut(self) -> None:
        for transport in list(self._streams):
            transport.abort()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        self._open.add(transport)
        try:
            return await self._faulty(request)
        finally:
            self._open.discard(transport)

    async def _faulty(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        write = request.method not in ("GET", "HEAD")
        if write:
            self.writes[request.method] += 1
            self.written_at.append(time.monotonic())
        lost = False
        for fault in list(self.faults):
            if fault.done < fault.times and fault.matches(request.method, request.path_qs):
                fault.done += 1
                if fault.action == "status":
                    return _status(*fault.argument)
                if fault.action == "drop":
                    return self._abort(request)
                if fault.action == "delay":
                    await asyncio.sleep(fault.argument)
                elif fault.action == "call":
                    fault.argument()
                lost = lost or fault.action == "lose"
        return await self._forward(request, body, lost=lost)

    @staticmethod
    def _abort(request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=499)

    async def _forward(self, request: web.Request, body: bytes, *, lost: bool) -> web.StreamResponse:
        kept = ("Accept", "Content-Type")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        address = self._server + request.path_qs
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        try:
            async with self._session.request(
                request.method, address, data=body or None, headers=headers, timeout=timeout
            ) as answer:
                if "watch=true" in request.path_qs:
                    return await self._stream(request, answer)
                content = await answer.read()
        except (aiohttp.ClientError, OSError):
            return self._abort(request)
        if request.method == "POST" and answer.status == 201:
            made = json.loads(content)
            self.creations[f"{made['kind']} {made['metadata'].get('name', '')}"] += 1
        if lost:
            return self._abort(request)
        again = {"Retry-After": answer.headers["Retry-After"]} if "Retry-After" in answer.headers else {}
        return web.Response(status=answer.status, body=content, headers={"Content-Type": "application/json", **again})

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        transport = request.transport
        self._streams.add(transport)
        try:
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
        except (OSError, aiohttp.ClientError):
            self._abort(request)
        finally:
            self._streams.discard(transport)
        return response


def _status(code: int, reason: str, after: int | None = None) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"{reason} by test",
    }
    return web.json_response(body, status=code, headers={} if after is None else {"Retry-After": str(after)})


# ------------------------------------------------------------------------------------------------ controllers


class Controller:
    """A slurmk controller in a directory of its own, and its commands."""

    def __init__(self, directory: Path, settings: Manifest, kubeconfig: Path, database: str = "") -> None:
        self.directory = directory
        self.file = directory.with_name(directory.name + ".yaml")
        self.file.write_text(yaml.safe_dump(settings))
        self._options = ["--kubernetes", str(self.file), "--kubeconfig", str(kubeconfig)]
        self._options += ["--database", database] if database else []
        self.process: subprocess.Popen[bytes] | None = None
        # of this repository, whatever the directory that the tests are run in
        self._environment = dict(os.environ, SLURMK_DIR=str(directory), PYTHONPATH=str(REPOSITORY), PYTHONUNBUFFERED="1")

    def launch(self) -> None:
        """Start the process; it need not serve yet."""
        self.directory.mkdir(exist_ok=True)
        log = open(self.directory.with_name(self.directory.name + ".log"), "ab")  # noqa: SIM115  (the process keeps it)
        command = [sys.executable, "-m", "slurmk.client.slurmk", "up", "--dir", str(self.directory), *self._options]
        self.process = subprocess.Popen(
            command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()

    def start(self, seconds: float = 60) -> None:
        """Start it and wait until it serves."""
        self.launch()
        until(lambda: self.serves() or self.ended(), seconds, "the controller does not serve")
        assert not self.ended(), "the controller ended"

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def serves(self) -> bool:
        return self.run("squeue", "-h", check=False, timeout=5).returncode == 0

    def pids(self) -> list[int]:
        """Of the controller, by the directory that it works in."""
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                with suppress(OSError):
                    words = (path / "cmdline").read_bytes().split(b"\0")
                    if b"slurmk.daemon" in words and os.fsencode(self.directory) in words:
                        found.append(int(path.name))
        return found

    def kill(self) -> None:
        """As a power cut would."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        until(lambda: not self.pids(), 10)

    def run(self, command: str, *arguments: str, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands."""
        program = str(self.directory / "bin" / command)
        try:
            done = subprocess.run(
                [program, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                cwd="/tmp",
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            done = subprocess.CompletedProcess([program], 127, "", str(error))
        assert done.returncode == 0 or not check, f"{command} {' '.join(arguments)}: {done.stderr}"
        return done

    def status(self) -> str:
        """What ``slurmk status`` says."""
        command = [sys.executable, "-m", "slurmk.client.slurmk", "status", "--dir", str(self.directory)]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False).stdout

    def submit(self, *options: str, count: int = 0) -> int:
        array = ["--array", f"0-{count - 1}"] if count else []
        return int(self.run("sbatch", "--parsable", "--mem=16", *array, *options, "--wrap", "true").stdout)

    def states(self, *jobs: int) -> list[str]:
        """What accounting says of jobs, of arrays element by element, each as it is now."""
        wanted = ",".join(map(str, jobs))
        said = self.run("sacct", "-X", "-n", "-P", "-j", wanted, "-o", "State").stdout
        return [line.split()[0] for line in said.splitlines() if line]

    def attempts(self, job: int) -> list[str]:
        """The states of all attempts of a job."""
        said = self.run("sacct", "-X", "-D", "-n", "-P", "-j", str(job), "-o", "State").stdout
        return [line.split()[0] for line in said.splitlines() if line]

    def shown(self, job: int, field: str) -> str:
        """One value of squeue's, by the name that its --Format has for it."""
        return self.run("squeue", "-h", "-j", str(job), "-O", f"{field}:300").stdout.strip()

    def seconds(self, job: int, field: str) -> float:
        """A time of squeue's as Unix seconds."""
        return datetime.fromisoformat(self.shown(job, field)).timestamp()

    def wait_for(self, job: int, *states: str, seconds: float = 30) -> str:
        """Until the job is in one of the states; gives which."""
        last: list[str] = []

        def there() -> str:
            last[:] = self.states(job)
            return last[0] if last and last[0] in states else ""

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := there():
                return found
            time.sleep(0.2)
        raise AssertionError(f"job {job} is {last}, not {states}")
