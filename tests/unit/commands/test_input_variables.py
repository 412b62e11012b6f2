"""Every variable that stands for an option of sbatch, srun and salloc: it says what the option says, gives way to the command
line, and goes before a script; and the reference's manual pages name no other.
"""

from __future__ import annotations

import pytest

from grammar.arguments import Argument
from grammar.options import COMMANDS, variables_of
from grammar.script import read_script
from slurmk.commands.submission import Options, parse_components, read_layers

NOW = 1_800_000_000.0

SAMPLES: dict[str, tuple[str, str]] = {
    "acctg-freq": ("task=5", "task=7"),
    "array": ("1-3", "5"),
    "bell": ("", ""),
    "compress": ("lz4", "none"),
    "constraint": ("a100", "ib"),
    "core-spec": ("1", "2"),
    "cores-per-socket": ("2", "4"),
    "cpu-bind": ("cores", "none"),
    "cpu-freq": ("low", "high"),
    "cpus-per-gpu": ("2", "3"),
    "cpus-per-task": ("2", "3"),
    "delay-boot": ("5", "6"),
    "dependency": ("afterok:1", "afterany:2"),
    "distribution": ("block", "cyclic"),
    "exclusive": ("user", "mcs"),
    "gpu-bind": ("closest", "none"),
    "gpu-freq": ("low", "high"),
    "gpus": ("1", "2"),
    "gpus-per-node": ("1", "2"),
    "gpus-per-task": ("1", "2"),
    "gres": ("gpu:1", "gpu:2"),
    "gres-flags": ("disable-binding", "enforce-binding"),
    "hint": ("nomultithread", "compute_bound"),
    "immediate": ("5", "9"),
    "jobid": ("5", "6"),
    "kill-command": ("INT", "TERM"),
    "kill-on-bad-exit": ("0", "1"),
    "mem": ("100", "2G"),
    "mem-bind": ("local", "none"),
    "mem-per-cpu": ("100", "200"),
    "mem-per-gpu": ("100", "200"),
    "mpi": ("none", "pmi2"),
    "no-kill": ("off", "off"),
    "nodes": ("2", "3-4"),
    "ntasks": ("2", "3"),
    "ntasks-per-core": ("1", "2"),
    "ntasks-per-gpu": ("1", "2"),
    "ntasks-per-node": ("2", "3"),
    "ntasks-per-socket": ("2", "3"),
    "oom-kill-step": ("0", "1"),
    "open-mode": ("append", "truncate"),
    "profile": ("task", "none"),
    "requeue": ("expedite", "expedite"),
    "resv-ports": ("2", "3"),
    "segment": ("2", "3"),
    "send-libs": ("yes", "no"),
    "signal": ("USR1@30", "TERM@60"),
    "sockets-per-node": ("1", "2"),
    "switches": ("1@10", "2"),
    "thread-spec": ("1", "2"),
    "threads": ("2", "3"),
    "threads-per-core": ("1", "2"),
    "time": ("10", "1-0"),
    "tres-bind": ("gres/gpu:closest", "gres/gpu:none"),
    "tres-per-task": ("cpu:2", "cpu:3"),
    "wait": ("5", "6"),
    "wait-all-nodes": ("1", "0"),
}
"""Two values of an option, for those that do not take any text."""

ODD = ("SBATCH_WAIT4SWITCH", "SALLOC_WAIT4SWITCH", "SLURM_WAIT4SWITCH", "SBATCH_DEBUG", "SALLOC_DEBUG", "SLURM_DEBUG")
"""Variables that stand for a part of an option, or say it in another way."""

VARIABLES = [(command, variable) for command in COMMANDS for variable in variables_of(command) if variable not in ODD]


def told(command: str, *words: str, environment: dict[str, str] | None = None, script: str = "") -> Options:
    given, _ = parse_components(command, words)
    directives = read_script(f"#!/bin/sh\n#SBATCH {script}\n".encode(), "s") if script else None
    options = read_layers(command, environment or {}, given, NOW, directives)[0]
    options.values = {name: value for name, value in options.values.items() if value is not None}  # taken back by a hint
    return options


def forms(command: str, variable: str) -> tuple[str, list[str], list[str]]:
    """The option's name, the words that say its first and its second value."""
    row = variables_of(command)[variable]
    first, second = SAMPLES.get(row.name, ("one", "two"))
    if row.argument is Argument.NONE:
        return row.name, [f"--{row.name}"], [f"--{row.name}"]
    return row.name, [f"--{row.name}={first}"], [f"--{row.name}={second}"]


def value(command: str, variable: str, number: int = 0) -> str:
    row = variables_of(command)[variable]
    return "1" if row.argument is Argument.NONE else SAMPLES.get(row.name, ("one", "two"))[number]


@pytest.mark.parametrize(("command", "variable"), VARIABLES)
def test_it_says_what_the_option_says(command: str, variable: str) -> None:
    name, first, _ = forms(command, variable)
    by_variable = told(command, environment={variable: value(command, variable)})
    assert by_variable.values == told(command, *first).values
    assert by_variable.values
    assert by_variable.said[name][0] == "environment"


