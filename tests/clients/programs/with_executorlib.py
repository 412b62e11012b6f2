"""executorlib: functions as jobs (by way of pysqa), and as steps within one job."""

import os
import subprocess
import sys

from executorlib import SlurmClusterExecutor, SlurmJobExecutor
from pysqa import QueueAdapter

WAITING = "#!/bin/bash\n#SBATCH --job-name={{job_name}}\n#SBATCH --time=5\n{{command}}\n"


def add(first: int, second: int) -> "tuple[int, bool]":
    return first + second, "SLURM_JOB_ID" in os.environ


def inside() -> None:
    with SlurmJobExecutor(max_cores=2, resource_dict={"cores": 1}) as executor:
        results = [executor.submit(add, number, 2) for number in range(3)]
        assert [each.result() for each in results] == [(2, True), (3, True), (4, True)]
    print("inside is content")


def main(folder: str) -> None:
    with SlurmClusterExecutor(cache_directory=f"{folder}/cache", resource_dict={"cores": 1, "run_time_max": 300}) as executor:
        first = executor.submit(add, 1, 2)
        second = executor.submit(add, 3, 4)
        assert (first.result(timeout=90), second.result(timeout=90)) == ((3, True), (7, True))
    queue = QueueAdapter(queue_type="SLURM")
    job = queue.submit_job(
        job_name="pysqa", working_directory=folder, cores=1, command="sleep 300", submission_template=WAITING
    )
    assert queue.get_status_of_job(job) in ("pending", "running", "cf"), queue.get_status_of_job(job)
    queue.delete_job(job)
    said = subprocess.check_output(
        ["sbatch", "--wait", "-n", "2", "-t", "5", "-o", "inside.out", "--wrap", f"{sys.executable} {__file__}"], text=True
    )
    assert said.startswith("Submitted batch job "), said
    with open("inside.out") as output:
        assert output.read().splitlines()[-1] == "inside is content"
    print("executorlib is content")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) > 1 else inside()
