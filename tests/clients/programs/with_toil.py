"""toil: a job that makes others, each of them a job of the cluster; states come from sacct."""

import os
import sys

from toil.common import Toil
from toil.job import Job, JobFunctionWrappingJob

SIZE = {"memory": "100M", "cores": 1, "disk": "10M"}


def leaf(job: JobFunctionWrappingJob, number: int) -> "tuple[int, bool]":
    return number * number, "SLURM_JOB_ID" in os.environ


def root(job: JobFunctionWrappingJob) -> "list[object]":
    return [job.addChildJobFn(leaf, number, **SIZE).rv() for number in range(3)]


def main(folder: str) -> None:
    options = Job.Runner.getDefaultOptions(f"{folder}/store")
    options.batchSystem = "slurm"
    options.statePollingWait = 1
    options.retryCount = 0
    options.maxLocalJobs = 0
    options.slurmPartition = "debug"
    options.slurmTime = "300"
    with Toil(options) as toil:
        assert toil.start(Job.wrapJobFn(root, **SIZE)) == [(0, True), (1, True), (4, True)]
    print("toil is content")


if __name__ == "__main__":
    main(sys.argv[1])
