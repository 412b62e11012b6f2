"""scontrol's nodes: create, update and delete (scontrol(1)), and the keys that a node is told by."""

from __future__ import annotations

from collections.abc import Sequence

from grammar.errors import GrammarError
from grammar.hostlist import expand
from slurmk.commands import scontrol_keys as keys
from slurmk.commands.scontrol_keys import ERROR, Changes, Failure, Key, Typed
from slurmk.commands.scontrol_session import Session
from slurmk.core.effects import Refused
from slurmk.core.errors import MESSAGES, Errno
from slurmk.core.events import CreateNodes, DeleteNodes, UpdateNode
from slurmk.model.configuration import CREATABLE_STATES, gres_of, nodes_of_line
from slurmk.model.states import INFINITE

# ---------------------------------------------------------------------------------------------- values


def _features(field: str) -> keys.Read:
    return lambda typed: [(field, tuple(word for word in typed.value.split(",") if word))]


def _weight(typed: Typed) -> Changes:
    found = keys.unsigned(typed.value, 32)
    if found is None:
        raise Failure(f"{ERROR}Invalid value {typed.text} for Weight")
    return [("weight", found)]


def _gres(typed: Typed) -> Changes:
    try:
        return [("gres", gres_of(typed.value))]
    except GrammarError:
        raise Failure(f"slurm_update error: {MESSAGES[Errno.INVALID_GRES]}") from None


def _reason(typed: Typed) -> Changes:
    """Quotes around it that the shell has left are not part of it."""
    value = typed.value[1:] if typed.value.startswith('"') else typed.value
    return [("reason", value[:-1] if value.endswith('"') else value)]


def _resume_after(typed: Typed) -> Changes:
    found = INFINITE if typed.value == "-1" else keys.unsigned(typed.value, 32)
    if found is None:
        raise Failure(f"{ERROR}Invalid value {typed.text} for ResumeAfter")
    return [("resume_after", found)]


STATES: tuple[tuple[str, int], ...] = (
    ("NORESP", 3),
    ("CANCEL_REBOOT", 3),
    ("DRAIN", 3),
    ("FAIL", 3),
    ("FUTURE", 3),
    ("RESUME", 3),
    ("POWER_DOWN_ASAP", 12),
    ("POWER_DOWN_FORCE", 12),
    ("POWER_DOWN", 7),
    ("POWER_UP", 7),
    ("UNDRAIN", 3),
    ("UNKNOWN", 3),
    ("DOWN", 3),
    ("IDLE", 3),
    ("ALLOCATED", 3),
    ("MIXED", 3),
)
"""Words of State, and the least letters of each."""


def _state(typed: Typed) -> Changes:
    word = typed.value.upper()
    for state, shortest in STATES:
        if len(word) >= shortest and state.startswith(word):
            return [("state", state)]
    raise Failure(
        f"Invalid input: {typed.text}\nRequest aborted\n"
        "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
        "Not all states are valid given a node's prior state"
    )


KEYS: tuple[Key, ...] = (
    Key("NodeAddr", 5, keys.text("address")),
    Key("NodeHostName", 5, keys.text("host_name")),
    Key("ActiveFeatures", 3, _features("active_features")),
    Key("CertToken", 1, keys.text("certificate_token")),
    Key("CpuBind", 7, keys.cpu_binding),
    Key("Extra", 1, keys.text("extra")),
    Key("Features", 1, _features("features")),
    Key("AvailableFeatures", 3, _features("features")),
    Key("Gres", 1, _gres),
    Key("InstanceId", 9, keys.text("instance_id")),
    Key("InstanceType", 9, keys.text("instance_type")),
    Key("Weight", 1, _weight),
    Key("Comment", 2, keys.text("comment")),
    Key("Reason", 1, _reason),
    Key("ResumeAfter", 4, _resume_after),
    Key("State", 1, _state),
    Key("Topology", 4, keys.text("topology")),
)
"""What a node is told, in the order in which a shortened key is looked up."""


# ---------------------------------------------------------------------------------------------- commands

_POWER = frozenset({"POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWER_DOWN", "POWER_UP"})
_NEVER = frozenset({"CANCEL_REBOOT", "ALLOCATED", "MIXED", "UNKNOWN"})
"""States that no node can be put into: none is about to be rebooted, and what runs there is nobody's to say."""

