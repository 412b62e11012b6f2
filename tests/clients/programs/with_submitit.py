"""submitit: single jobs, an array, several tasks, a failure, a cancellation, a checkpoint by signal and requeue."""

import os
import subprocess
import sys
import time
from pathlib import Path

import submitit


class Counted:
    """Stops in the middle at the first attempt, and goes on at the second."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, step: int) -> str:
        (self.folder / f"step{step}").touch()
        while step == 0:
            time.sleep(0.1)
        return f"went on at {step}, restarts {os.environ.get('SLURM_RESTART_COUNT', '0')}"

    def checkpoint(self, step: int) -> submitit.helpers.DelayedSubmission:
        return submitit.helpers.DelayedSubmission(self, step + 1)


def rank() -> "tuple[int, int, str]":
    environment = submitit.JobEnvironment()
    return environment.global_rank, environment.num_tasks, environment.hostname


def state(job: "submitit.Job[object]") -> str:
    """The state by sacct as it is now; submitit itself asks seldom."""
    return subprocess.check_output(["sacct", "-X", "-n", "-P", "-o", "State", "-j", job.job_id], text=True).strip()


def fail() -> None:
    raise ValueError("on purpose")


def main(folder: str) -> None:
    executor = submitit.AutoExecutor(folder=f"{folder}/logs", slurm_max_num_timeout=3)
    assert executor.cluster == "slurm", executor.cluster
    executor.update_parameters(timeout_min=5, slurm_partition="debug", cpus_per_task=1, name="submitit")
    assert executor.submit(pow, 2, 10).result() == 1024
    assert [job.result() for job in executor.map_array(max, [1, 5, 3], [4, 2, 6])] == [4, 5, 6]

    executor.update_parameters(nodes=2, tasks_per_node=2)
    ranks = executor.submit(rank).results()
    assert sorted(one[:2] for one in ranks) == [(number, 4) for number in range(4)], ranks

    executor.update_parameters(nodes=1, tasks_per_node=1)
    failing = executor.submit(fail)
    assert "on purpose" in str(failing.exception()), failing.exception()

    waiting = executor.submit(time.sleep, 300)
    while state(waiting) != "RUNNING":
        time.sleep(0.2)
    waiting.cancel()
    end = time.monotonic() + 30
    while not state(waiting).startswith("CANCELLED"):
        assert time.monotonic() < end, state(waiting)
        time.sleep(0.2)

    counted = executor.submit(Counted(folder), 0)
    while not (Path(folder) / "step0").exists():
        time.sleep(0.1)
    counted._interrupt(timeout=False)
    end = time.monotonic() + 30
    while subprocess.call(["scontrol", "update", f"jobid={counted.job_id}", "starttime=now"], stderr=subprocess.DEVNULL):
        assert time.monotonic() < end, state(counted)
        time.sleep(0.2)
    assert state(counted) in ("PENDING", "RUNNING"), state(counted)
    assert counted.result() == "went on at 1, restarts 1", counted.result()
    print("submitit is content")


if __name__ == "__main__":
    main(sys.argv[1])
