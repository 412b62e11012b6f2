"""The site's configuration: from slurm.conf, gres.conf and topology.conf, or made out of one machine.

``load_site`` gives Slurm's meaning to what ``grammar.configuration`` read: defaults, DEFAULT records, ranges that are
paired with each other, node sets. What is wrong is a GrammarError that names file, line and key.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from grammar.arrays import parse_array
from grammar.configuration import (
    Configuration,
    Reader,
    Record,
    Setting,
    read_block_conf,
    read_gres_conf,
    read_slurm_conf,
    read_topology_conf,
)
from grammar.configuration_keys import KEYS, OTHER_KEYS, Value
from grammar.configuration_words import in_order as debug_flags_in_order
from grammar.configuration_words import level_name
from grammar.errors import GrammarError
from grammar.hostlist import HostlistError, compress, expand, in_order
from grammar.times import format_elapsed, parse_duration, parse_duration_seconds
from slurmk.model.configuration_checks import check, check_cgroup, check_users, check_weights, warn
from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE, GresCapacity, Node, Partition, parts_of_gpus
from slurmk.model.prolog_flags import PrologFlagsError, parse_prolog_flags
from slurmk.model.site import Block, Site, Switch
from slurmk.model.states import INFINITE, NodeFlag, NodeState
from slurmk.model.topology import Topology, read_topology, sizes_of, wrong_size

NODE_STATES: dict[str, tuple[NodeState, NodeFlag]] = {
    "CLOUD": (NodeState.IDLE, NodeFlag.CLOUD),
    "DOWN": (NodeState.DOWN, NodeFlag.NONE),
    "DRAIN": (NodeState.IDLE, NodeFlag.DRAIN),
    "DRAINED": (NodeState.IDLE, NodeFlag.DRAIN),
    "EXTERNAL": (NodeState.IDLE, NodeFlag.EXTERNAL),
    "FAIL": (NodeState.IDLE, NodeFlag.FAIL),
    "FAILING": (NodeState.IDLE, NodeFlag.FAIL),
    "FUTURE": (NodeState.FUTURE, NodeFlag.NONE),
    "IDLE": (NodeState.IDLE, NodeFlag.NONE),
    "UNKNOWN": (NodeState.IDLE, NodeFlag.NONE),
}
"""What ``State=`` of a node means. Nodes of an embedded cluster are there from the start, so UNKNOWN ones are idle."""

PARTITION_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")
PREEMPT_MODES = ("OFF", "CANCEL", "GANG", "PRIORITY", "REQUEUE", "SUSPEND", "WITHIN")

WEIGHTS = {
    "age": "PriorityWeightAge",
    "fairshare": "PriorityWeightFairshare",
    "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
    "assoc": "PriorityWeightAssoc",
}
"""Names in ``Site.priority_weights`` and the keys they come from."""

CHOICES: dict[str, tuple[str, ...]] = {
    "EnforcePartLimits": ("NO", "ANY", "ALL", "YES"),
    "PriorityType": ("priority/basic", "priority/multifactor"),
    "SchedulerType": ("sched/backfill", "sched/builtin"),
    "SelectType": ("select/cons_tres", "select/linear"),
    "PreemptType": ("preempt/none", "preempt/partition_prio", "preempt/qos"),
    "TopologyPlugin": ("topology/flat", "topology/default", "topology/tree", "topology/block"),
}
"""Keys that take one of a few words."""

SELECT_TYPE_PARAMETERS = frozenset(
    {
        "NONE",
        "LL_SHARED_GRES",
        "MULTIPLE_SHARING_GRES_PJ",
        "ENFORCE_BINDING_GRES",
        "ONE_TASK_PER_SHARING_GRES",
        "CR_BOARD",
        "CR_CORE",
        "CR_CORE_DEFAULT_DIST_BLOCK",
        "CR_CORE_MEMORY",
        "CR_CPU",
        "CR_CPU_MEMORY",
        "CR_LLN",
        "CR_MEMORY",
        "CR_ONE_TASK_PER_CORE",
        "CR_OTHER_CONS_RES",
        "CR_PACK_NODES",
        "CR_SOCKET",
        "CR_SOCKET_MEMORY",
    }
)


# ------------------------------------------------------------------------------------------------ out of one machine


def machine_site(
    cpus: int,
    memory: int,
    nodes: int = 1,
    *,
    sockets: int = 1,
    threads_per_core: int = 1,
    host_name: str = "localhost",
    operators: Iterable[str] = ("root",),
) -> Site:
    """A cluster that pretends to have ``nodes`` nodes, each with all of this machine's CPUs and memory (MiB).

    They are node1 to nodeN, in one partition without limits. As many tasks can so run at once as in a real cluster of
    that size; what they really share is the machine.
    """
    threads = threads_per_core if cpus % threads_per_core == 0 else 1
    sockets = sockets if (cpus // threads) % sockets == 0 else 1
    names = [f"node{number}" for number in range(1, nodes + 1)]
    made = tuple(
        Node(
            name,
            address="127.0.0.1",
            host_name=host_name,
            cpus=cpus,
            sockets=sockets,
            cores_per_socket=cpus // threads // sockets,
            threads_per_core=threads,
            memory=memory,
        )
        for name in names
    )
    spec = compress(names)
    return Site(
        cluster_name="slurmk",
        nodes=made,
        partitions=(Partition("debug", tuple(names), node_spec=spec, default=True),),
        parameters=_shown(Configuration("")) | {"ClusterName": "slurmk"} | _WITHOUT_FILES,
        operators=tuple(operators),
    )


def unnamed_site(cluster_name: str, operators: Iterable[str] = ("root",)) -> Site:
    """A cluster of which nothing is configured: its nodes and partitions come from elsewhere, the rest is as by default."""
    return Site(
        cluster_name=cluster_name,
        nodes=(),
        partitions=(),
        parameters=_shown(Configuration("")) | {"ClusterName": cluster_name} | _WITHOUT_FILES,
        operators=tuple(operators),
    )


_WITHOUT_FILES = {"PriorityType": "priority/basic", "TaskPlugin": "task/affinity", "TaskPluginParam": "none"}
"""What a cluster without slurm.conf is like: tasks are bound to CPUs for those who ask for it."""


# ------------------------------------------------------------------------------------------------ out of slurm.conf


def load_site(read: Reader, directory: str, *, nodes_required: bool = True) -> Site:
    """The site that slurm.conf, gres.conf and topology.conf in ``directory`` describe.

    ``read`` gives a file's text, or None where there is none. ``nodes_required`` is false where nodes come from elsewhere,
    and so do users. Raises GrammarError.
    """
    configuration = read_slurm_conf(read, posixpath.join(directory, "slurm.conf"))
    check(configuration)
    if nodes_required:
        check_users(configuration)
    _check_choices(configuration)
    check_cgroup(read, posixpath.join(directory, "cgroup.conf"))
    gres = read_gres_conf(read, posixpath.join(directory, "gres.conf"))
    nodes = _down_nodes(_with_known_gres(_nodes(configuration, gres), configuration), configuration)
    if not nodes and nodes_required and configuration.get("MaxNodeCount") is None:
        raise GrammarError(f"{configuration.file}: NodeName: there is no node")
    ordered = {name: nodes[name] for name in in_order(nodes)}
    topology = _topology(read, directory, ordered, configuration)
    site = _settled(configuration)
    partitions = tuple(_partitions(configuration, ordered))
    return replace(
        site,
        warnings=tuple(dict.fromkeys(configuration.warnings)),
        parameters={**site.parameters, "SLURM_CONF": configuration.file},
        nodes=tuple(ordered.values()),
        partitions=partitions,
        switches=topology.switches,
        blocks=topology.blocks,
        block_sizes=topology.block_sizes,
        unused_keys=_unused(configuration),
        constrain_memory=_constrains_memory(read(posixpath.join(directory, "cgroup.conf"))),
    )


def _constrains_memory(text: str | None) -> bool:
    """What cgroup.conf says of ConstrainRAMSpace; no when there is none (cgroup.conf(5)). Other keys change nothing."""
    found = re.findall(r"(?im)^[ \t]*ConstrainRAMSpace[ \t]*=[ \t]*(\S+)", text or "")
    return bool(found) and found[-1].lower() in ("yes", "true", "y", "1")


def _settled(configuration: Configuration) -> Site:
    """The site but for its nodes, partitions and switches."""
    parameters = _text(configuration, "SelectTypeParameters", "CR_Core_Memory").upper().split(",")
    user = _text(configuration, "SlurmUser", "root").partition("(")[0]
    cluster = configuration.get("ClusterName")
    if cluster is None:
        raise GrammarError(f"{configuration.file}: ClusterName needs to be specified")
    enforce = _text(configuration, "EnforcePartLimits", "NO").upper()
    return Site(
        cluster_name=cluster.value,
        nodes=(),
        partitions=(),
        licenses=_licenses(configuration),
        parameters=_shown(configuration),
        gres_types=tuple(_text(configuration, "GresTypes").replace(" ", "").strip(",").split(","))
        if configuration.get("GresTypes")
        else (),
        default_memory_per_cpu=_memory(configuration, "DefMemPerCPU"),
        default_memory_per_node=_memory(configuration, "DefMemPerNode"),
        maximum_memory_per_cpu=_memory(configuration, "MaxMemPerCPU"),
        maximum_memory_per_node=_memory(configuration, "MaxMemPerNode"),
        memory_is_consumable=any(word.endswith("MEMORY") for word in parameters),
        whole_nodes=_text(configuration, "SelectType") == "select/linear",
        one_task_per_core="CR_ONE_TASK_PER_CORE" in parameters,
        pack_nodes="CR_PACK_NODES" in parameters,
        least_loaded="CR_LLN" in parameters,
        kill_wait=_number(configuration, "KillWait", 30),
        minimum_job_age=_number(configuration, "MinJobAge", 300),
        maximum_job_count=_positive(configuration, "MaxJobCount", 10000),
        maximum_array_size=_maximum_array_size(configuration),
        maximum_step_count=_number(configuration, "MaxStepCount", 40000),
        first_job_id=_first_job_id(configuration),
        maximum_job_id=_number(configuration, "MaxJobId", 0x03FF0000),
        job_requeue=_number(configuration, "JobRequeue", 1) != 0,
        requeue_exit=_exit_codes(configuration, "RequeueExit"),
        requeue_exit_hold=_exit_codes(configuration, "RequeueExitHold"),
        disable_root_jobs=_yes(configuration, "DisableRootJobs"),
        over_time_limit=_number(configuration, "OverTimeLimit", 0),
        enforce_partition_limits="ALL" if enforce == "YES" else enforce,
        complete_wait=_number(configuration, "CompleteWait", 0),
        epilog_message_time=_number(configuration, "EpilogMsgTime", 2000),
        priority_type=_text(configuration, "PriorityType", "priority/multifactor"),
        priority_weights={name: _number(configuration, key, 0) for name, key in WEIGHTS.items()},
        priority_maximum_age=_seconds(configuration, "PriorityMaxAge", 7 * 86400),
        priority_favor_small=_yes(configuration, "PriorityFavorSmall"),
        scheduler_parameters=_pairs(_scheduler_parameters(configuration)),
        preempt_type=_text(configuration, "PreemptType", "preempt/none"),
        preempt_mode=_preempt_mode(configuration.get("PreemptMode")) or "OFF",
        preempt_parameters=_pairs(_text(configuration, "PreemptParameters").lower()),
        private_data=_private_data(configuration),
        operators=tuple(dict.fromkeys(("root", user))),
        slurm_user=user,
        prolog=_repeated(configuration, "Prolog"),
        epilog=_repeated(configuration, "Epilog"),
        prolog_slurmctld=_repeated(configuration, "PrologSlurmctld"),
        epilog_slurmctld=_repeated(configuration, "EpilogSlurmctld"),
        prolog_flags=_prolog_flags(configuration.get("PrologFlags")),
        prolog_timeout=_timeout(configuration, "PrologTimeout"),
        epilog_timeout=_timeout(configuration, "EpilogTimeout"),
        task_prolog=_text(configuration, "TaskProlog"),
        task_epilog=_text(configuration, "TaskEpilog"),
        return_to_service=_number(configuration, "ReturnToService", 0),
    )


def _text(configuration: Configuration, key: str, default: str = "") -> str:
    setting = configuration.get(key)
    return setting.value if setting else default


def _repeated(configuration: Configuration, key: str) -> tuple[str, ...]:
    """The values of a key that may stand several times;"""
    return tuple(setting.value for setting in configuration.repeated.get(key.lower(), ()) if setting.value != "(null)")


def _prolog_flags(setting: Setting | None) -> tuple[str, ...]:
    if setting is None or setting.value.lower() == "(null)":
        return ()
    try:
        return parse_prolog_flags(setting.words)
    except PrologFlagsError as error:
        raise setting.error(f"{error}: PrologFlags invalid: {setting.value}") from None


_NO_TIMEOUT = 65534
"""What Slurm takes for no limit of a prolog's time."""


