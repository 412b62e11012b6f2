"""jug: the elements of an array share out the tasks of one computation among them."""

import subprocess
import sys
from pathlib import Path

JUGFILE = """
import os
from jug import TaskGenerator

@TaskGenerator
def square(number):
    return number * number, os.environ["SLURM_ARRAY_JOB_ID"]

@TaskGenerator
def total(found):
    return sum(number for number, _ in found), len({job for _, job in found})

told = total([square(number) for number in range(12)])
"""


def main(folder: str) -> None:
    work = Path(folder)
    (work / "jugfile.py").write_text(JUGFILE)
    jug = Path(sys.executable).parent / "jug"
    command = f"{jug} execute --wait-cycle-time=1 --nr-wait-cycles=60 jugfile.py"
    subprocess.run(["sbatch", "--wait", "-t", "5", "-a", "1-3", "-D", folder, "-o", "out%a", "--wrap", command], check=True)
    values = "import jug; _, space = jug.init('jugfile.py', 'jugfile.jugdata'); print(jug.value(space['told']))"
    said = subprocess.run([sys.executable, "-c", values], cwd=folder, capture_output=True, text=True)
    assert said.stdout == "(506, 1)\n", said.stdout + said.stderr
    print("jug is content")


if __name__ == "__main__":
    main(sys.argv[1])
