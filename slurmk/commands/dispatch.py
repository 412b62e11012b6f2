"""Which module answers which command. Modules are imported when first asked for: the controller starts fast."""

from __future__ import annotations

import importlib
import time
from collections.abc import Awaitable, Callable
from typing import cast

from grammar.errors import GrammarError
from grammar.times import TIME_FORMAT, time_format
from slurmk.commands.call import VERSION_TEXT, Call, Controller, Failure, Output

Run = Callable[[Call, Controller, Output], Awaitable[int]]

MODULES: dict[str, str] = {
    "sbatch": "slurmk.commands.sbatch",
    "srun": "slurmk.commands.srun",
    "salloc": "slurmk.commands.salloc",
    "squeue": "slurmk.commands.squeue",
    "scancel": "slurmk.commands.scancel",
    "sinfo": "slurmk.commands.sinfo",
    "sacct": "slurmk.commands.sacct",
    "scontrol": "slurmk.commands.scontrol",
    "sprio": "slurmk.commands.sprio",
    "sdiag": "slurmk.commands.sdiag",
    "sstat": "slurmk.commands.sstat",
    "sattach": "slurmk.commands.sattach",
    "sbcast": "slurmk.commands.sbcast",
    "scrontab": "slurmk.commands.scrontab",
    "swait": "slurmk.commands.swait",
    "strigger": "slurmk.commands.strigger",
    "slurmk": "slurmk.commands.slurmk",
}
"""Command to the module whose ``run`` answers it."""

NOT_YET: frozenset[str] = frozenset(
    "sacctmgr sshare sreport".split()  # noqa: SIM905
)
"""Commands of Slurm that have a shim but no module yet; they say so."""

_runs: dict[str, Run] = {}


async def dispatch(call: Call, controller: Controller, output: Output) -> int:
    """Answer one call; gives the exit code."""
    if call.arguments and call.arguments[0] in ("--version", "-V"):
        output.write(VERSION_TEXT + "\n")
        return 0
    run = _run_of(call.command)
    if run is None:
        output.error(f"{call.command}: error: this command is not part of slurmk yet\n")
        return 1
    _set_time_format(call, controller, output)
    began = time.monotonic()
    try:
        return await run(call, controller, output)
    except Failure as failure:
        output.error(failure.text)
        return failure.code
    finally:
        caller = call.caller
        controller.statistics.requested(call.command, (caller.user_id, caller.user_name), time.monotonic() - began)


def _set_time_format(call: Call, controller: Controller, output: Output) -> None:
    """Have this call's times written as its SLURM_TIME_FORMAT says. Slurm complains at every time, this once."""
    try:
        form = time_format(call.environment.get("SLURM_TIME_FORMAT", ""), controller.now())
    except GrammarError as error:
        output.error(f"{call.command}: error: {error}\n")
        form = None
    TIME_FORMAT.set(form)


def _run_of(command: str) -> Run | None:
    run = _runs.get(command)
    if run is None and command in MODULES:
        run = _runs[command] = cast(Run, importlib.import_module(MODULES[command]).run)
    return run