def _timeout(configuration: Configuration, key: str) -> int | None:
    """Seconds that prologs or epilogs may take: by their own key, else by that for both."""
    seconds = _number(configuration, key, _number(configuration, "PrologEpilogTimeout", _NO_TIMEOUT))
    return None if seconds >= _NO_TIMEOUT else seconds


def _scheduler_parameters(configuration: Configuration) -> str:
    """Those that count."""
    used = configuration.used_scheduler_parameters
    return _text(configuration, "SchedulerParameters") if used is None else used


def _exit_codes(configuration: Configuration, key: str) -> frozenset[int]:
    """``3,5-7``; what is above 255 is no exit code."""
    setting = configuration.get(key)
    if setting is None or setting.value.lower() == "(null)":
        return frozenset()
    try:
        tasks = parse_array(setting.value, 256).tasks
    except GrammarError:
        warn(configuration, setting, f"{key}={setting.value}: exit codes are numbers and ranges from 0 to 255; it is ignored")
        return frozenset()
    return frozenset(code for part in tasks for code in part)


def _number(configuration: Configuration, key: str, default: int) -> int:
    setting = configuration.get(key)
    return setting.number if setting else default


def _positive(configuration: Configuration, key: str, default: int) -> int:
    setting = configuration.get(key)
    if setting is not None and setting.number == 0:
        raise setting.error(f"{key}=0, No jobs permitted")
    return setting.number if setting else default


