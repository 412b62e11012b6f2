"""Pods by this controller's name that are not of its jobs: refused at the start, left alone later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fake_kubernetes import fake_kubernetes

from bridge.kubernetes.labels import managed
from bridge.kubernetes.resources import POD
from bridge.kubernetes.strangers import StrangersError, refuse_strangers


def refuse(folder: Path, *pods: dict[str, Any]) -> None:
    async def look() -> None:
        async with fake_kubernetes(folder) as (server, api, _):
            for pod in pods:
                server.put(POD, pod)
            await refuse_strangers(api, "hpc", ["jobs", "more"], lambda ids: sorted(one for one in ids if one >= 10))

    asyncio.run(look())


def pod(job_id: int, namespace: str = "jobs", phase: str = "Running", cluster: str = "hpc") -> dict[str, Any]:
    labels = {**managed(cluster), "slurmk.org/job-id": str(job_id), "slurmk.org/restart": "0"}
    return {
        "metadata": {"name": f"slurmk-{job_id}-n0", "namespace": namespace, "labels": labels},
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase},
    }


def test_what_may_be_there(tmp_path: Path) -> None:
    refuse(
        tmp_path,
        pod(9),
        pod(3, "more"),
        pod(77, phase="Succeeded"),
        pod(4, "other", phase="Failed"),
        pod(99, "other", cluster="another"),
    )


def test_jobs_of_a_namesake_in_another_namespace(tmp_path: Path) -> None:
    with pytest.raises(StrangersError, match="called hpc too run in namespace other, third"):
        refuse(tmp_path, pod(3, "other"), pod(4, "third"), pod(5))


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_jobs_that_the_database_has_never_numbered(tmp_path: Path, phase: str) -> None:
    with pytest.raises(StrangersError, match="job 10 runs in namespace more and is not in this database"):
        refuse(tmp_path, pod(12, phase=phase), pod(10, "more", phase), pod(9))
