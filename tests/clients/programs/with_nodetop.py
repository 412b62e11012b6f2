"""nodetop: what a cluster has free and who may use it, from sinfo and scontrol."""

import json
import subprocess
import sys
from pathlib import Path


def nodetop(*words: str) -> str:
    command = [str(Path(sys.executable).parent / "nodetop"), "--no-color", "--ascii", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def main(folder: str) -> None:
    told = json.loads(nodetop("--json"))
    partitions = subprocess.check_output(["sinfo", "-h", "-o", "%R"], text=True).split()
    nodes = subprocess.check_output(["sinfo", "-h", "-N", "-o", "%N"], text=True).split()
    assert told["backend"] == "slurm", told
    assert set(told["max_walltime"]) == set(partitions), told
    assert told["nodes"] == len(set(nodes)), told
    assert all(name in nodetop("nodes") for name in nodes)
    print("nodetop is content")


if __name__ == "__main__":
    main(sys.argv[1])
