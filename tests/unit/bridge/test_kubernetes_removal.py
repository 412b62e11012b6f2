"""What is over is taken away in crowds, and after what is just beginning."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from fake_kubernetes import fake_kubernetes

from bridge.kubernetes import labels, removal
from bridge.kubernetes.presence import Key
from bridge.kubernetes.removal import Remains, Removal
from bridge.kubernetes.resources import SECRET


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def secret(number: int) -> dict[str, Any]:
    own = {**labels.managed("c"), labels.JOB_ID: str(number), labels.RESTART: "0"}
    metadata = {"name": f"slurmk-{number}", "namespace": "slurmk", "labels": own}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("for_ever", [False, True])
@in_a_loop
async def test_launches_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, for_ever: bool) -> None:
    monkeypatch.setattr(removal, "COLLECT_SECONDS", 0.02)
    monkeypatch.setattr(removal, "DEFERRED_SECONDS", 0.3 if for_ever else 60.0)
    starting, done = True, list[Key]()
    async with fake_kubernetes(tmp_path) as (server, api, _):
        work = Removal(api, "c", done.append, lambda: starting)
        for number in range(count):
            await api.create(secret(number))
            work.add(Remains((number, 0), "slurmk", f"slurmk-{number}"))
        running = asyncio.get_running_loop().create_task(work.run())
        await asyncio.sleep(0.15)
        assert not done
        assert len(server.objects[str(SECRET)]) == count
        starting = for_ever
        async with asyncio.timeout(5):
            while len(done) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not server.objects[str(SECRET)]
        running.cancel()
