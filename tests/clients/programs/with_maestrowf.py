"""maestrowf: a study of steps with parameters, one after another; states from squeue, then from sacct."""

import subprocess
import sys
from pathlib import Path

STUDY = """
description: {name: study, description: two steps for each of two names}
batch: {type: slurm, host: here, bank: phys, queue: debug}
env:
  variables: {OUTPUT_PATH: ./out}
study:
  - name: say
    description: a step of two tasks
    run:
      cmd: $(LAUNCHER) echo "hello $(NAME)" > said.txt
      nodes: 1
      procs: 2
      cores per task: 1
      walltime: "00:05:00"
      exclusive: true
  - name: count
    description: after it
    run: {cmd: wc -l < $(say.workspace)/said.txt > counted.txt, depends: [say], nodes: 1, procs: 1, walltime: "00:05:00"}
global.parameters:
  NAME: {values: [Ada, Bob], label: NAME.%%}
"""


def main(folder: str) -> None:
    Path("study.yaml").write_text(STUDY)
    command = [str(Path(sys.executable).parent / "maestro"), "run", "-fg", "-y", "-s", "1", "study.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = sorted(Path(folder).glob("out/*/count/*/counted.txt"))
    assert [path.read_text() for path in counted] == ["2\n", "2\n"], done.stdout + done.stderr
    print("maestrowf is content")


if __name__ == "__main__":
    main(sys.argv[1])
