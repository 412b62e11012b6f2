"""reportseff: how well finished jobs and array elements used what they asked for, from sacct."""

import subprocess
import sys
from pathlib import Path

BUSY = "srun python3 -c 'import time; held = bytearray(64 << 20)\nwhile time.process_time() < 3: pass'"


def report(*words: str) -> "list[str]":
    command = [str(Path(sys.executable).parent / "reportseff"), "--no-color", *words]
    return subprocess.check_output(command, text=True).splitlines()


def submit(*words: str) -> str:
    done = subprocess.run(["sbatch", "--parsable", "--wait", "-t", "5", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(folder: str) -> None:
    busy = submit("-J", "busy", "--mem=100M", "--wrap", BUSY)
    array = submit("-a", "1-2", "--wrap", "exit $((SLURM_ARRAY_TASK_ID - 1))")
    (line,) = report("--parsable", "--format", "JobID,State,CPUEff,MemEff", busy)[1:]
    job, state, processor, memory = line.split("|")
    assert (job, state) == (busy, "COMPLETED"), line
    assert float(processor) > 1, line
    assert float(memory) > 50, line
    states = [line.split("|")[:2] for line in report("--parsable", "--format", "JobID,State", array)[1:]]
    assert states == [[f"{array}_1", "COMPLETED"], [f"{array}_2", "FAILED"]], states
    assert any(line.split()[:1] == [f"slurm-{busy}.out"] for line in report()), "output files tell of their jobs"
    print("reportseff is content")


if __name__ == "__main__":
    main(sys.argv[1])
