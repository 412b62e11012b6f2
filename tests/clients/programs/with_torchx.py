"""torchx: an application of two roles as a het job, whose state comes from sacct and whose logs from its files."""

import os
import subprocess
import sys
import time

from torchx.runner import get_runner
from torchx.schedulers.api import Stream
from torchx.specs import AppDef, AppState, Resource, Role


def role(name: str, replicas: int, command: str) -> Role:
    return Role(name, image="", entrypoint="sh", args=["-c", command], num_replicas=replicas, resource=Resource(1, 0, 100))


def state_of(runner: "object", app: str, *wanted: AppState) -> AppState:
    for _ in range(150):
        status = runner.status(app)
        if status is not None and status.state in wanted:
            return status.state
        time.sleep(0.2)
    raise AssertionError(f"the application is {status}")


def main(folder: str) -> None:
    os.chdir(folder)
    over = (AppState.SUCCEEDED, AppState.FAILED)
    settings = {"partition": "debug", "time": "0:05:00", "job_dir": None}
    with get_runner("test") as runner:
        app = AppDef("hello", [role("leader", 1, "echo leader"), role("worker", 2, "echo worker $SLURM_PROCID")])
        done = runner.run(app, "slurm", settings)
        assert state_of(runner, done, *over) is AppState.SUCCEEDED
        assert [line.strip() for line in runner.log_lines(done, "leader", 0, streams=Stream.STDOUT)] == ["leader"]
        failed = runner.run(AppDef("failing", [role("leader", 1, "exit 3")]), "slurm", settings)
        assert state_of(runner, failed, *over) is AppState.FAILED
        long = runner.run(AppDef("long", [role("leader", 1, "sleep 300")]), "slurm", settings)
        state_of(runner, long, AppState.RUNNING)
        runner.cancel(long)
        for _ in range(100):
            if not subprocess.check_output(["squeue", "-h", "-n", "long"], text=True):
                break
            time.sleep(0.2)
    print("torchx is content")


if __name__ == "__main__":
    main(sys.argv[1])
