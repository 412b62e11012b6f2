"""easy_slurm: a job folder whose script packs, runs, and submits itself again where it is not done in time."""

import os
import subprocess
import sys
import time
from pathlib import Path

import easy_slurm


def main(folder: str) -> None:
    work = Path(folder)
    os.environ["SLURM_TMPDIR"] = str(work / "scratch")
    (work / "scratch").mkdir()
    for name in ("src", "assets"):
        (work / name).mkdir()
    (work / "src" / "step.sh").write_text("echo ran $SLURM_JOB_NAME with $SLURM_CPUS_PER_TASK >> $SLURM_TMPDIR/results/told\n")
    directory = easy_slurm.submit_job(
        job_dir=str(work / "{job_name}"),
        src=str(work / "src"),
        assets=str(work / "assets"),
        on_run="sh step.sh",
        sbatch_options={"job-name": "easy", "time": "0:05:00", "cpus-per-task": 1, "mem": "100M"},
        cleanup_seconds=60,
    )
    for _ in range(150):
        if not subprocess.check_output(["squeue", "-h", "-n", "easy"], text=True):
            break
        time.sleep(0.2)
    status = (Path(directory) / "status").read_text()
    assert "status=completed" in status, status
    assert "resubmit_count=0" in status, status
    told = [path.read_text() for path in Path(directory).rglob("told")]
    assert told[:1] == ["ran easy with 1\n"], told
    print("easy-slurm is content")


if __name__ == "__main__":
    main(sys.argv[1])
