"""law: luigi's workflows of high energy physics; its job interface submits files and asks squeue, then sacct."""

import sys
import time
from pathlib import Path

import law

law.contrib.load("slurm")
from law.contrib.slurm import SlurmJobFileFactory, SlurmJobManager  # noqa: E402


def wait_for(manager: SlurmJobManager, job: int, status: str) -> "dict[str, object]":
    for _ in range(100):
        found = manager.query(job)
        if found["status"] == status:
            return found
        time.sleep(0.2)
    raise AssertionError(f"the job is {found}")


def main(folder: str) -> None:
    work = Path(folder)
    manager, files = SlurmJobManager(), SlurmJobFileFactory()

    def submit(command: str) -> int:
        settings = {"job_name": "law", "partition": "debug", "stdout": "out", "stderr": "err", "dir": str(work)}
        path, _ = files(command=command, custom_content=[("time", "5")], **settings)
        return manager.submit(path)

    done, failed, long = submit("srun -n1 hostname"), submit("exit 3"), submit("sleep 300")
    assert wait_for(manager, done, manager.FINISHED)["code"] == 0
    assert wait_for(manager, failed, manager.FAILED)["code"] == 3
    wait_for(manager, long, manager.RUNNING)
    together = {job: found["status"] for job, found in manager.query([done, failed, long]).items()}
    assert together == {done: manager.FINISHED, failed: manager.FAILED, long: manager.RUNNING}, together
    manager.cancel(long)
    assert wait_for(manager, long, manager.FAILED)["error"] == "CANCELLED+"
    print("law is content")


if __name__ == "__main__":
    main(sys.argv[1])