LARGEST_ARRAY = 4000001


def _maximum_array_size(configuration: Configuration) -> int:
    setting = configuration.get("MaxArraySize")
    if setting is not None and setting.number > LARGEST_ARRAY:
        warn(configuration, setting, f"MaxArraySize value ({setting.value}) is greater than {LARGEST_ARRAY}")
    return min(setting.number, LARGEST_ARRAY) if setting is not None else 1001


def _first_job_id(configuration: Configuration) -> int:
    setting, most = configuration.get("FirstJobId"), configuration.get("MaxJobId")
    first = setting.number if setting is not None else 1
    where = setting or most
    if where is not None and first > _number(configuration, "MaxJobId", 0x03FF0000):
        raise where.error("FirstJobId > MaxJobId")
    return first


def _yes(configuration: Configuration, key: str) -> bool:
    setting = configuration.get(key)
    return setting is not None and setting.yes


def _seconds(configuration: Configuration, key: str, default: int) -> int:
    setting = configuration.get(key)
    if setting is None:
        return default
    seconds = parse_duration_seconds(setting.value)
    return default if seconds is None else seconds


def _memory(configuration: Configuration, key: str) -> int | None:
    """MiB, or None for no limit. Slurm has 0 mean that too."""
    value = _number(configuration, key, INFINITE)
    return None if value in (0, INFINITE) else value


def _pairs(text: str) -> dict[str, str]:
    """``bf_interval=2,defer`` as a mapping; what has no value has an empty one."""
    return {name: value for name, _, value in (word.partition("=") for word in text.split(",")) if name}


def _check_choices(configuration: Configuration) -> None:
    for key, allowed in CHOICES.items():
        setting = configuration.get(key)
        if setting is None or setting.value.lower() in (word.lower() for word in allowed):
            continue
        raise setting.error(f"Bad {key}: {setting.value} (known here: {', '.join(allowed)})")
    setting = configuration.get("SelectTypeParameters")
    for word in setting.words if setting else ():
        if word.upper() not in SELECT_TYPE_PARAMETERS:
            assert setting is not None
            raise setting.error(f"Bad SelectTypeParameter: {word}")


def _preempt_mode(setting: Setting | None) -> str:
    if setting is None:
        return ""
    words = setting.value.upper().split(",")
    if any(word not in PREEMPT_MODES for word in words):
        raise setting.error(f"PreemptMode={setting.value} invalid")
    return ",".join(words)


def _private_data(configuration: Configuration) -> tuple[str, ...]:
    words = _text(configuration, "PrivateData").lower().replace(" ", "").split(",")
    return tuple(word for word in words if word not in ("", "none"))


def _licenses(configuration: Configuration) -> dict[str, int]:
    setting = configuration.get("Licenses")
    found: dict[str, int] = {}
    for word in setting.value.split(",") if setting else ():
        name, _, count = word.replace("=", ":").partition(":")
        if not name or (count and not (count.isascii() and count.isdigit() and len(count) < 10)):
            assert setting is not None
            raise setting.error(f"Licenses: Invalid configured licenses: {setting.value}")
        found[name] = int(count) if count else 1
    return found


def _shown(configuration: Configuration) -> dict[str, str]:
    """Every key as ``scontrol show config`` prints it, in its order."""
    shown: dict[str, str] = {}
    for key in KEYS:
        setting = configuration.get(key.name)
        if key.value is not Value.FACT:
            shown[key.name] = _with_unit(key.default if setting is None else _as_shown(setting), key.unit)
    for name in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"):
        values = _repeated(configuration, name)
        if values:
            shown[name] = "\n".join(values)
    debug, level = configuration.get("DebugFlags"), configuration.get("SlurmctldDebug")
    if debug is not None:
        shown["DebugFlags"] = ",".join(debug_flags_in_order(debug.words)) or "(null)"
    if level is not None:
        shown["SlurmctldDebug"] = level_name(level.value) or "(null)"
    flags = _prolog_flags(configuration.get("PrologFlags"))
    if flags:
        shown["PrologFlags"] = ",".join(flags)
    shown["JobDefaults"] = _job_defaults(configuration.get) or shown["JobDefaults"]
    for key in OTHER_KEYS:
        setting = configuration.get(key.name)
        if setting is not None and key.name not in JOB_DEFAULTS:
            shown[key.name] = _as_shown(setting)
    return shown


