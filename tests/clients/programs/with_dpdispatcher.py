"""dpdispatcher: DeepModeling's dispatcher makes scripts of tasks, as jobs and as an array, and polls squeue."""

import os
import sys
from pathlib import Path

from dpdispatcher import Machine, Resources, Submission, Task


def run(work: Path, kind: str, command: str, gpus: int, group_size: int) -> "list[str]":
    local = work / kind
    names = ("first", "second")
    for name in names:
        (local / name).mkdir(parents=True)
        (local / name / "in").write_text(f"{name}\n")
    place = {"context_type": "LazyLocalContext", "local_root": str(local), "remote_root": str(work / "remote")}
    machine = Machine.load_from_dict({"batch_type": kind, **place})
    size = {"number_node": 1, "cpu_per_node": 2, "gpu_per_node": gpus, "queue_name": "gpu" if gpus else "debug"}
    resources = Resources.load_from_dict({**size, "group_size": group_size, "custom_flags": ["#SBATCH --time=5"]})
    tasks = [Task(command=command, task_work_path=name, forward_files=["in"], backward_files=["out"]) for name in names]
    Submission(work_base=".", machine=machine, resources=resources, task_list=tasks).run_submission(check_interval=1)
    return [(local / name / "out").read_text() for name in names]


def main(folder: str) -> None:
    os.chdir(folder)
    work = Path(folder)
    tell = "{ cat in; echo $SLURM_NTASKS $CUDA_VISIBLE_DEVICES | grep -E '^2 [0-3]$'; } > out"
    assert [told.split()[:2] for told in run(work, "Slurm", tell, 1, 1)] == [["first", "2"], ["second", "2"]]
    tell = "{ cat in; echo $SLURM_ARRAY_TASK_ID; } > out"
    assert sorted(told.split()[1] for told in run(work, "SlurmJobArray", tell, 0, 2)) == ["0", "1"]
    print("dpdispatcher is content")


if __name__ == "__main__":
    main(sys.argv[1])
