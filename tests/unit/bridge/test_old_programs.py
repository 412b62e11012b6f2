"""Programs of earlier releases go when nobody uses them, and nobody else's do."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from fake_kubernetes import FakeKubernetes, fake_kubernetes

from bridge.kubernetes import labels, old_programs
from bridge.kubernetes.old_programs import OldPrograms
from bridge.kubernetes.programs import PREFIX, programs, programs_name
from bridge.kubernetes.resources import CONFIG_MAP, POD


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def config_map(name: str, cluster: str = "c") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "slurmk", "labels": labels.managed(cluster)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def pod(name: str, uses: str, phase: str = "Running", cluster: str = "c") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "slurmk", "labels": labels.managed(cluster)}
    volumes = [{"name": "programs", "configMap": {"name": uses}}, {"name": "run", "emptyDir": {}}]
    spec = {"containers": [{"name": "job", "image": "any"}], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def left(server: FakeKubernetes) -> set[str]:
    return {name for _, name in server.objects.get(str(CONFIG_MAP), {})}


def test_each_controller_has_programs_of_its_own() -> None:
    assert programs("jobs", "a")["metadata"]["name"] == programs_name("a") != programs_name("b")


@in_a_loop
async def test_what_no_pod_uses_goes(tmp_path: Path) -> None:
    own, used, ended, theirs = programs_name("c"), PREFIX + "used", PREFIX + "ended", PREFIX + "theirs"
    async with fake_kubernetes(tmp_path) as (server, api, _):
        for each in (own, used, ended, PREFIX + "idle", "site-files"):
            await api.create(config_map(each))
        await api.create(config_map(theirs, "other"))
        for one in (pod("a", used), pod("b", ended, "Succeeded"), pod("d", theirs, cluster="other")):
            server.put(POD, one)
        starting = True
        work = OldPrograms(api, "c", lambda: ["slurmk"], lambda: starting)
        assert await work.remove()
        assert len(left(server)) == 6
        starting = False
        assert await work.remove()
        assert left(server) == {own, used, theirs, "site-files"}
        server.put(POD, pod("a", used, "Failed"))
        assert not await work.remove()
        assert left(server) == {own, theirs, "site-files"}


@in_a_loop
async def test_another_controllers_pod_may_use_them_too(tmp_path: Path) -> None:
    """Earlier releases shared them."""
    async with fake_kubernetes(tmp_path) as (server, api, _):
        await api.create(config_map(PREFIX + "shared"))
        server.put(POD, pod("a", PREFIX + "shared", cluster="other"))
        assert await OldPrograms(api, "c", lambda: ["slurmk"], lambda: False).remove()
        assert left(server) == {PREFIX + "shared"}


@in_a_loop
async def test_it_is_looked_again_when_jobs_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_programs, "LOOK_SECONDS", 0.01)
    async with fake_kubernetes(tmp_path) as (server, api, _):
        await api.create(config_map(PREFIX + "used"))
        server.put(POD, pod("a", PREFIX + "used"))
        work = OldPrograms(api, "c", lambda: ["slurmk"], lambda: False)
        running = asyncio.get_running_loop().create_task(work.run())
        await asyncio.sleep(0.2)
        asked = len(server.requests)
        await asyncio.sleep(0.1)
        assert len(server.requests) == asked
        server.put(POD, pod("a", PREFIX + "used", "Succeeded"))
        work.ended()
        await asyncio.wait_for(running, 5)
        assert not left(server)
