"""A controller on a Kubernetes that fails it in every way: it loses no job, starts none twice, and is right again soon.

The pods run on simulated nodes, where nothing but their status tells what became of them.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from private_lab import Controller, Lab, Manifest, Proxy, started_lab, until

pytestmark = pytest.mark.timeout(300)

STARTS = 1000
"""Jobs of the burst."""

OUTAGE = float(os.environ.get("SLURMK_OUTAGE", "12"))
"""Seconds of the longest absence of the API server."""

SOON = 30.0
"""Seconds in which things come right again; they take about two on a machine that has nothing else to do."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with started_lab() as lab:
        if lab is None:
            pytest.skip("needs a Kubernetes of its own to hurt: SLURMK_LAB_SCRIPT")
        yield lab


@pytest.fixture
def proxy(lab: Lab) -> Iterator[Proxy]:
    proxy = Proxy(lab)
    proxy.start()
    yield proxy
    proxy.stop()


Begin = Callable[..., Controller]


@pytest.fixture
def begin(lab: Lab, proxy: Proxy, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Begin]:
    """``begin(partition={...})``: a controller that reaches the API server through the proxy, with a namespace of its own."""
    begun: list[Controller] = []
    name = f"robust-{abs(hash(request.node.name)) % 10**6}-{int(time.time()) % 10**5}"
    kubeconfig = proxy.kubeconfig(tmp_path / "kubeconfig")

    def start(*, wait: bool = True, database: str = "", client: Manifest | None = None, **pods: Any) -> Controller:
        settings: Manifest = {
            "cluster": name,
            "namespace": name,
            "controller": "127.0.0.1",
            "listen": "127.0.0.1:0",
            "nodes": "lab/pool=cpu",
            "leaseSeconds": 5,
            "client": {"timeout": 5, **(client or {})},
            "pods": {"image": "localhost/none:1", "cpuRequest": "50m", **pods},
            "partitions": {"cpu": {"nodes": "lab/pool=cpu", "default": True}},
        }
        controller = Controller(tmp_path / f"c{len(begun)}", settings, kubeconfig, database)
        begun.append(controller)
        controller.name = name  # type: ignore[attr-defined]
        if wait:
            controller.start()
        else:
            controller.launch()
        return controller

    with lab.namespace(name):
        yield start
        for controller in begun:
            controller.kill()
        for log in tmp_path.glob("c*/log/controller.log"):
            text = log.read_text()
            assert "Traceback" not in text, text[text.index("Traceback") - 500 :][:3000]


def pods(lab: Lab, controller: Controller) -> list[Manifest]:
    return lab.get("pods", namespace_of(controller))


def namespace_of(controller: Controller) -> str:
    return str(controller.name)  # type: ignore[attr-defined]


def finish(lab: Lab, controller: Controller, name: str, code: int = 0) -> None:
    """Let a simulated pod end."""
    lab.kubectl("-n", namespace_of(controller), "annotate", "pod", name, f"lab/finish={code}")


def refused(controller: Controller, job: int) -> None:
    """Wait until the job is back in the queue."""
    until(lambda: controller.shown(job, "Reason").startswith("JobLaunchFailure:"), SOON, controller.shown(job, "Reason"))


def nothing_is_left(lab: Lab, controller: Controller, seconds: float = SOON) -> None:
    """Of all jobs: no pod, Secret or PodGroup."""
    space = namespace_of(controller)

    def left() -> list[str]:
        found = lab.kubectl("-n", space, "get", "pods,secrets,podgroups.scheduling.k8s.io", "-o", "name")
        return [name for name in found.split() if "slurmk-" in name]

    until(lambda: not left(), seconds, f"left over: {left()}")


def started_once(proxy: Proxy) -> None:
    twice = [name for name, count in proxy.creations.items() if count > 1 and "Lease" not in name and "Review" not in name]
    assert not twice, f"made more than once: {twice}"


