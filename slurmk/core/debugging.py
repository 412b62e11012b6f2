"""scontrol setdebug and setdebugflags: parameters of the site that last until its configuration is read again."""

from __future__ import annotations

from dataclasses import replace

from grammar.configuration_words import in_order
from slurmk.core.effects import Accepted, Refused
from slurmk.core.errors import Errno, SlurmError
from slurmk.core.events import SetDebug
from slurmk.core.state import Turn


def set_debug(turn: Turn, event: SetDebug) -> None:
    """Go by another level and other flags from now on."""
    if not event.caller.operator:
        turn.emit(Refused(SlurmError(Errno.ACCESS_DENIED)))
        return
    site = turn.state.site
    parameters = dict(site.parameters)
    if event.level:
        parameters["SlurmctldDebug"] = event.level
    flags = {flag.lower() for flag in parameters.get("DebugFlags", "").split(",")}
    flags |= {flag.lower() for flag in event.add}
    flags -= {flag.lower() for flag in event.remove}
    parameters["DebugFlags"] = ",".join(in_order(flags)) or "(null)"
    turn.state.site = replace(site, parameters=parameters)
    turn.emit(Accepted())