@pytest.mark.parametrize(("command", "variable"), VARIABLES)
def test_the_command_line_goes_before_it(command: str, variable: str) -> None:
    _, _, second = forms(command, variable)
    assert told(command, *second, environment={variable: value(command, variable)}).values == told(command, *second).values


@pytest.mark.parametrize("variable", [variable for command, variable in VARIABLES if command == "sbatch"])
def test_it_goes_before_the_script(variable: str) -> None:
    name, first, second = forms("sbatch", variable)
    if name in ("ignore-pbs", "mem", "mem-per-cpu", "mem-per-gpu"):
        return  # the first is looked at before the script is; of memory the script's word counts, as in Slurm
    both = told("sbatch", environment={variable: value("sbatch", variable)}, script=second[0])
    assert both.values == told("sbatch", *first).values


ALSO_READ = frozenset(
    """
    SLURM_CONF SLURM_DEBUG_FLAGS SLURM_EXIT_ERROR SLURM_EXIT_IMMEDIATE SLURM_UMASK SLURM_TEST_EXEC SLURM_DIST_PLANESIZE
    SLURM_NNODES SLURM_SRUN_REDUCE_TASK_EXIT_MSG SLURM_STEP_KILLED_MSG_NODE_ID PMI_FANOUT PMI_FANOUT_OFF_HOST PMI_TIME
    SLURM_PMI_KVS_NO_DUP_KEYS SBATCH_POWER SALLOC_POWER SLURM_POWER
    """.split()  # noqa: SIM905
)
"""Variables of the manual pages that stand for no option."""

NAMED: dict[str, str] = {
    "sbatch": """
    SBATCH_ACCOUNT SBATCH_ACCTG_FREQ SBATCH_ARRAY_INX SBATCH_BATCH SBATCH_CLUSTERS SLURM_CLUSTERS SBATCH_CONSTRAINT
    SBATCH_CONTAINER SBATCH_CONTAINER_ID SBATCH_CORE_SPEC SBATCH_CPUS_PER_GPU SBATCH_DEBUG SBATCH_DELAY_BOOT SBATCH_DISTRIBUTION
    SBATCH_ERROR SBATCH_EXCLUSIVE SBATCH_EXPORT SBATCH_GET_USER_ENV SBATCH_GPU_BIND SBATCH_GPU_FREQ SBATCH_GPUS
    SBATCH_GPUS_PER_NODE SBATCH_GPUS_PER_TASK SBATCH_GRES SBATCH_GRES_FLAGS SBATCH_HINT SLURM_HINT SBATCH_IGNORE_PBS
    SBATCH_INPUT
    SBATCH_JOB_NAME SBATCH_MEM_BIND SBATCH_MEM_PER_CPU SBATCH_MEM_PER_GPU SBATCH_MEM_PER_NODE SBATCH_NETWORK SBATCH_NO_KILL
    SBATCH_NO_REQUEUE SBATCH_OPEN_MODE SBATCH_OUTPUT SBATCH_OVERCOMMIT SBATCH_PARTITION SBATCH_PROFILE SBATCH_QOS
    SBATCH_REQ_SWITCH SBATCH_REQUEUE SBATCH_RESERVATION SBATCH_SIGNAL SBATCH_SPREAD_JOB SBATCH_THREAD_SPEC
    SBATCH_THREADS_PER_CORE SBATCH_TIMELIMIT SBATCH_TRES_BIND SBATCH_TRES_PER_TASK SBATCH_USE_MIN_NODES SBATCH_WAIT
    SBATCH_WAIT_ALL_NODES SBATCH_WAIT4SWITCH SBATCH_WCKEY""",
    "salloc": """
    SALLOC_ACCOUNT SALLOC_ACCTG_FREQ SALLOC_BELL SALLOC_BURST_BUFFER SALLOC_CLUSTERS SLURM_CLUSTERS SALLOC_CONSTRAINT
    SALLOC_CONTAINER SALLOC_CORE_SPEC SALLOC_CPU_FREQ_REQ SALLOC_CPUS_PER_GPU SALLOC_DEBUG SALLOC_DELAY_BOOT SALLOC_EXCLUSIVE
    SALLOC_GPUS SALLOC_GRES SALLOC_HINT SLURM_HINT SALLOC_IMMEDIATE SALLOC_KILL_CMD SALLOC_MEM_BIND SALLOC_MEM_PER_CPU
    SALLOC_NETWORK SALLOC_NO_BELL SALLOC_NO_KILL SALLOC_OVERCOMMIT SALLOC_PARTITION SALLOC_PROFILE SALLOC_QOS SALLOC_REQ_SWITCH
    SALLOC_RESERVATION SALLOC_SIGNAL SALLOC_SPREAD_JOB SALLOC_THREAD_SPEC SALLOC_TIMELIMIT SALLOC_USE_MIN_NODES
    SALLOC_WAIT_ALL_NODES SALLOC_WAIT4SWITCH SALLOC_WCKEY""",
}
"""Names of the manual pages' sections on variables that are read."""


@pytest.mark.parametrize("command", sorted(NAMED))
def test_none_is_missing(command: str) -> None:
    assert set(NAMED[command].split()) - ALSO_READ <= variables_of(command).keys()
