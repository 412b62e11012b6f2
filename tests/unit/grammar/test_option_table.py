"""The table of submission options: complete, consistent, and safe for any text."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammar.arguments import Argument, Status, parse_arguments
from grammar.errors import GrammarError
from grammar.options import (
    COMMANDS,
    SETTINGS,
    SUBMISSION,
    OptionError,
    Reading,
    SubmissionOption,
    options_of,
    variables_of,
)
from slurmk.model.job import JobRequest

SBATCH = frozenset(
    """
    account acctg-freq array autocomplete batch bb bbf begin chdir cluster cluster-constraint clusters comment
    consolidate-segments constraint container container-id container-type context contiguous core-spec cores-per-socket
    cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude exclusive export
    export-file external extra extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket
    gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name kill-on-invalid-dep licenses mail-type mail-user
    mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus network nice no-kill no-requeue nodefile nodelist
    nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres oom-kill-step open-mode
    output overcommit oversubscribe parsable partition prefer priority profile propagate qos quiet reboot requeue
    reservation resources resv-ports segment signal sockets-per-node spread-job spread-segments stepmgr switches
    tasks-per-node test-only thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid usage use-min-nodes
    verbose version wait wait-all-nodes wckey wrap
    """.split()  # noqa: SIM905
)
SRUN_ONLY = frozenset(
    """
    accel-bind async bcast bcast-exclude compress cpu-bind cpu_bind debugger-test disable-status epilog exact
    external-launcher het-group ignore-signals immediate interactive jobid kill-on-bad-exit label mpi msg-timeout multi-prog
    no-allocate overlap pack-group preserve-env prolog pty quit-on-interrupt relative send-libs slurmd-debug task-epilog
    task-prolog threads treewidth unbuffered wait-for-children whole x11
    """.split()  # noqa: SIM905
)
NOT_SRUN = frozenset(
    """
    array batch export-file external get-user-env gid ignore-pbs kill-on-invalid-dep no-requeue requeue uid
    wait-all-nodes wrap
    """.split()  # noqa: SIM905
)
SALLOC_ONLY = frozenset(("bell", "immediate", "kill-command", "no-bell", "no-shell", "x11"))
NOT_SALLOC = frozenset(
    """
    array batch error export export-file external get-user-env gid ignore-pbs input kill-on-invalid-dep no-requeue
    open-mode output parsable propagate requeue test-only uid wait wrap
    """.split()  # noqa: SIM905
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [("sbatch", SBATCH), ("srun", SBATCH - NOT_SRUN | SRUN_ONLY), ("salloc", SBATCH - NOT_SALLOC | SALLOC_ONLY)],
)
def test_every_long_option_is_there(command: str, expected: frozenset[str]) -> None:
    assert slurms_names(command) == expected


def test_counts() -> None:
    assert [len(slurms_names(command)) for command in COMMANDS] == [120, 147, 105]


def slurms_names(command: str) -> set[str]:
    """The long names that Slurm itself has."""
    return {name for row in options_of(command) if not row.extension for name in row.names}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_is_used_twice(command: str) -> None:
    names = [name for row in options_of(command) for name in row.names]
    letters = [row.short for row in options_of(command) if row.short]
    assert len(names) == len(set(names))
    assert len(letters) == len(set(letters))


def test_rows_set_known_fields() -> None:
    known = {item.name for item in dataclasses.fields(JobRequest)} | SETTINGS
    assert {name for row in SUBMISSION for name in row.fields} <= known


def test_what_has_no_effect_says_why() -> None:
    assert all(row.note for row in SUBMISSION if row.status is not Status.HONOURED)
    assert all(row.value is not None for row in SUBMISSION if row.argument is Argument.REQUIRED)


@pytest.mark.parametrize(
    ("command", "variable", "option"),
    [
        ("sbatch", "SBATCH_ARRAY_INX", "array"),
        ("sbatch", "SBATCH_TIMELIMIT", "time"),
        ("sbatch", "SLURM_HINT", "hint"),
        ("sbatch", "SBATCH_DEBUG", "verbose"),
        ("srun", "SLURM_NTASKS", "ntasks"),
        ("srun", "SLURM_JOB_NUM_NODES", "nodes"),
        ("srun", "SRUN_OUTPUT", "output"),
        ("srun", "SRUN_EXPORT_ENV", "export"),
        ("srun", "SLURM_WAIT", "wait"),
        ("salloc", "SALLOC_ACCOUNT", "account"),
        ("salloc", "SALLOC_WAIT4SWITCH", "switches"),
    ],
)
def test_environment_variables(command: str, variable: str, option: str) -> None:
    assert variables_of(command)[variable].name == option


@given(st.sampled_from(SUBMISSION), st.text(max_size=30) | st.text(alphabet="0123456789:-,=@gpu*", max_size=20), st.data())
def test_any_value_is_taken_or_refused(row: SubmissionOption, text: str, data: st.DataObject) -> None:
    reading = Reading(data.draw(st.sampled_from(row.commands)), row.name, 1_800_000_000.0)
    try:
        found = row.read(text, reading)
    except OptionError as error:
        assert error.lines  # noqa: PT017
        assert error.code in (1, 255)  # noqa: PT017
    else:
        assert set(found) == set(row.fields)


@given(st.sampled_from(COMMANDS), st.lists(st.text(max_size=12) | st.sampled_from(["--mem", "-n", "--", ":", "-N2", "--ex"])))
def test_any_command_line_is_parsed_or_refused(command: str, arguments: list[str]) -> None:
    try:
        given_options, operands = parse_arguments(command, options_of(command), arguments, stop_at_operand=True)
    except GrammarError as error:
        assert str(error).startswith(f"{command}: ")  # noqa: PT017
    else:
        assert len(given_options) + len(operands) <= sum(max(1, len(word)) for word in arguments)