JOB_DEFAULTS = ("DefCpuPerGPU", "DefMemPerGPU")
"""What the site or a partition gives with each GPU to jobs that ask for no CPUs, or no memory."""


def _job_defaults(get: Callable[[str], Setting | None]) -> str:
    """``DefCpuPerGPU=2,DefMemPerGPU=1000``, as JobDefaults are shown; "" for none."""
    said = [(key, setting) for key in JOB_DEFAULTS if (setting := get(key)) is not None]
    return ",".join(f"{key}={setting.number}" for key, setting in said if setting.number != INFINITE)


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit and text.isdigit() else text


_UPPER_CASE = frozenset({"SelectTypeParameters", "EnforcePartLimits", "PreemptMode"})


def _as_shown(setting: Setting) -> str:
    kind, value = setting.key.value, setting.value
    if kind is Value.YES_NO:
        return "yes" if setting.yes else "no"
    if kind is Value.DURATION:
        seconds = parse_duration_seconds(value) if value.lower() != "none" else None
        return "UNLIMITED" if seconds is None else format_elapsed(seconds, padded=True)
    if kind in (Value.NUMBER, Value.NUMBER16, Value.NUMBER64):
        return value.upper() if setting.number == INFINITE else str(setting.number)
    return value.upper() if setting.key.name in _UPPER_CASE else value


def _unused(configuration: Configuration) -> tuple[str, ...]:
    """Keys that were configured and change nothing here, in order of appearance."""
    found = [setting.key.name for setting in configuration.settings.values() if not setting.key.acted]
    for record in configuration.records:
        found += [
            f"{setting.key.name} ({_KINDS[record.kind]})" for setting in record.settings.values() if not setting.key.acted
        ]
    return tuple(dict.fromkeys(found))


_KINDS = {
    "nodename": "NodeName",
    "partitionname": "PartitionName",
    "nodeset": "NodeSet",
    "downnodes": "DownNodes",
    "poweraction": "PowerAction",
}


# ------------------------------------------------------------------------------------------------ nodes


def _records(configuration: Configuration, kind: str) -> Iterator[Record]:
    """Records of a kind with the DEFAULT records before them filled in."""
    defaults: dict[str, Setting] = {}
    for record in configuration.records:
        if record.kind != kind:
            continue
        if record.name.upper() == "DEFAULT":
            _check_default(record)
            defaults.update(record.settings)
        else:
            yield Record(kind, {**defaults, **record.settings}, record.line)


NOT_BY_DEFAULT = ("NodeAddr", "NodeHostname", "BcastAddr")


def _check_default(record: Record) -> None:
    for key in NOT_BY_DEFAULT:
        setting = record.get(key)
        if setting is not None:
            raise setting.error(f"{key} not allowed with NodeName=DEFAULT")


def _hosts(record: Record, key: str) -> list[str]:
    setting = record.get(key)
    if setting is None:
        return []
    try:
        return expand(setting.value)
    except HostlistError as error:
        raise setting.error(f"{key}: {error}" + (f" ({error.detail})" if error.detail else "")) from None


def _nodes(configuration: Configuration, gres_lines: tuple[Record, ...]) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for record in _records(configuration, "nodename"):
        hardware = _hardware(record, configuration)
        names = _hosts(record, "NodeName")
        if not names:
            raise record.error("Empty NodeName in config.")
        _paired(record, "BcastAddr", names, _hosts(record, "BcastAddr"))
        host_names = _paired(record, "NodeHostname", names, _hosts(record, "NodeHostname"))
        addresses = _paired(record, "NodeAddr", names, _hosts(record, "NodeAddr")) or host_names
        ports = _ports(record, names)
        for position, name in enumerate(names):
            if name in nodes:
                raise record.error(f"Duplicated NodeName {name} in the config file")
            nodes[name] = replace(
                hardware,
                name=name,
                host_name=host_names[position] if host_names else name,
                address=addresses[position] if addresses else name,
                port=ports[position] if ports else _number(configuration, "SlurmdPort", 6818),
            )
    devices = _Devices(gres_lines)
    return {name: _typed_parts(devices.given(node)) for name, node in nodes.items()}


def _paired(record: Record, key: str, names: list[str], values: list[str]) -> list[str]:
    """One value for each name: as many as there are names, or one for all."""
    if len(values) in (0, len(names)):
        return values
    if len(values) == 1:
        return values * len(names)
    raise record.error(f"{key} count must equal that of NodeName records or there must be no more than one")


def _ports(record: Record, names: list[str]) -> list[int]:
    setting = record.get("Port")
    if setting is None:
        return []
    try:
        values = expand(setting.value if setting.value.startswith("[") else f"[{setting.value}]")
    except HostlistError:
        raise setting.error(f'Port value "{setting.value}" is not a valid number') from None
    if len(values) not in (1, len(names)):
        raise record.error(
            f"Port count must equal that of NodeName records or there must be no more than one ({len(values)} != {len(names)})"
        )
    numbers = [int(value) for value in values]
    if any(not 0 < number < 65536 for number in numbers):
        raise setting.error(f"Port value ({setting.value}) is greater than 65535")
    return numbers * len(names) if len(numbers) == 1 else numbers


_AT_LEAST_ONE = ("CPUs", "Procs", "Sockets", "CoresPerSocket", "ThreadsPerCore", "Boards", "RealMemory")


