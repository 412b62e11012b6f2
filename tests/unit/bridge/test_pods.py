"""stepd as a pod's first process: what a job sees there, whom it may speak as, and how a pod ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pod_processes import PodProcesses, Pods, logs, make_job, pods
from test_stepd_archive import oldest_python

from bridge.kubernetes.programs import LEAST_MEMORY, boot, group, passwd, program_files, programs, secret_data
from bridge.kubernetes.render import Context, render
from bridge.kubernetes.settings import Kind, PodSettings, Settings
from bridge.kubernetes.templating import Templates
from bridge.link import attempt_secret, command_secret
from slurmk import wire
from slurmk.client import installation
from slurmk.core.events import BatchEnded, JobStarted, NodesReleased, StepEnded
from slurmk.model.site import Site
from slurmk.stepd import messages
from slurmk.stepd import pod as pod_module
from slurmk.stepd.pod import adapted, node_of, numbered, write_hosts

Story = Callable[[Pods, PodProcesses], Awaitable[None]]


def tell(folder: Path, story: Story) -> None:
    async def whole() -> None:
        async with pods(folder) as cluster:
            try:
                await story(cluster, cluster.launcher)  # type: ignore[arg-type]
            except BaseException:
                print(logs(cluster))
                raise

    asyncio.run(whole())


async def ended(pod: subprocess.Popen[bytes], seconds: float = 15) -> int:
    return await asyncio.wait_for(asyncio.to_thread(pod.wait), seconds)


# ------------------------------------------------------------------------------------------------- a job's life


def test_a_job_runs_and_its_pod_ends_as_its_script_did(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        status, text = await cluster.run("#!/bin/sh\necho $SLURMD_NODENAME $SUBMITTED $OF_IMAGE $(id -u); exit 7\n")
        assert (status, text) == (7 << 8, f"n1 yes {os.getuid()}\n")
        assert await ended(launcher.pods[5, "n1-1"]) == 7

    tell(tmp_path, story)


def test_a_description_that_no_secret_holds_comes_from_the_controller(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        job, files = make_job(cluster.work, 5, b"#!/bin/sh\necho told\n")
        cluster.jobs[5], cluster.files[5] = job, files
        launcher.expect(job, files)
        launcher.start(job, files, "n1", described=False)
        assert (await cluster.ended()).exit_code == 0
        assert (cluster.work / "slurm-5.out").read_text() == "told\n"

    tell(tmp_path, story)
    noise = os.urandom(1_200_000).hex().encode()
    job, files = make_job(tmp_path, 5, b"#!/bin/sh\n#" + noise)
    data = secret_data(job, files, Site("x", (), ()), "h:1")
    assert "description" not in data
    assert sum(map(len, data.values())) < 1 << 20


def test_pods_begin_together_and_know_each_other(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        job, files = make_job(
            cluster.work, 5, b"#!/bin/sh\nhostname; srun sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME'\n", nodes=2
        )
        cluster.jobs[5], cluster.files[5] = job, files
        attempt = launcher.expect(job, files)
        launcher.start(job, files, "n1")
        await cluster.until(lambda: attempt.seats["n1"].address)
        await asyncio.sleep(0.3)
        assert not attempt.seats["n1"].begun
        assert not cluster.events
        launcher.start(job, files, "n2")
        assert (await cluster.ended()).exit_code == 0
        lines = sorted((cluster.work / "slurm-5.out").read_text().splitlines()[1:])
        assert lines == ["0 n1", "1 n2"]
        before, _, learnt = (launcher.run_folder(5, "n2") / "hosts").read_text().partition(f"{pod_module.MARK}\n")
        assert before == "127.0.0.1 localhost\n"
        assert set(learnt.splitlines()) == {f"127.0.0.1\t{name}" for name in ("n1", "n2", socket.gethostname())}
        await cluster.release()
        assert cluster.found(StepEnded, 5)
        assert [await ended(each) for each in launcher.pods.values()] == [0, 0]

    tell(tmp_path, story)


def test_a_job_with_the_oldest_python(tmp_path: Path) -> None:
    python = oldest_python()
    if python is None:
        pytest.skip("no Python 3.8 here")

    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        launcher.python = str(python)
        script = "#!/bin/sh\nsqueue; head -1 $(command -v squeue); srun sh -c 'echo $SLURM_PROCID'; cat nothing; exit 2\n"
        await cluster.launch(script, nodes=2)
        assert (await cluster.ended()).exit_code == 2 << 8
        lines = (cluster.work / "slurm-5.out").read_text().splitlines()
        assert lines[1] == f"#!{python} -ISE"
        assert sorted(lines[2:4]) == ["0", "1"]
        await cluster.release()

    tell(tmp_path, story)


def test_a_second_pod_in_the_same_place_runs_nothing(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        job = await cluster.launch("#!/bin/sh\necho once >>runs; sleep 300\n")
        await cluster.until(lambda: cluster.found(JobStarted, 5))
        again = launcher.start(job, cluster.files[5], "n1", instance="2")
        assert await ended(again) == 1
        os.killpg(launcher.pods[5, "n1-1"].pid, signal.SIGKILL)
        after = launcher.start(job, cluster.files[5], "n1", instance="3")
        assert await ended(after) == 1
        launcher.expect(job, cluster.files[5]).started = True  # as the next controller knows it
        last = launcher.start(job, cluster.files[5], "n1", instance="4")
        assert await ended(last) == 1
        assert (cluster.work / "runs").read_text() == "once\n"
        assert not cluster.found(BatchEnded, 5)

    tell(tmp_path, story)


def test_the_link_may_be_cut_at_any_time(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        await cluster.launch("#!/bin/sh\nsleep 1; echo done\n")
        seat = launcher.link.attempts[5, 0].seats["n1"]
        for _ in range(3):
            await cluster.until(lambda: seat.writer is not None)
            assert seat.writer is not None
            seat.writer.close()
            await asyncio.sleep(0.2)
        assert (await cluster.ended()).exit_code == 0
        assert (cluster.work / "slurm-5.out").read_text() == "done\n"
        assert len(cluster.found(JobStarted, 5)) == 1

    tell(tmp_path, story)


def test_a_deleted_pod_ends_its_job_in_order_and_leaves_the_verdict_to_others(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        await cluster.launch("#!/bin/sh\ntrap 'echo terminated; exit 3' TERM\necho on; while :; do sleep 0.1; done\n")
        output = cluster.work / "slurm-5.out"
        await cluster.until(lambda: output.exists() and "on" in output.read_text())
        pod = launcher.pods[5, "n1-1"]
        pod.send_signal(signal.SIGTERM)  # as the kubelet does, to the first process alone
        attempt = launcher.link.attempts[5, 0]
        await cluster.until(lambda: cluster.found(NodesReleased, 5))
        assert await ended(pod) == 3
        assert "terminated\n" in output.read_text()
        assert attempt.deleted == {"n1"}
        assert (await cluster.ended()).exit_code == 3 << 8

    tell(tmp_path, story)


def test_a_time_limit_is_kept_without_the_controller(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        await cluster.launch("#!/bin/sh\nsleep 300\n", minutes=1)
        await cluster.until(lambda: cluster.found(JobStarted, 5))
        await launcher.update_limit(5, 0, int(time.time()) + 1)
        end = await cluster.ended()
        assert end.timed_out
        assert "DUE TO TIME LIMIT" in (cluster.work / "slurm-5.out").read_text()

    tell(tmp_path, story)


@pytest.mark.parametrize("described", [True, False])
def test_what_a_pod_takes_to_come_is_not_its_jobs_time(tmp_path: Path, described: bool) -> None:
    """Its limit would be over long ago."""

    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        script = b"#!/bin/sh\necho $SLURM_JOB_START_TIME $SLURM_JOB_END_TIME\n"
        job, files = make_job(cluster.work, 5, script, minutes=1, start_time=int(time.time()) - 500)
        cluster.jobs[5], cluster.files[5] = job, files
        attempt = launcher.expect(job, files)
        launcher.start(job, files, "n1", described=described)
        end = await cluster.ended()
        assert not end.timed_out
        begun = cluster.found(JobStarted, 5)[0].begun
        assert begun == attempt.begun > time.time() - 60
        assert (cluster.work / "slurm-5.out").read_text() == f"{attempt.begun} {attempt.begun + 60}\n"

    tell(tmp_path, story)


# ------------------------------------------------------------------------------------------------- commands in the job


def test_commands_in_a_job_are_its_users_while_it_lives(tmp_path: Path) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        script = "#!/bin/sh\nsqueue a 'b c'; echo $?; env -i SLURMK_CREDENTIAL=$SLURMK_CREDENTIAL $(command -v sinfo) x\n"
        job = await cluster.launch(script)
        await cluster.ended()
        who = job.credentials
        said = f"{who.user_name} {who.user_id} {who.group_id} True "
        assert (cluster.work / "slurm-5.out").read_text() == f"{said}['b c']\n4\n{said}['x']\n"
        run = launcher.run_folder(5, "n1")
        kept = (run / "credential").read_text()
        await cluster.release()
        await ended(launcher.pods[5, "n1-1"])
        (run / "credential").write_text(kept)
        late = await asyncio.to_thread(
            subprocess.run,
            [run / "bin" / "squeue"],
            env={"SLURMK_CREDENTIAL": str(run / "credential")},
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert (late.returncode, late.stdout, late.stderr) == (1, "", "squeue: error: Protocol authentication error\n")

    tell(tmp_path, story)


@pytest.mark.parametrize("whose", ["stepd's", "another attempt's", "another job's", "nobody's"])
def test_no_other_secret_is_good_for_commands(tmp_path: Path, whose: str) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        job = await cluster.launch("#!/bin/sh\nsleep 300\n")
        await cluster.until(lambda: cluster.found(JobStarted, 5))
        secret = cluster.files[5].secret
        given = {
            "stepd's": attempt_secret(secret, 5, 0).hex(),
            "another attempt's": command_secret(attempt_secret(secret, 5, 1)),
            "another job's": command_secret(attempt_secret(secret, 6, 0)),
            "nobody's": "00" * 32,
        }[whose]
        host, port = launcher.controller.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(wire.encode(wire.HELLO, b"1 squeue"))
        kind, challenge = await messages.read_frame(reader)
        assert kind == wire.CHALLENGE
        proof = messages.proof(given, challenge.decode(), f"{job.job_id} 0")
        writer.write(wire.encode(wire.PROOF, f"5 0 nonce {proof}".encode()))
        kind, text = await messages.read_frame(reader)
        assert (kind, text) == (wire.ERROR, b"squeue: error: Protocol authentication error\n")
        assert not cluster.calls

    tell(tmp_path, story)


@pytest.mark.parametrize(
    "frames",
    [
        wire.encode(wire.GO),
        wire.encode(wire.ARGUMENTS, b"x\0") + wire.encode(wire.GO),
        wire.encode(wire.PROOF, b"5 0 a"),
        wire.encode(wire.PROOF, b"x y z w"),
        wire.encode(wire.PROOF, b"99999999999999999999 0 a b"),
        wire.encode(wire.PROOF, b"5 0 a " + b"f" * 10_000),
        wire.encode(wire.PROOF, "5 0 é ö".encode()),
        wire.PROOF.to_bytes(1, "big") + (30 << 20).to_bytes(4, "big"),
    ],
)
def test_who_proves_nothing_is_not_heard(tmp_path: Path, frames: bytes) -> None:
    async def story(cluster: Pods, launcher: PodProcesses) -> None:
        await cluster.launch("#!/bin/sh\nsleep 300\n")
        host, port = launcher.controller.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(wire.encode(wire.HELLO, b"1 scancel") + frames)
        kinds = []
        while True:
            try:
                kinds.append((await messages.read_frame(reader))[0])
            except asyncio.IncompleteReadError:
                break
        assert kinds == [wire.CHALLENGE, wire.ERROR, wire.EXIT]
        assert not cluster.calls

    tell(tmp_path, story)


def test_a_shim_tells_its_environment_to_nobody_but_the_controller(tmp_path: Path) -> None:
    installation.install(tmp_path / "d")
    credential = tmp_path / "credential"
    credential.write_text("5 0 " + "ab" * 32)
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        impostor = subprocess.Popen(
            [tmp_path / "d" / "lib" / "python" / "squeue"],
            env={
                "SLURMK_SOCKET": f"tcp:127.0.0.1:{server.getsockname()[1]}",
                "SLURMK_CREDENTIAL": str(credential),
                "VERY": "private",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            connection.sendall(wire.encode(wire.CHALLENGE, b"0" * 32))
            while b" " not in heard[20:]:
                heard += connection.recv(65536)
            connection.sendall(wire.encode(wire.WELCOME, b"0" * 64) + wire.encode(wire.EXIT, b"0"))
            while piece := connection.recv(65536):
                heard += piece
        assert impostor.wait(20) == 1
    assert b"private" not in heard
    assert (b"ab" * 32) not in heard


# ------------------------------------------------------------------------------------------------- what a pod is made of


def test_the_programs_are_small_and_the_same_each_time() -> None:
    manifest = programs("jobs", "c")
    assert manifest == programs("jobs", "c")
    assert len(json.dumps(manifest)) < 400_000  # of the 1 MiB that a ConfigMap holds
    assert manifest["metadata"]["namespace"] == "jobs"


def test_the_commands_of_pods_are_all_that_there_are() -> None:
    assert set(pod_module.COMMANDS) == set(installation.COMMANDS)


def test_an_image_without_python_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "output").write_text(f"{tmp_path}/slurm 5 $x.out\n")
    script = boot(secret=str(tmp_path / "secret"), log=str(tmp_path / "termination"))
    found = script.replace("/usr/bin/python3 /usr/local/bin/python3 /opt/conda/bin/python3 /opt/venv/bin/python3", "")
    done = subprocess.run(["/bin/sh", "-c", found], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    words = "slurmk: error: the image has no Python 3.8 or newer (python3), without which it cannot run jobs"
    assert (done.returncode, done.stderr) == (127, words + "\n")
    assert (tmp_path / "slurm 5 $x.out").read_text() == words + "\n"
    assert (tmp_path / "termination").read_text() == words


def test_an_old_python_is_passed_over_for_a_better_one(tmp_path: Path) -> None:
    for name, body in (("python3", "exit 1"), ("python9", 'case "$*" in *pod) echo "$@";; esac')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = boot(programs="/p").replace("/usr/bin/python3", f"{tmp_path}/python9")
    done = subprocess.run(["/bin/sh", "-c", script], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.stdout == "-ISE /p/stepd.pyz pod\n"


def test_a_secret_that_cannot_be_read_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "stepd.pyz").write_bytes(program_files()["stepd.pyz"])
    done = subprocess.run(
        ["python3", "-ISE", str(tmp_path / "stepd.pyz"), "pod"],
        env={"PATH": os.environ["PATH"], "SLURMK_RUN": str(tmp_path / "run"), "SLURMK_SECRET": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("slurmk: error: the pod of a job cannot begin: ")
    assert len(done.stderr.splitlines()) == 1


def test_users_and_groups_have_names_and_nothing_else_gets_in(tmp_path: Path) -> None:
    job, files = make_job(
        tmp_path, 5, b"#!/bin/sh\n", environment={b"HOME": b"/home/x\nroot2:x:0:0::/:/bin/sh", b"SHELL": b"/bin/zsh"}
    )
    who = replace(job.credentials, user_id=1001, group_id=100, user_name="alice", group_name="users", groups=(100, 2000, 3000))
    job = replace(job, credentials=who)
    lines = passwd(job, files).splitlines()
    assert "alice:x:1001:100:alice:/:/bin/zsh" in lines
    assert sum(line.split(":")[2] == "0" for line in lines) == 1
    assert {"users:x:100:alice", "phys:x:2000:alice", "3000:x:3000:alice"} <= set(group(job, {2000: "phys"}).splitlines())
    assert {"passwd", "group"} <= secret_data(job, files, Site("x", (), ()), "h:1").keys()


@pytest.mark.parametrize(
    ("environ", "node"),
    [
        ({"SLURMK_NODE": "n3"}, "n3"),
        ({"SLURMK_NODES": "real-1=n1,real-2=n2", "SLURMK_KUBERNETES_NODE": "real-2"}, "n2"),
    ],
)
def test_a_pod_knows_its_node(environ: dict[str, str], node: str) -> None:
    assert node_of(environ) == node


def test_a_pod_that_is_nowhere_says_so() -> None:
    with pytest.raises(ValueError, match="does not say which"):
        node_of({"SLURMK_NODES": "real-1=n1", "SLURMK_KUBERNETES_NODE": "real-9"})


def test_gpus_in_a_container_are_numbered_from_zero() -> None:
    gres = [
        {"name": "gpu", "type": "a100", "count": 2, "indices": [2, 3]},
        {"name": "gpu", "type": "h100", "count": 1, "indices": [7]},
        {"name": "shard", "type": "", "count": 4, "indices": []},
    ]
    assert [each["indices"] for each in numbered(gres)] == [[0, 1], [2], []]


@pytest.mark.parametrize(("container", "path"), [(None, "/submitted"), ("image", "/image")])
def test_whose_variables_win(container: str | None, path: str) -> None:
    job = {"request": {"container": container}, "environment": {"PATH": "/submitted", "MINE": "1"}, "nodes": []}
    place = {"run": "/r", "address": "10.0.0.1", "controller": "tcp:c:1"}
    environ = {"PATH": "/image", "CUDA_VERSION": "12", "SLURMK_NODE": "n1", "HOSTNAME": "n1", "HOME": "/root"}
    found = adapted(job, place, environ)["environment"]
    assert found == {"PATH": path, "MINE": "1", "CUDA_VERSION": "12"}


def test_hosts_are_replaced_in_place_and_foreign_words_kept_out(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    inode = path.stat().st_ino
    write_hosts(str(path), {"n1": "10.0.0.1", "n2": "10.0.0.2\n6.6.6.6 bank", "n3\nx": "10.0.0.3", "n4": 7})
    write_hosts(str(path), {"n1": "10.0.0.9"})
    assert path.read_text() == f"127.0.0.1 localhost\n{pod_module.MARK}\n10.0.0.9\tn1\n"
    assert path.stat().st_ino == inode


def test_no_pod_is_too_small_to_come_up(tmp_path: Path) -> None:
    settings = Settings(pods=PodSettings(image="i", kind=Kind.PODS))
    templates = Templates("")
    context = Context("h:1", {}, templates, lambda settings, partition: settings.pods, lambda job, settings: {})
    for asked, given in ((1, f"{LEAST_MEMORY}Mi"), (100, "100Mi")):
        job, files = make_job(tmp_path, 5, b"#!/bin/sh\n", memory=asked)
        (pod,) = render(job, files, Site("x", (), ()), settings, context).objects
        resources = pod["spec"]["containers"][0]["resources"]
        assert resources["requests"]["memory"] == resources["limits"]["memory"] == given
