"""psij-python: jobs of one and several processes, their ends, and a cancellation."""

import sys
import time
from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1


def spec(folder: str, name: str, arguments: "list[str]", **resources: int) -> JobSpec:
    return JobSpec(
        executable="/bin/bash",
        arguments=["-c", *arguments],
        directory=Path(folder),
        stdout_path=Path(folder) / f"{name}.out",
        stderr_path=Path(folder) / f"{name}.err",
        name=name,
        launcher="srun" if resources else "single",
        resources=ResourceSpecV1(**resources) if resources else None,
        attributes=JobAttributes(duration=timedelta(minutes=5), queue_name="debug"),
    )


def main(folder: str) -> None:
    executor = JobExecutor.get_instance("slurm")
    executor.config.queue_polling_interval = 1
    executor.config.initial_queue_polling_delay = 1
    jobs = {
        "one": Job(spec(folder, "one", ["echo hello"])),
        "four": Job(spec(folder, "four", ["echo rank $SLURM_PROCID"], node_count=2, processes_per_node=2)),
        "bad": Job(spec(folder, "bad", ["exit 3"])),
        "long": Job(spec(folder, "long", ["sleep 300"])),
    }
    for job in jobs.values():
        executor.submit(job)
    end = time.monotonic() + 90
    while jobs["long"].status.state is not JobState.ACTIVE:
        assert time.monotonic() < end, jobs["long"].status
        time.sleep(0.2)
    jobs["long"].cancel()
    states = {name: job.wait(timeout=timedelta(seconds=90)) for name, job in jobs.items()}
    assert all(states.values()), states
    assert states["one"].state is JobState.COMPLETED, states["one"]
    assert states["four"].state is JobState.COMPLETED, states["four"]
    assert (states["bad"].state, states["bad"].exit_code) == (JobState.FAILED, 3), states["bad"]
    assert states["long"].state is JobState.CANCELED, states["long"]
    assert (Path(folder) / "one.out").read_text() == "hello\n"
    assert sorted((Path(folder) / "four.out").read_text().split("\n"))[1:] == [f"rank {number}" for number in range(4)]
    print("psij is content")


if __name__ == "__main__":
    main(sys.argv[1])
