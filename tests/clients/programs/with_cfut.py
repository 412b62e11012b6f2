"""clusterfutures: functions as jobs, with options of sbatch of one's own."""

import os
import sys

import cfut


def where(number: int) -> "tuple[int, str]":
    return number * number, os.environ["SLURM_JOB_PARTITION"]


def main(folder: str) -> None:
    os.chdir(folder)
    with cfut.SlurmExecutor(additional_setup_lines=["#SBATCH --time=5", "#SBATCH --partition=cpu"]) as executor:
        assert list(executor.map(where, [1, 2, 3], timeout=90)) == [(1, "cpu"), (4, "cpu"), (9, "cpu")]
    print("cfut is content")


if __name__ == "__main__":
    main(sys.argv[1])