def _check_hardware(record: Record, configuration: Configuration) -> None:
    """Tell of numbers that cannot be, which others take the place of."""
    for key in _AT_LEAST_ONE:
        setting = record.get(key)
        if setting is not None and setting.number == 0:
            warn(configuration, setting, f"NodeNames={record.name} {key}=0 is invalid, reset to 1")
    both = record.get("Sockets")
    if both is not None and record.get("SocketsPerBoard") is not None:
        text = f"NodeNames={record.name} Sockets and SocketsPerBoard are both given, using SocketsPerBoard"
        warn(configuration, both, text)
    for key, most in (("CoreSpecCount", record.number("CPUs", 1)), ("MemSpecLimit", record.number("RealMemory", 1))):
        setting = record.get(key)
        if setting is not None and setting.number >= most:
            warn(configuration, setting, f"NodeNames={record.name} {key}={setting.value} is invalid, it is ignored")
    check_weights(record.get("TRESWeights"))
    _check_binding(record, configuration, f"NodeNames={record.name}")


_BINDINGS = ("none", "board", "ldom", "socket", "core", "thread", "off", "on")


def _check_binding(record: Record, configuration: Configuration, what: str) -> None:
    setting = record.get("CpuBind")
    if setting is not None and setting.value.lower() not in _BINDINGS:
        warn(configuration, setting, f"{what} CpuBind='{setting.value}' is invalid, ignored")


def _hardware(record: Record, configuration: Configuration) -> Node:
    """A node without a name: what the record says of hardware, features and state."""
    _check_hardware(record, configuration)
    boards = max(record.number("Boards", 1), 1)
    cores, threads = max(record.number("CoresPerSocket", 1), 1), max(record.number("ThreadsPerCore", 1), 1)
    cpus = record.number("CPUs", record.number("Procs", 0))
    sockets = record.number("SocketsPerBoard", 0) * boards or record.number("Sockets", 0)
    if not sockets:
        sockets = max(cpus // (cores * threads), 1)
    whole = sockets * cores * threads
    if cpus not in (sockets, sockets * cores, whole):
        setting = record.get("CPUs") or record.get("Procs")
        if setting is not None and cpus:
            text = f"CPUs={cpus} match no Sockets, Sockets*CoresPerSocket or Sockets*CoresPerSocket*ThreadsPerCore"
            warn(configuration, setting, f"NodeNames={record.name} {text}. Resetting CPUs.")
        cpus = whole
    state, flags = _node_state(record)
    feature = record.get("Features") or record.get("Feature")
    features = feature.words if feature else ()
    return Node(
        "",
        cpus=cpus,
        boards=boards,
        sockets=sockets,
        cores_per_socket=cores,
        threads_per_core=threads,
        memory=max(record.number("RealMemory", 1), 1),
        temporary_disk=record.number("TmpDisk", 0),
        weight=record.number("Weight", 1),
        features=features,
        active_features=features,
        gres=_configured_gres(record),
        state=state,
        flags=flags,
        reason=record.text("Reason"),
    )


def nodes_of_line(line: str) -> tuple[tuple[Node, ...], str]:
    """The nodes of one NodeName line, and its State as it was said; no nodes where State is none of ``CREATABLE_STATES``.
    Raises GrammarError."""
    configuration = read_slurm_conf(lambda path: line if path == _LINE else None, _LINE)
    state = next((record.text("State") for record in configuration.records if record.kind == "nodename"), "")
    if state.upper() not in CREATABLE_STATES:
        return (), state
    nodes = tuple(_nodes(configuration, ()).values())
    if not nodes:
        raise GrammarError("NodeName: there is no node")
    powered = NodeFlag.POWERED_DOWN if state.upper() == "CLOUD" else NodeFlag.NONE
    return tuple(replace(node, flags=node.flags | powered) for node in nodes), state


_LINE = "nodeline"
"""What a line that is no file's is called."""

CREATABLE_STATES = ("FUTURE", "CLOUD", "EXTERNAL")
"""States in which nodes can be made while the controller runs."""


def _node_state(record: Record) -> tuple[NodeState, NodeFlag]:
    setting = record.get("State")
    if setting is None:
        return NODE_STATES["UNKNOWN"]
    found = NODE_STATES.get(setting.value.upper())
    if found is None:
        raise setting.error(f"node {record.name} has invalid state {setting.value}")
    return found


def _configured_gres(record: Record) -> tuple[GresCapacity, ...]:
    setting = record.get("Gres")
    try:
        return gres_of(setting.value) if setting is not None else ()
    except GrammarError as error:
        assert setting is not None
        raise setting.error(str(error)) from None


def _with_known_gres(nodes: dict[str, Node], configuration: Configuration) -> dict[str, Node]:
    """The nodes with those of their GRES whose kinds GresTypes names; what else they are said to have is told of."""
    kinds = frozenset(_text(configuration, "GresTypes").replace(" ", "").split(","))
    for record in _records(configuration, "nodename"):
        setting = record.get("Gres")
        for gres in _configured_gres(record):
            if setting is not None and gres.name not in kinds:
                text = f"Gres: Invalid GRES configured on node {record.name}: {setting.value}"
                warn(configuration, setting, f"{text} (GresTypes does not name {gres.name})")
    return {name: replace(node, gres=tuple(gres for gres in node.gres if gres.name in kinds)) for name, node in nodes.items()}


def gres_of(text: str) -> tuple[GresCapacity, ...]:
    """``gpu:a100:4,shard:8`` without devices. Raises GrammarError."""
    if text.lower() in ("none", "(null)"):
        return ()
    return tuple(_gres_item(word) for word in text.split(",") if word)


def _gres_item(word: str) -> GresCapacity:
    parts = [part for part in word.split("(")[0].split(":") if part != "no_consume"]
    count = _count(parts.pop()) if len(parts) > 1 and parts[-1][:1].isdigit() else 1
    if count is None or not 1 <= len(parts) <= 2 or not all(parts):
        raise GrammarError(f"Gres: Invalid generic resource (gres) specification: {word}")
    return GresCapacity(parts[0], parts[1] if len(parts) == 2 else "", count)


def _count(text: str) -> int | None:
    """``4``, ``2K``; None when it is neither."""
    suffix = text[-1:].upper()
    digits = text[:-1] if suffix in _FACTORS else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 15):
        return None
    return int(digits) * _FACTORS.get(suffix, 1)


