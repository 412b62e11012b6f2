"""qtoolkit: the queue interface of jobflow-remote, which submits scripts and reads what sbatch, squeue and scancel say."""

import sys
import time
from pathlib import Path

from qtoolkit.core.data_objects import CancelStatus, QResources, QState, SubmissionStatus
from qtoolkit.io.slurm import SlurmIO
from qtoolkit.manager import QueueManager


def wait_for(manager: QueueManager, job: str, *states: QState) -> None:
    for _ in range(200):
        found = [each.state for each in manager.get_jobs_list(jobs=[job])] or [QState.DONE]
        if found[0] in states:
            return
        time.sleep(0.2)
    raise AssertionError(f"job {job} is {found}")


def main(folder: str) -> None:
    work = Path(folder)
    manager = QueueManager(SlurmIO())
    wants = QResources(job_name="ranks", processes=2, threads_per_process=1, time_limit=300, output_filepath=work / "out")
    done = manager.submit(["srun hostname"], options=wants, work_dir=work)
    assert done.status == SubmissionStatus.SUCCESSFUL, done
    wait_for(manager, done.job_id, QState.DONE)
    assert len((work / "out").read_text().split()) == 2
    wants = QResources(job_name="long", processes=1, time_limit=600)
    running = manager.submit(["sleep 300"], options=wants, work_dir=work).job_id
    wait_for(manager, running, QState.RUNNING)
    (listed,) = manager.get_jobs_list(jobs=[running])
    assert (listed.name, listed.info.nodes, listed.info.time_limit) == ("long", 1, 600), listed
    assert manager.cancel(running).status == CancelStatus.SUCCESSFUL
    wait_for(manager, running, QState.DONE, QState.FAILED)
    print("qtoolkit is content")


if __name__ == "__main__":
    main(sys.argv[1])