REASON_MISSING = "You must specify a reason when DOWNING or DRAINING a node. Request denied"


async def update(session: Session, words: Sequence[str]) -> int:
    """``scontrol update NodeName=…``."""
    named, changes, counted = _read(words, session.controller.now())
    state, reason = changes.pop("state", None), changes.pop("reason", None)
    if state in ("DOWN", "DRAIN", "FAIL") and not reason:
        raise Failure(REASON_MISSING)
    if "resume_after" in changes and state not in ("DOWN", "DRAIN"):
        raise Failure("You can only specify a resume time when DOWNING or DRAINING a node. Request denied")
    if not counted:
        raise Failure("No changes specified")
    nodes = _named(session, named)
    if session.call.caller.operator and set(nodes) <= session.controller.machine.nodes.keys():
        if state in _POWER:
            raise Failure("slurm_update error: Invalid power action")
        if state in _NEVER:
            raise Failure(f"slurm_update error: {MESSAGES[Errno.INVALID_NODE_STATE_TRANSITION]}")
    event = UpdateNode(
        session.controller.now(),
        session.call.caller,
        nodes,
        None if state is None else str(state),
        None if reason is None else str(reason),
        tuple(changes.items()),
    )
    return keys.tell_update(await session.controller.apply(event), session.output)


def _read(words: Sequence[str], now: float) -> tuple[str, dict[str, object], int]:
    """The nodes as typed, the changes, and how many keys there were."""
    named, counted = "", 0
    changes: dict[str, object] = {}
    for word in words:
        typed = keys.typed(word, now)
        if typed is None:
            raise Failure(f"{ERROR}Invalid input: {word}  Request aborted")
        key = keys.find_key(KEYS, typed.key) if not typed.sign else None
        if not typed.sign and keys.abbreviates(typed.key, "NodeName", 1) and (key is None or not key.name.startswith("Node")):
            named = typed.value
            continue
        if key is None:
            raise Failure(f"Update of this parameter is not supported: {word}\nRequest aborted")
        changes.update(key.read(typed))
        counted += 1
    return named, changes, counted


def _named(session: Session, text: str) -> tuple[str, ...]:
    if text.upper() == "ALL":
        return tuple(session.controller.machine.nodes)
    try:
        return tuple(expand(text)) or (text,)
    except GrammarError:
        return (text,)


_CREATABLE = "Only State=FUTURE, CLOUD, or EXTERNAL allowed for nodes created by scontrol"


async def create(session: Session, words: Sequence[str]) -> int:
    """``scontrol create NodeName=… State=…``: a line as slurm.conf has it."""
    line = " ".join(words)
    prefix = "Error creating node(s): "
    if not session.call.caller.operator:
        return session.say(f"{prefix}{MESSAGES[Errno.USER_ID_MISSING]}\n")
    try:
        nodes, state = nodes_of_line(line)
    except GrammarError:
        return session.say(f"{ERROR}Failed to parse nodeline '{line}'\n{prefix}Unspecified error\n")
    if state.upper() not in CREATABLE_STATES:
        return session.say(f"{ERROR}{_CREATABLE}\n{prefix}{MESSAGES[Errno.INVALID_NODE_STATE]}\n")
    for answer in await session.controller.apply(CreateNodes(session.controller.now(), session.call.caller, nodes)):
        if isinstance(answer, Refused):
            return session.say(f"{ERROR}{answer.error}\n{prefix}{MESSAGES[answer.error.errno]}\n")
    return 0


async def delete(session: Session, typed: str, text: str) -> int:
    """``scontrol delete NodeName=NAMES``; ``typed`` is the first word of it."""
    try:
        names = tuple(expand(text)) if text else ()
    except GrammarError:
        names = (text,)
    event = DeleteNodes(session.controller.now(), session.call.caller, names)
    if not names and session.call.caller.operator:
        return session.insist(f"delete_node {typed}: {MESSAGES[Errno.INVALID_NODE_NAME]}\n")
    for answer in await session.controller.apply(event):
        if isinstance(answer, Refused):
            if answer.subject:
                session.insist(f"{ERROR}failed to delete nodes {answer.subject}\n")
            return session.insist(f"delete_node {typed}: {answer.error}\n")
    return 0
