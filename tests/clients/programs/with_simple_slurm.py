"""simple_slurm: an array, a job after it, a job by srun, the queue as a table, and a cancellation."""

import subprocess
import sys
import time
from pathlib import Path

from simple_slurm import Slurm


def main(folder: str) -> None:
    array = Slurm(array=range(3, 5), cpus_per_task=2, job_name="elements", output="element-%a.out", time="00:05:00")
    first = array.sbatch("echo $SLURM_ARRAY_TASK_ID $SLURM_CPUS_PER_TASK", shell="/bin/bash")
    second = Slurm(dependency={"afterok": first}, job_name="after", time="5").sbatch("sleep 300")
    assert Slurm(job_name="run", ntasks=2, time="1").srun("true") == 0
    table = Slurm(time="5")
    table.squeue.update_squeue()
    assert table.squeue.jobs[second]["NAME"] == "after", table.squeue.jobs
    end = time.monotonic() + 60
    while subprocess.check_output(["squeue", "-h", "-j", str(second), "-o", "%T"], text=True) != "RUNNING\n":
        assert time.monotonic() < end, "the job after the array did not start"
        time.sleep(0.2)
    table.scancel.cancel_job(second)
    assert [Path(folder, f"element-{number}.out").read_text() for number in (3, 4)] == ["3 2\n", "4 2\n"]
    while subprocess.check_output(["squeue", "-h"], text=True):
        time.sleep(0.2)
    print("simple-slurm is content")


if __name__ == "__main__":
    main(sys.argv[1])
