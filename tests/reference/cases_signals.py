"""What the output of jobs and steps says when signals end them, and what accounting keeps of it."""

from __future__ import annotations

from sides import Case

SETUP = (
    "sbatch -J killed -w n1 -o killed.out --wrap 'touch killed.on; sleep 60'",
    "sbatch -J ended -w n2 -o ended.out --wrap 'touch ended.on; sleep 60'",
    "sbatch -J plain -w n3 -o plain.out --wrap 'touch plain.on; sleep 60'",
    "sbatch -J step -w n4 -o step.out --wrap 'srun bash -c \"touch step.on; exec sleep 60\"; echo $?'",
    "sbatch -J still -w n5 -o still.out --wrap 'srun bash -c \"touch still.on; exec sleep 60\"'",
    "for f in killed ended plain step still; do until [ -e $f.on ]; do sleep 0.1; done; done",
    "scancel -b -s KILL {0}; scancel -b -s TERM {1}; scancel -b {2}; scancel -s KILL {3}.0",
    "scontrol suspend {4}; scancel {4}",
)
DONE = '[ "$(squeue -h -j {0},{1},{2},{3},{4} -t PD,R,CG)" = "" ] && sleep 1'

CASES = [
    *(Case(f"cat {name}.out", setup=SETUP, until=DONE) for name in ("killed", "ended", "plain", "step", "still")),
    *(Case(f"sacct -n -P -j {{{number}}} -o JobID,JobName,State,ExitCode", setup=SETUP, until=DONE) for number in range(5)),
]
