"""What srun asks of a job's step manager: one step, as a value and as the JSON object that travels.

The controller parses srun's command line and hands the result to the ``srun`` part of stepd, which runs in the job and
cannot import this package; so the object on the wire is plain JSON whose keys are the field names here. ``None`` means
"not said": the step manager takes the job's own value then.

The JSON travels in environment variables, of which the kernel allows 128 KiB each: it is cut into pieces, SLURMK_STEP,
SLURMK_STEP_1, SLURMK_STEP_2 and so on, to be joined again. The tasks' environment is that of the srun process itself,
without the variables that begin with ``SLURMK_``, unless ``environment`` says another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields

VARIABLE = "SLURMK_STEP"

PIECE = 64 * 1024
"""Characters of JSON in one environment variable; JSON is ASCII here."""


@dataclass(frozen=True, slots=True)
class StepRequest:
    """One step. Text that was not UTF-8 is kept by surrogate escapes, as everywhere. Memory is MiB."""

    name: str
    argv: tuple[str, ...]  # with multi_prog: the configuration file's name
    cwd: str
    umask: int
    submit_line: str
    environment: tuple[str, ...] | None = None  # NAME=VALUE; None: the srun process's own
    job_id: int | None = None  # None: the job of the calling process
    owns_allocation: bool = False  # the allocation was made for this step: give it back when the step is over

    # how many and where
    tasks: int | None = None
    minimum_nodes: int | None = None
    maximum_nodes: int | None = None
    cpus_per_task: int | None = None
    tasks_per_node: int | None = None
    tasks_per_core: int | None = None
    tasks_per_socket: int | None = None
    threads_per_core: int | None = None
    nodelist: str | None = None  # a host list
    exclude: str | None = None  # a host list
    relative: int | None = None  # number of the job's node to begin with
    distribution: str | None = None  # block, cyclic, plane, arbitrary
    plane_size: int | None = None
    contiguous: bool = False
    constraint: str | None = None

    # how much
    memory_per_node: int | None = None  # 0: all that the job has there
    memory_per_cpu: int | None = None
    gres: str | None = None  # per node: gres/gpu:a100:2
    gres_per_step: str | None = None  # --gpus
    gres_per_task: str | None = None  # --gpus-per-task
    gres_per_socket: str | None = None
    cpus_per_gres: str | None = None
    memory_per_gres: str | None = None
    no_gres: bool = False  # --gres=none
    tasks_per_gpu: int | None = None
    tres_bind: str | None = None  # gres/gpu:single:1, several joined by "+"
    exact: bool = False  # only the CPUs that the tasks need
    overlap: bool = False  # share with other steps
    whole: bool = False  # all of the job's resources on the nodes (--whole)
    overcommit: bool = False
    immediate: int | None = None  # seconds to wait for resources; None: for ever

    # how it runs
    label: bool = False
    unbuffered: bool = False
    pty: int | None = None  # the descriptor of srun's terminal, when its first task gets one
    interactive: bool = False  # salloc's own shell: it shares all that the job has on its first node
    input: str | None = None  # pattern of a file, "none", "all", or a task number; None: srun's own, to all tasks
    output: str | None = None
    error: str | None = None  # None: with the output
    open_mode: str | None = None  # "a" or "w"
    kill_on_bad_exit: bool | None = None
    wait: int | None = None  # seconds after the first task ended; 0: for ever
    time_limit: int | None = None  # minutes
    job_name: str | None = None  # of --job-name, what tasks see as SLURM_JOB_NAME
    multi_prog: str | None = None  # the text of the configuration file
    signal: int | None = None  # number, sent before the time limit
    signal_delay: int | None = None  # seconds before the time limit
    signal_flags: str = ""  # "R" also while an overlapping reservation counts
    bcast: Mapping[str, object] | None = None  # the program is sent to the nodes: path or folder, compress, libraries, exclude
    prolog: str | None = None  # programs that srun itself runs before and after
    epilog: str | None = None
    task_prolog: str | None = None
    task_epilog: str | None = None
    external_launcher: bool = False  # daemons of a launcher: one a node, which share all that the job has there
    tres_freq: str | None = None  # gpu:medium
    oom_kill_step: int | None = None  # whether all tasks end when one lacks memory
    reserve_ports: int | None = None  # 1: as many as its tasks need
    debug: int | None = None  # how much stepd tells
    mpi: str | None = None
    cpu_bind: str | None = None
    mem_bind: str | None = None
    hint: str | None = None
    ignore_signals: tuple[int, ...] = ()  # that srun does not act on
    het_group: str | None = None
    het: bool = False  # one part of a step over several components of a het job
    others: tuple[Mapping[str, object], ...] = ()  # of such a step, the other parts: request, address, secret
    counter: Mapping[str, str] | None = None  # where the het job's steps are counted: address, secret
    programs: tuple[tuple[tuple[str, ...], int], ...] = ()  # of several programs in one job, each with its number of tasks
    comment: str | None = None
    quiet: int = 0
    verbose: int = 0
    disable_status: bool = False
    quit_on_interrupt: bool = False
    asynchronous: bool = False  # it goes on when srun has gone (--async), its output in files
    debugger_test: bool = False  # tasks wait for a debugger, and srun tells of their processes
    parsable: bool = False  # srun prints its name alone
    preserve_environment: bool = False
    propagate: str = ""  # the soft limits of srun that its tasks get: CPU,NOFILE

    def to_object(self) -> dict[str, object]:
        """As a JSON object: fields that have their default are left out."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, default in _DEFAULTS
            if (value := getattr(self, name)) != default or default is _REQUIRED
        }

    def to_variables(self) -> dict[str, str]:
        """The object as JSON in environment variables."""
        text = json.dumps(self.to_object())
        pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
        return {f"{VARIABLE}_{number}" if number else VARIABLE: piece for number, piece in enumerate(pieces)}

    @classmethod
    def from_object(cls, data: Mapping[str, object]) -> StepRequest:
        """The inverse of ``to_object``; keys of a newer release are passed over."""
        known = {name: _from_json(data[name]) for name, _ in _DEFAULTS if name in data}
        return cls(**known)  # type: ignore[arg-type]


_REQUIRED = object()


def _from_json(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_DEFAULTS: tuple[tuple[str, object], ...] = tuple(
    (field.name, _REQUIRED if field.default is MISSING else field.default) for field in fields(StepRequest)
)
