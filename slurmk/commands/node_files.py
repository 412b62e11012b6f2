"""Nodes that are named in files of the caller's, and the tasks that are put on named nodes one by one.

The file of ``--nodefile``, and that of ``--nodelist`` with a path, hold nodes; the file that SLURM_HOSTFILE names holds the
node of each task in turn, which makes the distribution arbitrary whatever ``--distribution`` says (srun(1)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from grammar.errors import GrammarError
from grammar.hostlist import expand
from grammar.options import OptionError
from slurmk.commands.call import Output, Unreadable
from slurmk.commands.submission import ARBITRARY_NODES, Options
from slurmk.core.errors import Errno, SlurmError

LONGEST = 1 << 20
"""Bytes of a file that names nodes."""

_NO_DIRECTORY = "Is a directory"


async def read_node_files(command: str, options: Options, environment: Mapping[str, str], output: Output) -> None:
    """Replace files by the nodes that they name, and give each node of an arbitrary distribution its task. Raises
    OptionError."""
    await _read_listed(command, options, output)
    listed = options.get("required_nodes")
    names: list[str] | None = None
    if not listed and environment.get("SLURM_HOSTFILE"):
        names = await _of_host_file(command, options, environment["SLURM_HOSTFILE"], output)
    elif options.get("distribution") == "arbitrary":
        names = _expanded(listed or environment.get(ARBITRARY_NODES, ""))
    if names:
        _deal_out(command, options, names)


async def _read_listed(command: str, options: Options, output: Output) -> None:
    path, listed = options.get("nodefile"), options.get("required_nodes")
    named = listed if listed and "/" in listed else None
    wanted = named if path is None else path
    if wanted is None:
        return
    if not wanted:
        raise _error(command, "Invalid --nodefile node file", code=255)
    try:
        names = await _names_in(wanted, output)
    except Unreadable as error:
        lines = [_unreadable(command, wanted, error)]
        if path:
            raise OptionError(*lines, f"{command}: error: Invalid --nodefile node file") from None
        raise OptionError(*lines, code=1) from None
    if not names:
        refusal = ["Invalid --nodefile node file"] if path else []
        raise _error(command, "Hostlist is empty!", *refusal, code=255 if path else 1)
    options.values["required_nodes"] = ",".join(names)
    options.said["nodelist"] = options.said.get("nodelist", ("command line", wanted))


async def _of_host_file(command: str, options: Options, path: str, output: Output) -> list[str]:
    """The nodes of the tasks: of the first ones where fewer tasks are asked for. Raises OptionError."""
    path = path if "/" in path else f"./{path}"
    failed = "Failure getting NodeNames from hostfile"
    try:
        names = [name for word in await _names_in(path, output) for name in _expanded(word)]
    except Unreadable as error:
        if error.text != _NO_DIRECTORY:
            raise OptionError(_unreadable(command, path, error), f"{command}: error: {failed}", code=1) from None
        names = []
    if not names:
        raise _error(command, "Hostlist is empty!", failed, code=1)
    tasks = options.get("tasks")
    if tasks is not None and tasks > len(names):
        raise _error(command, "Too few NodeNames in Slurm Hostfile", failed, code=1)
    return names[:tasks]


async def _names_in(path: str, output: Output) -> list[str]:
    """The words of a file; what stands behind ``#`` is none. Raises Unreadable."""
    content = await output.read(path, LONGEST)
    lines = [line.partition("#")[0] for line in content.decode("utf-8", "surrogateescape").splitlines()]
    return [word for line in lines for word in line.split()]


def _expanded(text: str) -> list[str]:
    """The names that a list stands for; one that makes no sense is left as it is, to be refused as a node's name."""
    try:
        return list(expand(text)) if text else []
    except GrammarError:
        return [text]


def _deal_out(command: str, options: Options, names: list[str]) -> None:
    """One task for each name in turn. Raises OptionError."""
    if options.said.get("nodes", ("environment",))[0] != "environment":
        raise _error(command, "--nodes is incompatible with --distribution=arbitrary", code=1)
    if options.get("tasks") not in (None, len(names)):
        before = {"sbatch": "Batch job submission failed", "srun": "Unable to allocate resources"}
        raise _error(
            command, f"{before.get(command, 'Job submit/allocate failed')}: {SlurmError(Errno.BAD_TASK_COUNT)}", code=1
        )
    most = max(Counter(names).values()) * (options.get("cpus_per_task") or 1)
    if most > (options.get("minimum_cpus_per_node") or 1):
        options.values["minimum_cpus_per_node"] = most
    options.values |= {"distribution": "arbitrary", "required_nodes": ",".join(names), "tasks": len(names)}


def _unreadable(command: str, path: str, error: Unreadable) -> str:
    return f"{command}: error: slurm_allocate_resources error opening file {path}, {error.text}"


def _error(command: str, *reasons: str, code: int) -> OptionError:
    return OptionError(*(f"{command}: error: {reason}" for reason in reasons), code=code)
