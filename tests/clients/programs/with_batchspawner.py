"""batchspawner: JupyterHub's spawner makes a notebook server of a user a job, looks where it runs, and ends it."""

import asyncio
import os
import sys
from types import SimpleNamespace

from batchspawner import JobStatus, SlurmSpawner


async def status_of(spawner: SlurmSpawner, wanted: JobStatus) -> None:
    for _ in range(100):
        if await spawner.query_job_status() is wanted:
            return
        spawner.last_query_time = 0
        await asyncio.sleep(0.2)
    raise AssertionError(f"the job is {spawner.job_status}")


async def spawn(folder: str) -> None:
    spawner = SlurmSpawner()
    spawner.user = SimpleNamespace(name="somebody", url="user/somebody", escaped_name="somebody")
    spawner.get_env = lambda: dict(os.environ)
    spawner.exec_prefix = ""
    spawner.cmd = ["sleep", "300"]
    spawner.req_username, spawner.req_homedir = "somebody", folder
    spawner.req_partition, spawner.req_runtime, spawner.req_memory, spawner.req_nprocs = "debug", "0:10:00", "200", "2"
    spawner.batch_script = spawner.batch_script.replace("{{cmd}}", "sleep 300")
    await spawner.submit_batch_script()
    assert spawner.job_id.isdigit(), spawner.job_id
    await status_of(spawner, JobStatus.RUNNING)
    assert spawner.state_gethost().startswith("n"), spawner.job_status
    await spawner.cancel_batch_job()
    await status_of(spawner, JobStatus.NOTFOUND)


if __name__ == "__main__":
    asyncio.run(spawn(sys.argv[1]))
    print("batchspawner is content")
