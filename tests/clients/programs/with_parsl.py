"""parsl: pilot jobs of two nodes started by srun, work on them, one more of them and one fewer."""

import sys
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.jobs.states import JobState
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def square(number: int) -> "tuple[int, str]":
    import os  # this function travels alone

    return number * number, os.environ["SLURM_STEP_ID"]


@parsl.bash_app
def fail() -> str:
    return "exit 3"


def wait_for_state(executor: HighThroughputExecutor, block: str, state: JobState) -> None:
    end = time.monotonic() + 60
    while executor.status().get(block) is None or executor.status()[block].state is not state:
        assert time.monotonic() < end, executor.status()
        time.sleep(0.5)


def main(folder: str) -> None:
    provider = SlurmProvider(
        partition="debug",
        nodes_per_block=2,
        cores_per_node=1,
        init_blocks=1,
        max_blocks=2,
        walltime="00:05:00",
        exclusive=False,
        launcher=SrunLauncher(),
        scheduler_options="#SBATCH --comment=parsl",
        cmd_timeout=60,
    )
    executor = HighThroughputExecutor(label="pilots", address="127.0.0.1", max_workers_per_node=1, provider=provider)
    with parsl.load(Config(executors=[executor], strategy="none", run_dir=f"{folder}/runs")):
        assert [each.result() for each in [square(number) for number in range(4)]] == [(n * n, "0") for n in range(4)]
        assert fail().exception().exitcode == 3
        executor.scale_out_facade(1)
        wait_for_state(executor, "1", JobState.RUNNING)
        executor.scale_in_facade(2)
        wait_for_state(executor, "1", JobState.SCALED_IN)
    print("parsl is content")


if __name__ == "__main__":
    main(sys.argv[1])