_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _typed_parts(node: Node) -> Node:
    """The node with its parts of GPUs by the types of the GPUs, among which they are evenly spread."""
    _, each = parts_of_gpus(node.gres)
    types = [gres for gres in node.gres if gres.name == WHOLE_DEVICE]
    if not each or not all(gpu.type for gpu in types) or any(gres.type for gres in node.gres if gres.name in SHARED_DEVICES):
        return node
    found: list[GresCapacity] = []
    for gres in node.gres:
        if gres.name in SHARED_DEVICES:
            found += [replace(gres, type=gpu.type, count=each * gpu.count) for gpu in types]
        else:
            found.append(gres)
    return replace(node, gres=tuple(found))


class _Devices:
    """The device files of gres.conf, by node."""

    def __init__(self, lines: tuple[Record, ...]) -> None:
        self._lines = [(set(_hosts(line, "NodeName")), line, _hosts(line, "File")) for line in lines if line.name]
        for line in lines:
            count = line.get("Count")
            if count is not None and _count(count.value) is None:
                raise count.error(f"Count value ({count.value}) is not a valid number")
            if not line.name and "autodetect" not in line.settings:
                raise line.error("Name: which GRES is not said")

    def given(self, node: Node) -> Node:
        """The node with its device files; as many as slurm.conf gives it."""
        if not node.gres or not self._lines:
            return node
        return replace(node, gres=tuple(replace(each, files=self._files(node.name, each)) for each in node.gres))

    def _files(self, node: str, gres: GresCapacity) -> tuple[str, ...]:
        files: list[str] = []
        for nodes, line, paths in self._lines:
            kind = line.text("Type")
            if line.name == gres.name and (not nodes or node in nodes) and (not gres.type or not kind or kind == gres.type):
                files += paths
        return tuple(dict.fromkeys(files))[: gres.count]


def _down_nodes(nodes: dict[str, Node], configuration: Configuration) -> dict[str, Node]:
    for record in configuration.records:
        if record.kind != "downnodes":
            continue
        state, flags = NODE_STATES.get(record.text("State", "DOWN").upper(), (None, NodeFlag.NONE))
        if state is None:
            configuration.warnings.append(str(record.error(f'DownNodes: Invalid State "{record.text("State")}"')))
            continue
        for name in nodes if record.name == "ALL" else _hosts(record, "DownNodes"):
            if name not in nodes:
                configuration.warnings.append(str(record.error(f'DownNode "{name}" does not exist!')))
                continue
            nodes[name] = replace(nodes[name], state=state, flags=flags, reason=record.text("Reason", "Set in slurm.conf"))
    return nodes


# ------------------------------------------------------------------------------------------------ partitions


def _partitions(configuration: Configuration, nodes: Mapping[str, Node]) -> Iterator[Partition]:
    node_sets = _node_sets(configuration, nodes)
    made: dict[str, Partition] = {}
    for record in _records(configuration, "partitionname"):
        for name in _hosts(record, "PartitionName"):
            if name in made:
                raise record.error(f"duplicate entry for partition {name}")
            made[name] = _partition(name, record, nodes, node_sets, configuration)
    default = next((name for name in reversed(made) if made[name].default), None)
    for name, partition in made.items():
        if partition.alternate and partition.alternate not in made:
            text = f"{configuration.file}: Alternate: partition {partition.alternate} of {name} does not exist"
            configuration.warnings.append(text)
        yield partition if name == default else replace(partition, default=False)


