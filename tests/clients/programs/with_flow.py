"""signac-flow: a project's operations as jobs, whose states it reads from squeue by their long names."""

import subprocess
import sys
import time
from pathlib import Path

import signac

PROJECT = """
import time
from flow import FlowProject
from flow.environment import DefaultSlurmEnvironment

class Here(DefaultSlurmEnvironment):
    hostname_pattern = ".*"
    template = "slurm.sh"

@FlowProject.post.isfile("square.txt")
@FlowProject.operation(directives={"walltime": 0.1})
def square(job):
    time.sleep(3)
    with open(job.fn("square.txt"), "w") as file:
        file.write(str(job.sp.number ** 2))

if __name__ == "__main__":
    FlowProject().main()
"""


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, "project.py", *words], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def main(folder: str) -> None:
    project = signac.init_project(folder)
    for number in range(3):
        project.open_job({"number": number}).init()
    Path("project.py").write_text(PROJECT)
    assert run("submit").count("Submitting cluster job") == 3
    assert "Submitting" not in run("submit"), "what is queued was submitted again"
    end = time.monotonic() + 90
    while len(list(Path(folder).glob("workspace/*/square.txt"))) < 3:
        assert time.monotonic() < end, run("status")
        time.sleep(0.5)
    assert sorted(path.read_text() for path in Path(folder).glob("workspace/*/square.txt")) == ["0", "1", "4"]
    while subprocess.check_output(["squeue", "-h"], text=True):
        time.sleep(0.2)
    print("flow is content")


if __name__ == "__main__":
    main(sys.argv[1])
