"""What is said of the kills of steps, and of jobs that the caller may not end."""

from __future__ import annotations

from sides import Case

STEPS = (
    "sbatch -J steps -A phys -t 5 -w n2 -o steps.out --wrap 'srun sleep 301; srun sleep 302; touch over; sleep 100'",
    "until squeue -h -s -j {0} -o %i | grep -q '[.]0$'; do sleep 0.2; done; sleep 1; scancel {0}.0",
    "until squeue -h -s -j {0} -o %i | grep -q '[.]1$'; do sleep 0.2; done; sleep 1; scancel -s TERM {0}.1",
)
OF_ROOT = ("sbatch -H -J one --wrap true", "sbatch -H -J other --wrap true")

CASES = [
    Case("cat steps.out", setup=STEPS, until="[ -e over ]", ignore=(r"(?<=StepId=)\s*\S+", r"(?<=STEP )\s*\S+")),
    Case("sleep 1; sacct -n -j {0} -o jobid,state%20,exitcode", setup=STEPS, until="[ -e over ]"),
    *(
        Case(f"scancel {words} 2>&1 | sort", setup=OF_ROOT, user="alice")
        for words in ("{0}", "-u root -n one", "-n one", "-u root -n nosuch", "-v -n one", "{0} {1}")
    ),
]