def _node_sets(configuration: Configuration, nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    for record in configuration.records:
        if record.kind == "nodeset":
            if record.name in nodes:
                raise record.error(f"NodeSet with name {record.name} overlaps with an existing NodeName")
            members = set(_hosts(record, "Nodes"))
            missing = members.difference(nodes, ("ALL",))
            if missing:
                raise record.error(f"NodeSet: Invalid node names in {record.name}: {compress(sorted(missing))}")
            feature = record.text("Feature")
            sets[record.name] = [
                name for name, node in nodes.items() if name in members or (feature and feature in node.features)
            ]
    return sets


def _check_partition(record: Record, configuration: Configuration) -> None:
    for kind in ("Accounts", "Qos"):
        denied = record.get(f"Deny{kind}")
        if denied is not None and record.get(f"Allow{kind}") is not None:
            text = f"Both Allow{kind} and Deny{kind} are defined, Deny{kind} will be ignored"
            warn(configuration, denied, text)
    check_weights(record.get("TRESBillingWeights"))
    _check_binding(record, configuration, f"Partition={record.name}")
    setting = record.get("SelectTypeParameters")
    if setting is not None and any(word.upper() not in SELECT_TYPE_PARAMETERS for word in setting.words):
        raise setting.error(f"Bad value for SelectTypeParameters: {setting.value}")


def _partition_preempt_mode(record: Record, configuration: Configuration) -> str:
    """GANG is the whole cluster's alone, and what is no mode counts as it does."""
    setting = record.get("PreemptMode")
    words = setting.value.upper().split(",") if setting is not None else []
    kept = [word for word in words if word in PREEMPT_MODES and word != "GANG"]
    if setting is not None and kept != words:
        warn(configuration, setting, f"PreemptMode={setting.value} cannot be set at partition level, option ignored.")
    return ",".join(kept)


def _partition(
    name: str,
    record: Record,
    nodes: Mapping[str, Node],
    node_sets: Mapping[str, list[str]],
    configuration: Configuration,
) -> Partition:
    _check_partition(record, configuration)
    allow_accounts = _allowed(record, "AllowAccounts")
    allow_qos = _allowed(record, "AllowQos")
    oversubscribe, exclusive_user = _sharing(record, configuration)
    priority = record.number("Priority", 1)
    over = record.get("OverTimeLimit")
    return Partition(
        name,
        nodes=_members(record, nodes, node_sets),
        node_spec=record.text("Nodes"),
        joined_by=_joined_by(record, configuration),
        default=_flag(record, "Default"),
        state=_word(record, "State", "UP", PARTITION_STATES),
        maximum_time=_minutes(record, "MaxTime") or INFINITE,
        default_time=_minutes(record, "DefaultTime"),
        minimum_nodes=record.number("MinNodes", 0),
        maximum_nodes=record.number("MaxNodes", INFINITE),
        priority_tier=record.number("PriorityTier", priority),
        priority_job_factor=record.number("PriorityJobFactor", priority),
        oversubscribe=oversubscribe,
        exclusive_user=exclusive_user,
        exclusive_topology=record.text("Exclusive").upper() == "TOPO",
        hidden=_flag(record, "Hidden"),
        root_only=_flag(record, "RootOnly"),
        require_reservation=_flag(record, "ReqResv"),
        lln=_flag(record, "LLN"),
        default_memory_per_cpu=_per_cpu(record, "DefMem"),
        default_memory_per_node=_megabytes(record, "DefMemPerNode"),
        maximum_memory_per_cpu=_per_cpu(record, "MaxMem"),
        maximum_memory_per_node=_megabytes(record, "MaxMemPerNode"),
        maximum_cpus_per_node=record.number("MaxCPUsPerNode", INFINITE),
        maximum_cpus_per_socket=record.number("MaxCPUsPerSocket", INFINITE),
        allow_groups=_allowed(record, "AllowGroups"),
        allow_accounts=allow_accounts,
        deny_accounts=() if allow_accounts is not None else _words(record, "DenyAccounts"),
        allow_qos=allow_qos,
        deny_qos=() if allow_qos is not None else _words(record, "DenyQos"),
        allow_nodes=None if record.text("AllocNodes", "ALL").upper() == "ALL" else tuple(_hosts(record, "AllocNodes")),
        alternate=record.text("Alternate"),
        qos=record.text("QOS"),
        preempt_mode=_partition_preempt_mode(record, configuration),
        grace_time=record.number("GraceTime", 0),
        over_time_limit=over.number if over else None,
        tres_billing_weights=record.text("TRESBillingWeights"),
        job_defaults=_job_defaults(record.get),
        disable_root_jobs=_flag(record, "DisableRootJobs"),
        select_type_parameters=record.text("SelectTypeParameters").upper(),
    )


def _members(record: Record, nodes: Mapping[str, Node], node_sets: Mapping[str, list[str]]) -> tuple[str, ...]:
    """The partition's nodes in the order of the nodes."""
    chosen: set[str] = set()
    for word in _hosts(record, "Nodes"):
        if word.upper() == "ALL":
            return tuple(nodes)
        if word in node_sets:
            chosen.update(node_sets[word])
        elif word in nodes:
            chosen.add(word)
        else:
            raise record.error(f'Nodes: Invalid node names in partition {record.name}: lookup failure for node "{word}"')
    return tuple(name for name in nodes if name in chosen)


def _joined_by(record: Record, configuration: Configuration) -> tuple[str, ...]:
    """The features of the partition's node sets."""
    words = _hosts(record, "Nodes")
    sets = (each for each in configuration.records if each.kind == "nodeset" and each.name in words)
    return tuple(feature for feature in (each.text("Feature") for each in sets) if feature)


def _flag(record: Record, key: str) -> bool:
    setting = record.get(key)
    return setting is not None and setting.yes


def _minutes(record: Record, key: str) -> int | None:
    setting = record.get(key)
    return None if setting is None or setting.value.lower() == "none" else parse_duration(setting.value)


def _per_cpu(record: Record, kind: str) -> int | None:
    """Memory for CPUs, which that for nodes excludes."""
    return _megabytes(record, f"{kind}PerCPU") if record.get(f"{kind}PerNode") is None else None


def _megabytes(record: Record, key: str) -> int | None:
    value = record.number(key, INFINITE)
    return None if value in (0, INFINITE) else value


def _words(record: Record, key: str) -> tuple[str, ...]:
    setting = record.get(key)
    return setting.words if setting else ()


def _allowed(record: Record, key: str) -> tuple[str, ...] | None:
    words = _words(record, key)
    return None if not words or words[0].upper() == "ALL" else words


def _word(record: Record, key: str, default: str, allowed: tuple[str, ...]) -> str:
    setting = record.get(key)
    if setting is None:
        return default
    if setting.value.upper() not in allowed:
        raise setting.error(f'Bad value "{setting.value}" for {key}')
    return setting.value.upper()


MOST_SHARES = 0x7FFF
"""Jobs that may share a CPU."""


def _sharing(record: Record, configuration: Configuration) -> tuple[str, bool]:
    """OverSubscribe as scontrol prints it (EXCLUSIVE for whole nodes), and whether nodes are one user's at a time."""
    setting = record.get("OverSubscribe") or record.get("Shared")
    word, colon, count = setting.value.upper().partition(":") if setting else ("NO", "", "")
    exclusive = record.text("Exclusive").upper()
    exclusive_user = _flag(record, "ExclusiveUser") or exclusive == "USER"
    if exclusive not in ("", "NO", "NODE", "USER", "TOPO"):
        raise record.error(f'Bad value "{exclusive}" for Exclusive (use NO, NODE, TOPO, USER)')
    if setting is not None and word not in (("YES", "FORCE") if colon else ("NO", "YES", "FORCE", "EXCLUSIVE")):
        raise setting.error(f'Bad value "{setting.value}" for OverSubscribe (use NO, YES, FORCE)')
    if exclusive in ("NODE", "TOPO") or word == "EXCLUSIVE":
        return "EXCLUSIVE", exclusive_user
    if word == "NO":
        return "NO", exclusive_user
    if colon and not (count.isascii() and count.isdigit() and int(count[:9])):
        assert setting is not None
        warn(configuration, setting, f"Ignoring bad OverSubscribe value: {setting.value}")
        return "NO", exclusive_user
    return f"{word}:{min(int(count[:9]), MOST_SHARES) if colon else 4}", exclusive_user


# ------------------------------------------------------------------------------------------------ topology


def _topology(read: Reader, directory: str, nodes: Mapping[str, Node], configuration: Configuration) -> Topology:
    """As topology.yaml has it; without that file, for topology/tree and topology/block, as topology.conf has it."""
    path = posixpath.join(directory, "topology.yaml")
    text = read(path)
    if text is not None:
        return read_topology(text, path, tuple(nodes))
    plugin = _text(configuration, "TopologyPlugin", "topology/flat")
    if plugin == "topology/block":
        return _blocks(read, posixpath.join(directory, "topology.conf"), nodes, configuration)
    return Topology(_switches(read, directory, nodes, configuration)) if plugin == "topology/tree" else Topology()


def _blocks(read: Reader, path: str, nodes: Mapping[str, Node], configuration: Configuration) -> Topology:
    if read(path) is None:
        raise GrammarError(f"{path}: BlockName: there is no such file, so that there are no blocks")
    blocks: dict[str, Block] = {}
    taken: set[str] = set()
    sizes: tuple[int, ...] = ()
    for record in read_block_conf(read, path):
        if said := record.get("BlockSizes"):
            sizes = _block_sizes(said)
        if not record.name:
            continue
        if record.name in blocks:
            raise record.error(f"BlockName: Block ({record.name}) has already been defined")
        members = _hosts(record, "Nodes")
        members = list(nodes) if "ALL" in members else members
        for what, wrong in (
            ("Invalid hostnames in block configuration", [name for name in members if name not in nodes]),
            ("nodes of another block", [name for name in members if name in taken]),
        ):
            if wrong:
                configuration.warnings.append(str(record.error(f"Nodes: {what}: {compress(wrong)}")))
        blocks[record.name] = Block(record.name, tuple(name for name in members if name in nodes and name not in taken))
        taken.update(members)
    if not blocks:
        raise GrammarError(f"{path}: BlockName: No blocks configured, failed to create context for topology plugin")
    missing = [name for name in nodes if name not in taken]
    if missing:
        configuration.warnings.append(f"{path}: BlockName: Blocks lack access to {len(missing)} nodes: {compress(missing)}")
    values = tuple(blocks.values())
    return Topology(blocks=values, block_sizes=sizes or sizes_of(values))


def _block_sizes(said: Setting) -> tuple[int, ...]:
    wrong = wrong_size(said.words)
    if wrong is not None or not said.words:
        raise said.error(f"BlockSizes: Invalid BlockSizes value: {wrong or said.value}")
    return tuple(map(int, said.words))


def _switches(read: Reader, directory: str, nodes: Mapping[str, Node], configuration: Configuration) -> tuple[Switch, ...]:
    path = posixpath.join(directory, "topology.conf")
    records = read_topology_conf(read, path)
    if not records and read(path) is not None:
        raise GrammarError(f"{path}: SwitchName: No switches configured, failed to create context for topology plugin")
    if not records:
        configuration.warnings.append(f"{path}: TopologyPlugin: there is no such file, so that there are no switches")
    switches: dict[str, Switch] = {}
    for record in records:
        if not record.name:
            raise record.error("SwitchName: which switch is not said")
        for name in _hosts(record, "SwitchName"):
            if name in switches:
                raise record.error(f"SwitchName: switch ({name}) has already been defined")
            members = _hosts(record, "Nodes")
            below = _hosts(record, "Switches")
            if members and below:
                raise record.error(f"switch {name} has both child switches and nodes")
            missing = [member for member in members if member not in nodes and member != "ALL"]
            if missing:
                text = f"Nodes: Invalid hostnames in switch configuration: {compress(missing)}"
                configuration.warnings.append(str(record.error(text)))
            chosen = tuple(nodes) if "ALL" in members else tuple(member for member in members if member in nodes)
            switches[name] = Switch(name, chosen, tuple(below), record.number("LinkSpeed", 1), record.text("Switches"))
    _check_tree(switches, records)
    configuration.warnings += [f"{path}: {text}" for text in _gaps(switches, nodes)] if switches else []
    return tuple(switches.values())


def _gaps(switches: Mapping[str, Switch], nodes: Mapping[str, Node]) -> Iterator[str]:
    """What a tree lacks."""
    times = Counter(name for switch in switches.values() for name in switch.nodes)
    missing = [name for name in nodes if name not in times]
    if missing:
        yield f"switches lack access to {len(missing)} nodes: {compress(missing)}"
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        yield f"Multiple leaf switches contain nodes: {compress(twice)}"
    below = {name for switch in switches.values() for name in switch.switches}
    if missing or sum(name not in below for name in switches) > 1:
        yield "no switch can reach all nodes through its descendants"


def _check_tree(switches: Mapping[str, Switch], records: tuple[Record, ...]) -> None:
    lines = {name: record for record in records for name in expand(record.name)}
    for name, switch in switches.items():
        unknown = [below for below in switch.switches if below not in switches]
        if unknown:
            raise lines[name].error(f"Switches: switch {name} names unknown switches {compress(unknown)}")
    for name in switches:
        seen, waiting = {name}, list(switches[name].switches)
        while waiting:
            below = waiting.pop()
            if below == name:
                raise lines[name].error(f"Switches: switch {name} is below itself")
            if below not in seen:
                seen.add(below)
                waiting += switches[below].switches


# ------------------------------------------------------------------------------------------------ billing


def billing(weights: str, tres: Mapping[str, int]) -> int:
    """What TRES cost in a partition with these TRESBillingWeights (``CPU=1.0,Mem=0.25G``); their CPUs without any.

    ``tres`` are counts by name, memory in MiB.
    """
    if not weights:
        return tres.get("cpu", 0)
    total = 0.0
    for word in weights.lower().split(","):
        name, _, text = word.partition("=")
        match = _WEIGHT.match(text)
        if match is None:
            continue
        unit = _MIB.get(match[2], 1.0) if name == "mem" else 1.0
        total += float(match[1]) * tres.get(name, 0) / unit
    return int(total)


_WEIGHT = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)([kmgt]?)\Z", re.ASCII)
_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024.0}


# ------------------------------------------------------------------------------------------------ one host for all nodes


def on_host(site: Site, *, architecture: str, operating_system: str, version: str, boot_time: int, start_time: int) -> Site:
    """The site with its nodes being this host, as far as they say nothing else: what slurmd reports when it registers.

    ``operating_system`` is ``uname -srv``; times are Unix seconds, ``start_time`` that of the embedded cluster.
    """
    return replace(
        site,
        nodes=tuple(
            replace(
                node,
                architecture=architecture,
                operating_system=operating_system,
                version=version,
                boot_time=boot_time,
                slurmd_start_time=start_time,
                last_busy=node.last_busy or start_time,
            )
            if node.state is not NodeState.FUTURE
            else node
            for node in site.nodes
        ),
    )