# ------------------------------------------------------------------------------------------------ slow


def test_what_pods_take_to_come_up_is_not_the_jobs_time(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(annotations={"lab/start-delay": "7s"}, admissionTimeout=120)
    job = controller.submit("-t", "1", "-N", "2")
    until(lambda: controller.shown(job, "StateCompact") == "CF", SOON, "the job is not CONFIGURING")
    launched = controller.seconds(job, "StartTime")
    until(lambda: controller.shown(job, "StateCompact") == "R", 2 * SOON, "the job does not run")
    containers = [pod["status"]["containerStatuses"][0]["state"]["running"] for pod in pods(lab, controller)]
    begun = max(datetime.fromisoformat(each["startedAt"]).timestamp() for each in containers)
    assert begun >= launched + 5
    assert controller.seconds(job, "StartTime") == begun
    assert controller.seconds(job, "EndTime") == begun + 60
    said = controller.run("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "Start,Elapsed").stdout.strip()
    start, _, elapsed = said.partition("|")
    assert datetime.fromisoformat(start).timestamp() == begun
    assert int(elapsed[-2:]) <= time.time() - begun + 1
    controller.run("scancel", str(job))


# ------------------------------------------------------------------------------------------------ away


def test_the_api_server_is_killed(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(admissionTimeout=120)
    running = controller.submit()
    controller.wait_for(running, "RUNNING")
    for program in ("apiserver", "scheduler", "kwok"):  # the others would take up to a minute to notice that it is back
        lab.kill(program)
    time.sleep(3)
    waiting = controller.submit("-N2")
    cancelled = controller.submit()
    controller.run("scancel", str(cancelled))
    time.sleep(2)
    assert controller.states(running, waiting) == ["RUNNING", "RUNNING"]
    assert controller.shown(waiting, "StateCompact") == "CF"
    lab.start()
    controller.wait_for(cancelled, "CANCELLED", seconds=SOON)
    until(lambda: controller.shown(waiting, "StateCompact") == "R", SOON)
    names = [f"slurmk-{running}-n0", f"slurmk-{waiting}-n0", f"slurmk-{waiting}-n1"]
    assert sorted(pod["metadata"]["name"] for pod in pods(lab, controller)) == names
    finish(lab, controller, f"slurmk-{running}-n0", 3)
    finish(lab, controller, f"slurmk-{waiting}-n0")
    assert controller.wait_for(running, "FAILED", seconds=SOON)
    assert controller.wait_for(waiting, "COMPLETED", seconds=SOON)
    started_once(proxy)
    nothing_is_left(lab, controller)


def test_jobs_end_while_the_api_server_cannot_be_reached(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    jobs = [controller.submit("--no-requeue") for _ in range(4)]
    for job in jobs:
        controller.wait_for(job, "RUNNING")
    proxy.down()
    finish(lab, controller, f"slurmk-{jobs[0]}-n0")
    finish(lab, controller, f"slurmk-{jobs[1]}-n0", 7)
    lab.kubectl("-n", namespace_of(controller), "delete", "pod", f"slurmk-{jobs[2]}-n0")
    late = controller.submit()
    controller.run("scancel", str(jobs[3]))
    time.sleep(2)
    assert controller.states(*jobs[:3], late) == ["RUNNING"] * 4
    proxy.up()
    for job, state in zip(jobs, ("COMPLETED", "FAILED", "PREEMPTED", "CANCELLED"), strict=True):
        controller.wait_for(job, state, seconds=SOON)
    controller.wait_for(late, "RUNNING")
    until(lambda: controller.shown(late, "StateCompact") == "R", SOON)
    finish(lab, controller, f"slurmk-{late}-n0")
    controller.wait_for(late, "COMPLETED", seconds=SOON)
    started_once(proxy)
    nothing_is_left(lab, controller)


def test_watches_are_cut_and_versions_forgotten(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(annotations={"lab/runtime": "2s"})
    for _ in range(3):
        jobs = [controller.submit() for _ in range(5)]
        time.sleep(0.5)
        proxy.add(lambda method, path: "watch=true" in path, "status", (410, "Expired"), times=2)
        proxy.cut_watches()
        for job in jobs:
            controller.wait_for(job, "COMPLETED", seconds=SOON)
    started_once(proxy)
    nothing_is_left(lab, controller)


# ------------------------------------------------------------------------------------------------ refused and lost


def _writes(method: str, path: str) -> bool:
    return method not in ("GET", "HEAD") and "leases" not in path and "reviews" not in path


def every_other(matches: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    count = iter(range(10**6))
    return lambda method, path: matches(method, path) and next(count) % 2 == 0


FAULTS: tuple[tuple[str, Any], ...] = (
    ("status", (429, "TooManyRequests", 1)),
    ("status", (500, "InternalError", 1)),
    ("status", (503, "ServiceUnavailable")),
    ("drop", None),
    ("lose", None),
    ("delay", 2.0),
)


def test_every_other_write_goes_wrong(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(annotations={"lab/runtime": "1s"})
    for action, argument in FAULTS:
        proxy.add(every_other(_writes), action, argument, times=20)
        jobs = [controller.submit(*(["-N2"] if number % 2 else [])) for number in range(4)]
        for job in jobs:
            controller.wait_for(job, "COMPLETED", seconds=SOON)
            assert controller.attempts(job) == ["COMPLETED"], (action, argument)
        proxy.faults.clear()
    started_once(proxy)
    nothing_is_left(lab, controller)


def test_a_job_that_is_refused_waits_and_says_why(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    for status in ((403, "Forbidden"), (422, "Invalid"), (409, "Conflict"), (404, "NotFound")):
        proxy.add(lambda method, path: method == "POST" and "/pods" in path, "status", status)
        job = controller.submit()
        refused(controller, job)
        assert controller.shown(job, "Reason") == f"JobLaunchFailure:{status[1]} by test"
        assert controller.run("scontrol", "show", "job", str(job)).stdout.count(" Restarts=1 ") == 1
        assert proxy.creations[f"Pod slurmk-{job}-n0"] == 0
        nothing_is_left(lab, controller)
        controller.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        until(lambda job=job: controller.shown(job, "StateCompact") == "R", SOON)  # type: ignore[misc]
        controller.run("scancel", str(job))
        nothing_is_left(lab, controller)
    started_once(proxy)


def test_somebody_elses_object_is_in_the_way(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    space = namespace_of(controller)
    lab.kubectl("-n", space, "create", "secret", "generic", "slurmk-1", "--from-literal=a=b")
    assert controller.submit() == 1
    refused(controller, 1)
    assert controller.shown(1, "Reason") == f"JobLaunchFailure:Secret {space}/slurmk-1 is there and not slurmk's"
    assert lab.kubectl("-n", space, "get", "secret", "slurmk-1", "-o", "jsonpath={.data.a}") == "Yg=="
    assert not pods(lab, controller)


# ------------------------------------------------------------------------------------------------ not admitted


def test_a_job_that_is_not_bound_waits_and_says_why(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(admissionTimeout=3, pod={"nodeSelector": {"lab/no-such": "node"}})
    job = controller.submit("-N2")
    refused(controller, job)
    assert "JobLaunchFailure:" in controller.shown(job, "Reason")
    assert "pod group is unschedulable" in controller.shown(job, "Reason")
    nothing_is_left(lab, controller)
    made = sum(proxy.creations.values())
    time.sleep(3)
    assert sum(proxy.creations.values()) == made, "it is tried in a loop"


def test_a_quota_and_pod_security_have_their_say(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    space = namespace_of(controller)
    lab.kubectl("-n", space, "create", "quota", "none", "--hard=secrets=0")
    job = controller.submit()
    refused(controller, job)
    assert "exceeded quota: none" in controller.shown(job, "Reason")
    lab.kubectl("-n", space, "delete", "quota", "none")
    lab.kubectl("label", "namespace", space, "pod-security.kubernetes.io/enforce=restricted")
    rooted = controller.submit()  # root's pods cannot be restricted
    refused(controller, rooted)
    assert 'violates PodSecurity "restricted:latest"' in controller.shown(rooted, "Reason")
    nothing_is_left(lab, controller)


# ------------------------------------------------------------------------------------------------ killed in mid-launch


def creates(plural: str) -> Callable[[str, str], bool]:
    return lambda method, path: method == "POST" and f"{plural}?" in path


def test_the_controller_is_killed_in_the_middle_of_a_launch(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    for write in ("/secrets", "/podgroups", "/pods"):
        for loss in ("drop", "lose"):
            proxy.add(creates(write), "call", controller.kill)
            proxy.add(creates(write), loss)
            job = controller.submit("-N2")
            until(lambda: not controller.pids(), SOON)
            controller.start()
            until(lambda job=job: controller.shown(job, "StateCompact") == "R", SOON)  # type: ignore[misc]
            names = [f"slurmk-{job}-n0", f"slurmk-{job}-n1"]
            assert sorted(pod["metadata"]["name"] for pod in pods(lab, controller)) == names, (write, loss)
            finish(lab, controller, f"slurmk-{job}-n0")
            controller.wait_for(job, "COMPLETED", seconds=SOON)
            assert controller.attempts(job) == ["COMPLETED"], (write, loss)
            nothing_is_left(lab, controller)
    started_once(proxy)


def test_much_happens_while_there_is_no_controller(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    space = namespace_of(controller)
    jobs = [controller.submit("--no-requeue") for _ in range(6)]
    done, failed, deleted, withdrawn, living, stripped = jobs
    for job in jobs:
        until(lambda job=job: controller.shown(job, "StateCompact") == "R", SOON)  # type: ignore[misc]
    controller.kill()
    finish(lab, controller, f"slurmk-{done}-n0")
    finish(lab, controller, f"slurmk-{failed}-n0", 9)
    lab.kubectl("-n", space, "delete", "pod", f"slurmk-{deleted}-n0")
    lab.kubectl("-n", space, "delete", "secret", f"slurmk-{withdrawn}")
    until(lambda: f"slurmk-{withdrawn}-n0" not in lab.kubectl("-n", space, "get", "pods", "-o", "name"), SOON)
    lab.kubectl("-n", space, "label", "pod", f"slurmk-{stripped}-n0", "slurmk.org/job-id=99999", "--overwrite")
    controller.start()
    for job, state in zip(jobs, ("COMPLETED", "FAILED", "PREEMPTED", "CANCELLED", "RUNNING"), strict=False):
        controller.wait_for(job, state, seconds=SOON)
    started_once(proxy)
    controller.run("scancel", str(living), str(stripped))
    nothing_is_left(lab, controller)


# ------------------------------------------------------------------------------------------------ others' hands


def test_somebody_deletes_and_edits_what_is_ours(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    space = namespace_of(controller)
    jobs = [controller.submit("--no-requeue", *options) for options in ((), (), (), ("-N2",), ("-N2",), ())]
    pod, evicted, secret, group, one, edited = jobs
    for job in jobs:
        until(lambda job=job: controller.shown(job, "StateCompact") == "R", SOON)  # type: ignore[misc]
    lab.kubectl("-n", space, "delete", "pod", f"slurmk-{pod}-n0", "--wait=false")
    name = f"slurmk-{evicted}-n0"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": space}}
    lab.kubectl("create", "--raw", f"/api/v1/namespaces/{space}/pods/{name}/eviction", "-f", "-", given=json.dumps(eviction))
    lab.kubectl("-n", space, "delete", "secret", f"slurmk-{secret}", "--wait=false")
    lab.kubectl("-n", space, "delete", "podgroups.scheduling.k8s.io,pods", "-l", f"slurmk.org/job-id={group}", "--wait=false")
    lab.kubectl("-n", space, "delete", "pod", f"slurmk-{one}-n1", "--wait=false")
    lab.kubectl(
        "-n", space, "label", "pod", f"slurmk-{edited}-n0", "slurmk.org/controller-", "slurmk.org/user=mallory", "--overwrite"
    )
    expected = {pod: "PREEMPTED", evicted: "PREEMPTED", secret: "CANCELLED", group: "CANCELLED", one: "PREEMPTED"}
    for job, state in expected.items():
        controller.wait_for(job, state, seconds=SOON)
    said = {job: comment_of(controller, job) for job in jobs}
    assert said[pod] == f"Pod slurmk-{pod}-n0 was deleted"
    assert said[evicted] == "EvictionByEvictionAPI: Eviction API: evicting"
    assert said[secret] == f"Secret slurmk-{secret} was deleted"
    assert said[group] == f"PodGroup slurmk-{group} was deleted"
    labels = "jsonpath={.metadata.labels.slurmk\\.org/controller} {.metadata.labels.slurmk\\.org/user}"
    mended = f"{space} root"
    until(lambda: lab.kubectl("-n", space, "get", "pod", f"slurmk-{edited}-n0", "-o", labels) == mended, SOON)
    finish(lab, controller, f"slurmk-{edited}-n0", 4)
    controller.wait_for(edited, "FAILED", seconds=SOON)
    nothing_is_left(lab, controller)


def comment_of(controller: Controller, job: int) -> str:
    return controller.run("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "SystemComment").stdout.strip()


def test_a_preempted_job_is_queued_again_where_it_may_be(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin()
    job = controller.submit("--requeue")
    until(lambda: controller.shown(job, "StateCompact") == "R", SOON)
    lab.kubectl("-n", namespace_of(controller), "delete", "pod", f"slurmk-{job}-n0", "--wait=false")
    until(lambda: controller.shown(job, "StateCompact") == "PD", SOON)
    assert controller.attempts(job)[0] == "PREEMPTED"
    controller.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    until(lambda: controller.shown(job, "StateCompact") == "R", SOON)
    assert [pod["metadata"]["name"] for pod in pods(lab, controller)] == [f"slurmk-{job}-1-n0"]
    finish(lab, controller, f"slurmk-{job}-1-n0")
    controller.wait_for(job, "COMPLETED", seconds=SOON)
    nothing_is_left(lab, controller)


CLASS = "slurmk-robust-high"


def test_the_scheduler_preempts_a_job(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    controller = begin(cpuRequest="1")
    space = namespace_of(controller)
    job = controller.submit("--no-requeue", "--nodes=1", "--nodelist=cpu-03", "--exclusive")
    until(lambda: controller.shown(job, "StateCompact") == "R", SOON)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": CLASS}, "value": 1000}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "20"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "important", "namespace": space},
        "spec": {"priorityClassName": CLASS, "nodeSelector": {"kubernetes.io/hostname": "cpu-03"}, "containers": [container]},
    }
    try:
        for manifest in (high, pod):
            lab.kubectl("apply", "-f", "-", given=json.dumps(manifest))
        controller.wait_for(job, "PREEMPTED", seconds=SOON)
        assert comment_of(controller, job).startswith("PreemptionByScheduler: ")
        until(lambda: "mix" in controller.run("sinfo", "-h", "-n", "cpu-03", "-o", "%t").stdout, SOON)
        nothing_is_left(lab, controller)
    finally:
        lab.kubectl("delete", "priorityclass", CLASS, check=False)


# ------------------------------------------------------------------------------------------------ many, and two


@pytest.mark.timeout(300)
def test_a_burst_of_starts_is_spread(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    limit, burst = 100, 50
    controller = begin(
        annotations={"lab/runtime": "1s"}, admissionTimeout=120, client={"writesPerSecond": limit, "burst": burst}
    )
    proxy.written_at.clear()
    began = time.monotonic()
    job = controller.submit(count=STARTS)
    until(lambda: Counter(controller.states(job)) == {"COMPLETED": STARTS}, 200, "not all have completed", 2.0)
    nothing_is_left(lab, controller, 60)
    started_once(proxy)
    assert sum(count for name, count in proxy.creations.items() if name.startswith("Pod ")) == STARTS
    seconds = Counter(int(at - began) for at in proxy.written_at)
    assert max(seconds.values()) <= limit + burst + 20, seconds  # the Lease's renewals are not held back
    assert sum(proxy.writes.values()) <= 6 * STARTS


def test_only_the_one_with_the_lease_acts(lab: Lab, proxy: Proxy, begin: Begin, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/shared.sqlite"
    first = begin(database=database)
    job = first.submit()
    until(lambda: first.shown(job, "StateCompact") == "R", SOON)
    second = begin(database=database, wait=False)
    time.sleep(4)
    assert not second.serves()
    assert not second.ended()
    made = Counter(proxy.creations)
    another = first.submit()
    until(lambda: first.shown(another, "StateCompact") == "R", SOON)
    assert {name for name in proxy.creations - made if "Lease" not in name} == {
        f"Secret slurmk-{another}",
        f"Pod slurmk-{another}-n0",
    }
    first.kill()
    until(second.serves, SOON)
    assert sorted(second.states(job, another)) == ["RUNNING", "RUNNING"]
    finish(lab, second, f"slurmk-{job}-n0")
    second.wait_for(job, "COMPLETED", seconds=SOON)
    second.run("scancel", str(another))
    second.wait_for(another, "CANCELLED", seconds=SOON)
    started_once(proxy)
    nothing_is_left(lab, second)


@pytest.mark.timeout(300 + OUTAGE)
def test_the_api_server_is_away_for_long(lab: Lab, proxy: Proxy, begin: Begin) -> None:
    """For longer than the Lease lasts and any pause is; SLURMK_OUTAGE says for how long else. It is the last test: the nodes'
    own leases run out too, and Kubernetes takes the nodes for lost for a while after it."""
    controller = begin(admissionTimeout=300)
    running = [controller.submit() for _ in range(3)]
    for job in running:
        until(lambda job=job: controller.shown(job, "StateCompact") == "R", SOON)  # type: ignore[misc]
    for program in ("apiserver", "scheduler", "kwok"):
        lab.kill(program)
    end, late = time.monotonic() + OUTAGE, []
    while time.monotonic() < end:
        asked = time.monotonic()
        late.append(controller.submit())
        assert time.monotonic() - asked < SOON / 3
        assert controller.states(*running) == ["RUNNING"] * 3
        time.sleep(OUTAGE / 8)
    assert "trouble: nothing is written to Kubernetes: " in controller.status()
    proxy.down()  # so that it comes back at a moment
    lab.start()
    back = time.monotonic()
    proxy.up()
    until(lambda: "trouble" not in controller.status(), SOON, "it is not well again")
    well = time.monotonic() - back
    until(lambda: all(controller.shown(job, "StateCompact") == "R" for job in late), SOON, "not all have begun")
    print(f"away for {OUTAGE:.0f} s; well {well:.1f} s after, {len(late)} late jobs run {time.monotonic() - back:.1f} s after")
    assert controller.states(*running) == ["RUNNING"] * 3
    for job in (*running, *late):
        finish(lab, controller, f"slurmk-{job}-n0")
    for job in (*running, *late):
        controller.wait_for(job, "COMPLETED", seconds=SOON)
    started_once(proxy)
    nothing_is_left(lab, controller)
