"""cluster_tools: maps of functions as array jobs, a function that fails, and a job that dies."""

import os
import sys

import cluster_tools


def square(number: int) -> "tuple[int, str]":
    return number * number, os.environ["SLURM_CPUS_PER_TASK"]


def fail() -> None:
    raise ValueError("on purpose")


def die() -> None:
    os.kill(os.getppid(), 9)
    os._exit(9)


def main(folder: str) -> None:
    os.chdir(folder)
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))  # where jobs find these functions
    resources = {"mem": "200M", "time": "00:05:00", "cpus-per-task": "2"}
    with cluster_tools.get_executor("slurm", job_resources=resources, keep_logs=True) as executor:
        assert list(executor.map(square, [2, 3, 4])) == [(4, "2"), (9, "2"), (16, "2")]
        assert executor.get_max_array_size() == 1001
        failed, died = executor.submit(fail), executor.submit(die)
        assert "on purpose" in str(failed.exception(timeout=90))
        assert "Job submission/execution failed" in str(died.exception(timeout=90))
    print("cluster-tools is content")


if __name__ == "__main__":
    main(sys.argv[1])
