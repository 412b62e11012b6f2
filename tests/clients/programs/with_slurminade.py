"""slurminade: decorated functions as jobs, several in one job, one that waits for another, and one by srun."""

import os
import subprocess
import sys
import time
from pathlib import Path

import slurminade

slurminade.update_default_configuration(partition="debug", time="5", output="slurminade-%j.out")


@slurminade.slurmify()
def touch(name: str) -> None:
    Path(name).touch()


@slurminade.slurmify(cpus_per_task=2)
def count(name: str) -> None:
    Path(name).write_text(os.environ["SLURM_CPUS_PER_TASK"] + str(Path("first").exists()))


def main(folder: str) -> None:
    os.chdir(folder)
    first = touch.distribute("first")
    count.wait_for(first).distribute("counted")
    with slurminade.JobBundling(max_size=3):
        for number in range(4):
            touch.distribute(f"bundled-{number}")
    touch.distribute_and_wait("by-srun")
    assert Path("by-srun").exists()
    slurminade.join()
    while subprocess.check_output(["squeue", "-h"], text=True):
        time.sleep(0.2)
    assert Path("counted").read_text() == "2True"
    assert len(list(Path().glob("bundled-*"))) == 4
    print("slurminade is content")


if __name__ == "__main__":
    main(sys.argv[1])
