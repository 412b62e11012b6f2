"""sbatch beside its submissions: what of the environment a job gets, how --test-only words het jobs, exit codes of --wait; and
scancel that asks."""

from __future__ import annotations

from sides import Case

SHOWN = "compgen -e | grep -vE '^(SLURM|HYDRA|I_MPI|OMPI|PRTE|PATH|PYENV|TERM|_|SHLVL|OLDPWD|LC_|LS_|MAIL)' | sort"
"""Names of variables that are set, but for those that a login may set, or not."""

EXPORTS: dict[str, str] = {
    "all": "--export=ALL",
    "nil": "--export=NIL",
    "none": "--export=NONE",
    "list": "--export=ONE,B=2",
    "over": "--export=ALL,ONE=5",
    "under": "--export=ONE=5,ALL",
    "quoted": "--export='B=\"x,y\",C=1'",
    "spaced": "--export='ONE, B=2'",
    "empty": "--export=",
    "login": "--get-user-env",
    "file": "--export-file=vars --export=ALL",
    "descriptor": "--export-file=3 --export=ALL 3<vars",
}
"""Name of a job -> what it is told to take along."""

SETUP = (
    "printf 'P=1\\0Q=a b\\0R\\0=5\\0T=1\\0T=2\\0' >vars",
    f"printf '%s\\n' '#!/bin/bash' \"{SHOWN}\" 'echo \"$ONE|$B|$C|$P|$Q|$T|$SLURM_EXPORT_ENV|$SLURM_GET_USER_ENV\"' >show.sh",
    *(
        f"ONE=1 TWO=2 sbatch -A phys -w n{1 + number % 8} -o {name}.out {words} show.sh"
        for number, (name, words) in enumerate(EXPORTS.items())
    ),
)
DONE = " && ".join(f"grep -q '|' {name}.out" for name in EXPORTS)

_TEST_ONLY = (
    "sbatch -A phys --test-only -n1 -w n1 : -w n5 -p cpu : -n3 -N1 -w n8 --wrap true",
    "sbatch -A phys --test-only -Q -n1 : -n1 --wrap true",
    "sbatch -A phys --test-only -n1 : -p nosuch --wrap true",
    "sbatch -A phys --test-only -t 5-0 -w n1 --wrap true",
    "sbatch -A phys --test-only -p gpu,cpu -w n8 --wrap true",
    "sbatch -A phys --gres=gpu:1 --gres-flags=allow-task-sharing --wrap true",
    "salloc -A phys --gres=gpu:1 --gres-flags=allow-task-sharing true",
)

HELD = ("sbatch -A phys -H -J ask --wrap true",)
HELD_ARRAY = ("sbatch -A phys -H -J ask -a 1-3 --wrap true",)
LEFT = "; squeue -h -j {0} -r -o '%i %t'"
_ASKED = (
    ("scancel -i {0}" + LEFT, "n\n"),
    ("scancel -i {0}" + LEFT, "x\n\nNo\n"),
    ("scancel -iv -n ask {0}", "n\n"),
    ("scancel -i 999999 {0}", "n\n"),
    ("SCANCEL_INTERACTIVE=true scancel {0}", "n\n"),
    ("SCANCEL_INTERACTIVE=false scancel -n nosuch", "n\n"),
    ("SCANCEL_INTERACTIVE=yes scancel -n nosuch", "n\n"),
    ("SCANCEL_VERBOSE=1 scancel -n nosuch", None),
    ("SCANCEL_BATCH= scancel -n nosuch", None),
    ("SCANCEL_STATE=zz scancel 1", None),
    ("scancel -i {0}; squeue -h -j {0} -t all -o '%i %t'", "Yes\n"),
)
_ASKED_OF_ARRAY = (
    ("scancel -i {0}" + LEFT, "n\n"),
    ("scancel -i {0}_2" + LEFT, "n\n"),
    ("scancel -i {0}_[1,3]" + LEFT, "n\nn\n"),
    ("scancel -i {0}_2" + LEFT, "y\n"),
)
"""The reference also asks about the last job that there is, whichever is meant, so each has a situation of its own."""

STATISTICS = "sdiag --json | sed -E 's/: *-?[0-9]+/: 0/' | sed -n '/\"statistics\"/,/\"rpcs_by_message_type\"/p'"

CASES = [
    *(
        Case(f"cat {name}.out", setup=SETUP, until=DONE, title=f"{words}: the job's variables")
        for name, words in EXPORTS.items()
    ),
    *(Case(f"{{ {command}; }} 2>&1 | sed 's/Job [0-9]*/Job N/'", title=command) for command in _TEST_ONLY),
    *(Case(command, setup=HELD, stdin=typed, title=f"{command} <<< {typed!r}") for command, typed in _ASKED),
    *(
        Case(command, setup=HELD_ARRAY, stdin=typed, title=f"{command} <<< {typed!r}, an array")
        for command, typed in _ASKED_OF_ARRAY
    ),
    Case(STATISTICS, title="sdiag --json: the members"),
]
