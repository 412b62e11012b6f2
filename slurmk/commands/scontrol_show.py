"""scontrol show of what is not a job: configuration, nodes, partitions, host lists, topology, licences (scontrol(1))."""

from __future__ import annotations

import errno
import os
import platform
import pwd
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from grammar.configuration_keys import KEYS, Value
from grammar.hostlist import HostlistError, compress, expand, fold
from grammar.times import format_duration_minutes, format_time
from grammar.tres import format_tres
from slurmk.commands import scontrol_reservation, scontrol_session, topology_text
from slurmk.commands.call import VERSION_TEXT, Unreadable
from slurmk.commands.job_text import licenses_used
from slurmk.commands.node_text import (
    NodeView,
    allocated_tres,
    configured_tres,
    counted_tres,
    features_text,
    foreign_text,
    gres_text,
    user_name,
    views,
)
from slurmk.commands.scontrol_associations import show_associations
from slurmk.commands.sinfo import visible
from slurmk.core.machine import Machine
from slurmk.model.configuration import billing
from slurmk.model.node import Partition
from slurmk.model.site import Site, Switch, tracked_tres
from slurmk.model.states import INFINITE

HOSTLIST_FILE = 1 << 20
"""Bytes of a file of host names that are read."""

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class Session(scontrol_session.Session, Protocol):
    """What this module needs of one scontrol besides."""

    @property
    def details(self) -> bool: ...
    @property
    def one_line(self) -> bool: ...
    @property
    def quiet(self) -> bool: ...
    @property
    def show_all(self) -> bool: ...
    @property
    def future(self) -> bool: ...


Show = Callable[[Session, Sequence[str]], Awaitable[int]]


async def show(session: Session, arguments: Sequence[str]) -> int:
    """``scontrol show ENTITY [ID]`` or ``ENTITY=ID``, after which another word means nothing; what takes many words does not
    look at what stands behind ``=``. Gives the exit code."""
    typed, *words = arguments
    word, equals, value = typed.partition("=")
    entity = next(
        ((most, answer) for name, least, most, answer in ENTITIES if len(word) >= least and name.startswith(word.lower())), None
    )
    if entity is None:
        return session.say(f"invalid entity:{typed} for keyword:show\n")
    most, answer = entity
    if len(words) > most:
        return session.say("too many arguments for keyword:show\n")
    return await answer(session, [value] if equals and most == 1 else words)


def _print_record(session: Session, lines: Iterable[str]) -> None:
    """One record: its lines and an empty one, or all in one line."""
    if session.one_line:
        session.output.write(" ".join(lines) + "\n")
    else:
        session.output.write("\n   ".join(lines) + "\n\n")


# ---------------------------------------------------------------------------------------------- nodes


async def _show_nodes(session: Session, names: Sequence[str]) -> int:
    machine = session.controller.machine
    known = views(machine, future=session.future)
    if not names:
        if not known:
            session.output.write("No nodes in the system\n")
        wanted = list(known)
    else:
        try:
            wanted = expand(names[0])
        except HostlistError:
            return session.say(
                f"unable to parse node list {names[0]}\nscontrol: error: hostlist_shift_dims: no hostlist given\n"
            )
    code = 0
    for count, name in enumerate(wanted):
        view = known.get(name)
        if view is None:
            code = 1
            if not session.quiet:
                session.output.write(f"Node {name} not found\n")
            continue
        _print_record(session, node_lines(machine, view, details=session.details))
        if count % 200 == 199:
            await session.output.drain()
    return code


def node_lines(machine: Machine, view: NodeView, *, details: bool) -> list[str]:
    """The lines of a node's record."""
    node = view.node
    partitions = [partition for partition in machine.partitions.values() if node.name in partition.nodes]
    architecture = f" Arch={node.architecture}" if node.architecture else ""
    binding = f" CpuBind={node.cpu_binding}" if node.cpu_binding else ""
    resume = format_time(node.resume_time, absent="None")
    load = "N/A" if node.cpu_load is None else f"{node.cpu_load / 100:.2f}"
    lines = [
        f"NodeName={node.name}{architecture}{binding} CoresPerSocket={node.cores_per_socket} ",
        f"CPUAlloc={view.cpus_used} CPUEfctv={node.cpus - node.foreign_cpus} CPUTot={node.cpus} CPULoad={load}",
        f"AvailableFeatures={features_text(node.features) or '(null)'}",
        f"ActiveFeatures={features_text(node.active_features) or '(null)'}",
        f"Gres={gres_text(node.gres) or '(null)'}",
    ]
    if details:
        lines += ["GresDrain=N/A", *([f"GresUsed={view.gres_used}"] if view.gres_used else [])]
    version = f"Version={node.version}" if node.version else ""
    port = "" if node.port == _usual_port(machine.site) else f"Port={node.port} "
    lines.append(f"NodeAddr={node.address or node.name} NodeHostName={node.host_name or node.name} {port}{version}")
    if node.operating_system:
        lines.append(f"OS={node.operating_system} ")
    free = "N/A" if node.free_memory is None else str(node.free_memory)
    lines += [
        f"RealMemory={node.memory} AllocMem={view.memory_used} FreeMem={free} Sockets={node.sockets} Boards={node.boards}",
        f"State={view.condition.full} ThreadsPerCore={node.threads_per_core} TmpDisk={node.temporary_disk}"
        f" Weight={node.weight} Owner=N/A MCS_label=N/A",
    ]
    if partitions:
        lines.append(f"Partitions={','.join(partition.name for partition in partitions)} ")
    lines += [
        f"BootTime={format_time(node.boot_time, absent='None')}"
        f" SlurmdStartTime={format_time(node.slurmd_start_time, absent='None')}",
        f"LastBusyTime={format_time(node.last_busy)} ResumeAfterTime={resume} SuspendTime=INFINITE",
        f"CfgTRES={format_tres(configured_tres(machine.site, view, partitions))}",
        f"AllocTRES={format_tres(allocated_tres(machine.site, view))}",
        "CurrentWatts=0 AveWatts=0",
    ]
    foreign = foreign_text(node)
    reservation = machine.node_reservation(node.name)[1]
    kept = [f"ReservationName={reservation}"] if reservation else []
    return [*lines, *([foreign] if foreign else []), *_remarks(view), *kept]


def _usual_port(site: Site) -> int:
    """The port that need not be told (SlurmdPort)."""
    text = site.parameters.get("SlurmdPort", "")
    return int(text) if text.isascii() and text.isdigit() else 6818


def _remarks(view: NodeView) -> list[str]:
    node = view.node
    lines = []
    if node.reason:
        when = f" [{user_name(node.reason_user_id)}@{format_time(node.reason_time)}]" if node.reason_time else ""
        lines.append(f"Reason={node.reason}{when}")
    if node.comment:
        lines.append(f"Comment={node.comment}")
    if node.extra:
        lines.append(f"Extra={node.extra}")
    instance = (f"InstanceId={node.instance_id} " if node.instance_id else "") + (
        f"InstanceType={node.instance_type}" if node.instance_type else ""
    )
    if instance:
        lines.append(instance)
    if node.certificate_token:
        lines.append("TLSCertTokenSet=Yes TLSCertLastRenewal=Unknown")
    if node.topology:
        lines.append(f"Topology={node.topology}")
    return lines


# ---------------------------------------------------------------------------------------------- partitions


async def _show_partitions(session: Session, names: Sequence[str]) -> int:
    machine = session.controller.machine
    shown = [
        partition
        for partition in machine.partitions.values()
        if session.show_all or session.call.caller.operator or visible(session.call, partition)
    ]
    if names:
        shown = [partition for partition in shown if partition.name == names[0]]
        if not shown:
            if not session.quiet:
                session.output.write(f"Partition {names[0]} not found\n")
            return 1
    elif not shown:
        session.output.write("No partitions in the system\n")
    nodes = views(machine, future=True)
    for partition in shown:
        _print_record(session, partition_lines(machine.site, partition, nodes))
    return 0


def partition_lines(site: Site, partition: Partition, nodes: Mapping[str, NodeView]) -> list[str]:
    """The lines of a partition's record."""
    members = [nodes[name] for name in partition.nodes if name in nodes]
    tres = counted_tres(site, members)
    tres["billing"] = billing(partition.tres_billing_weights, tres)
    alternate = f"Alternate={partition.alternate} " if partition.alternate else ""
    binding = f"CpuBind={partition.cpu_binding}  " if partition.cpu_binding else ""
    sets = _node_sets(partition, nodes)
    return [
        f"PartitionName={partition.name}",
        f"AllowGroups={_names(partition.allow_groups)}"
        f" {_allowed('Accounts', partition.allow_accounts, partition.deny_accounts)}"
        f" {_allowed('Qos', partition.allow_qos, partition.deny_qos)}",
        f"AllocNodes={_hosts(partition.allow_nodes)} {alternate}Default={_yes(partition.default)}"
        f" {binding}QoS={partition.qos or 'N/A'}",
        f"DefaultTime={_default_time(partition)} DisableRootJobs={_yes(partition.disable_root_jobs)}"
        f" Exclusive={_exclusive(partition)} GraceTime={partition.grace_time} Hidden={_yes(partition.hidden)}",
        f"MaxNodes={_limit(partition.maximum_nodes)} MaxTime={format_duration_minutes(partition.maximum_time)}"
        f" MinNodes={partition.minimum_nodes} LLN={_yes(partition.lln)}"
        f" MaxCPUsPerNode={_limit(partition.maximum_cpus_per_node)}"
        f" MaxCPUsPerSocket={_limit(partition.maximum_cpus_per_socket)}",
        *([f"NodeSets={sets}"] if sets else []),
        f"Nodes={compress(partition.nodes) or '(null)'}",
        f"PriorityJobFactor={partition.priority_job_factor} PriorityTier={partition.priority_tier}"
        f" RootOnly={_yes(partition.root_only)} ReqResv={_yes(partition.require_reservation)}"
        f" OverSubscribe={'NO' if partition.oversubscribe == 'EXCLUSIVE' else partition.oversubscribe}",
        f"OverTimeLimit={_over_time(partition)} PreemptMode={partition.preempt_mode or site.preempt_mode}",
        *([f"Topology={partition.topology}"] if partition.topology else []),
        f"State={partition.state} TotalCPUs={tres['cpu']} TotalNodes={len(members)}"
        f" SelectTypeParameters={partition.select_type_parameters or 'NONE'}",
        f"JobDefaults={partition.job_defaults or '(null)'}",
        f"{_memory('Def', partition.default_memory_per_cpu, partition.default_memory_per_node)}"
        f" {_memory('Max', partition.maximum_memory_per_cpu, partition.maximum_memory_per_node)}",
        f"TRES={format_tres(tres) or '(null)'}",
        *([f"TRESBillingWeights={partition.tres_billing_weights}"] if partition.tres_billing_weights else []),
    ]


def _node_sets(partition: Partition, nodes: Mapping[str, NodeView]) -> str:
    """The node sets that the partition was configured by."""
    try:
        return ",".join(word for word in expand(partition.node_spec) if word not in nodes)
    except HostlistError:
        return ""


def _names(words: Iterable[str] | None) -> str:
    return "ALL" if words is None else ",".join(words)


def _hosts(words: Iterable[str] | None) -> str:
    return "ALL" if words is None else fold(words)


def _allowed(what: str, allowed: tuple[str, ...] | None, denied: tuple[str, ...]) -> str:
    return f"Deny{what}={','.join(denied)}" if denied and allowed is None else f"Allow{what}={_names(allowed)}"


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _limit(number: int) -> str:
    return "UNLIMITED" if number == INFINITE else str(number)


def _default_time(partition: Partition) -> str:
    return "NONE" if partition.default_time is None else format_duration_minutes(partition.default_time)


def _over_time(partition: Partition) -> str:
    return "NONE" if partition.over_time_limit is None else _limit(partition.over_time_limit)


def _exclusive(partition: Partition) -> str:
    if partition.exclusive_topology:
        return "TOPO"
    if partition.exclusive_user:
        return "USER"
    return "NODE" if partition.oversubscribe == "EXCLUSIVE" else "NO"


def _memory(which: str, per_cpu: int | None, per_node: int | None) -> str:
    if per_cpu is not None:
        return f"{which}MemPerCPU={per_cpu}"
    return f"{which}MemPerNode={'UNLIMITED' if per_node is None else per_node}"


# ---------------------------------------------------------------------------------------------- configuration


async def _show_configuration(session: Session, names: Sequence[str]) -> int:
    controller = session.controller
    lines = [f"Configuration data as of {format_time(int(controller.now()))}"]
    lines += [f"{name:<23} = {value}" for name, value in configuration(controller.machine)]
    session.output.write("\n".join(lines) + f"\n\n{ping_line(controller.machine.site)}\n")
    return 0


def configuration(machine: Machine) -> list[tuple[str, str]]:
    """Names and values of ``scontrol show config``, in its order."""
    site = machine.site
    facts = _facts(machine)
    pairs: list[tuple[str, str]] = []
    for key in KEYS:
        value = facts.get(key.name, site.parameters.get(key.name, key.default))
        if key.value is Value.TEXT and key.default == "(null)" and value.lower() in ("none", ""):
            value = "(null)"
        pairs += _BEFORE.get(key.name, _nothing)(site)
        pairs += _INSTEAD[key.name](site, value) if key.name in _INSTEAD else [(key.shown or key.name, value)]
    return pairs


def _facts(machine: Machine) -> dict[str, str]:
    """What the running controller knows better than its configuration."""
    return {
        "BOOT_TIME": format_time(process_start()),
        "NEXT_JOB_ID": str(machine.next_job_id),
        "MaxNodeCount": str(len(machine.nodes)),
        "SLURM_CONF": machine.site.parameters.get("SLURM_CONF", "(null)"),
        "SLURM_VERSION": VERSION_TEXT.split()[1],
    }


def process_start() -> int:
    """When this process was started, in Unix seconds; 0 where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        boot = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
        return int(boot[1]) + ticks // os.sysconf("SC_CLK_TCK") if boot else 0
    except (OSError, ValueError, IndexError):
        return 0


def _nothing(site: Site) -> list[tuple[str, str]]:
    return []


def _numbered(name: str) -> Callable[[Site], list[tuple[str, str]]]:
    """Programs that are listed one by one, and only when there are some."""
    return lambda site: [
        (f"{name}[{index}]", value) for index, value in enumerate(filter(None, site.parameters.get(name, "").split("\n")))
    ]


def _either(per_cpu: str) -> Callable[[Site, str], list[tuple[str, str]]]:
    """Memory for each CPU, if that was configured, or for each node."""
    per_node = per_cpu.replace("CPU", "Node")
    return lambda site, value: (
        [(per_cpu, site.parameters[per_cpu])] if site.parameters.get(per_cpu) and value == "UNLIMITED" else [(per_node, value)]
    )


def _user(name: str) -> Callable[[Site, str], list[tuple[str, str]]]:
    return lambda site, value: [(name, _with_id("root" if value == "(null)" else value))]


def _with_id(name: str) -> str:
    if "(" in name:
        return name
    try:
        return f"{name}({pwd.getpwnam(name).pw_uid})"
    except KeyError:
        return name


def _controller_host(site: Site, value: str) -> list[tuple[str, str]]:
    return [("SlurmctldHost[0]", controller_host(site) + (f"({value.partition('(')[2]}" if "(" in value else ""))]


def _tres(site: Site, value: str) -> list[tuple[str, str]]:
    return [("AccountingStorageTRES", ",".join(tracked_tres(site)))]


_BEFORE: dict[str, Callable[[Site], list[tuple[str, str]]]] = {
    "EpilogMsgTime": _numbered("Epilog"),
    "FairShareDampeningFactor": _numbered("EpilogSlurmctld"),
    "PrologEpilogTimeout": _numbered("Prolog"),
    "PrologFlags": _numbered("PrologSlurmctld"),
}
"""Keys that come before another one, when they are set."""

_INSTEAD: dict[str, Callable[[Site, str], list[tuple[str, str]]]] = {
    "AccountingStorageTRES": _tres,
    "DefMemPerNode": _either("DefMemPerCPU"),
    "MaxMemPerNode": _either("MaxMemPerCPU"),
    "SlurmUser": _user("SlurmUser"),
    "SlurmdUser": _user("SlurmdUser"),
    "SlurmctldHost": _controller_host,
}
"""Keys whose line takes more than their value."""


def controller_host(site: Site) -> str:
    """The host that the controller runs on, as users know it."""
    configured = site.parameters.get("SlurmctldHost", "(null)").partition("(")[0]
    return configured if configured and configured not in LOCAL_HOSTS else platform.node().partition(".")[0]


def ping_line(site: Site) -> str:
    """The answer of ``scontrol ping``: who answers is up."""
    return f"Slurmctld(primary) at {controller_host(site)} is UP"


# ---------------------------------------------------------------------------------------------- host lists


async def _show_hostnames(session: Session, names: Sequence[str]) -> int:
    text = names[0] if names else session.call.environment.get("SLURM_NODELIST", "")
    if not names and not text:
        session.output.error("scontrol: error: host list is empty\n")
        return 0
    try:
        hosts = expand(text)
    except HostlistError as error:
        session.output.error(_hostlist_error(error))
        return 0
    session.output.write("".join(f"{host}\n" for host in hosts))
    return 0


def _folded(fold_names: Callable[[Iterable[str]], str]) -> Show:
    """show hostlist, show hostlistsorted: the argument is a list of names, or a file of them if it begins with ``/``."""

    async def answer(session: Session, names: Sequence[str]) -> int:
        if not names:
            return session.say("invalid encode argument\n")
        text = names[0]
        if text.startswith("/"):
            try:
                text = (await session.output.read(text, HOSTLIST_FILE)).decode(errors="surrogateescape")
            except Unreadable:
                session.output.error(f"Can not open {names[0]}\n")
                return 1
        try:
            session.output.write(fold_names(expand(text)) + "\n")
        except HostlistError as error:
            session.output.error(_hostlist_error(error))
            return 1
        return 0

    return answer


def _hostlist_error(error: HostlistError) -> str:
    detail = f"scontrol: error: _parse_single_range: {error.detail}\n" if error.detail else ""
    return f"{detail}{error}\n"


# ---------------------------------------------------------------------------------------------- topology, licences


async def _show_topology(session: Session, arguments: Sequence[str]) -> int:
    switches = {switch.name: switch for switch in session.controller.machine.site.switches}
    if len(arguments) > 1:
        session.output.error(f"Too many arguments ({arguments[1]}), the topology name ({arguments[0]}) is already defined\n")
        return 0
    if session.controller.machine.site.blocks:
        return _show_blocks(session, arguments)
    kind, _, name = arguments[0].partition("=") if arguments else ("", "", "")
    if arguments and kind.lower() not in ("node", "unit", "switch", "block"):
        session.output.error("slurm_load_topo error: Requested topology configuration is not available\n")
        return 0
    of_nodes = kind.lower() == "node"
    wanted = _node_names(name) if of_nodes else {name}
    found = False
    for switch in switches.values():
        nodes = nodes_below(switch, switches)
        if not name or wanted <= (nodes if of_nodes else {switch.name}):
            session.output.write(_switch_line(switch, switches, nodes))
            found = True
    if name and not found:
        session.output.error(f"scontrol: error: Topology information contains no switch {_SOUGHT[of_nodes]} {name}\n")
    return 0


_SOUGHT = {True: "with nodes", False: "named"}


def _node_names(text: str) -> set[str]:
    """The nodes of a list; a text that is none stands for itself."""
    try:
        return set(expand(text))
    except HostlistError:
        return {text}


def _show_blocks(session: Session, arguments: Sequence[str]) -> int:
    site = session.controller.machine.site
    kind, equals, name = arguments[0].partition("=") if arguments else ("", "", "")
    if arguments and kind.lower() not in (("node", "unit", "block") if equals else ("default",)):
        session.output.error("slurm_load_topo error: Requested topology configuration is not available\n")
        return 0
    found = topology_text.units(site.blocks, site.block_sizes)
    if equals:
        found, otherwise = topology_text.chosen(found, kind.lower(), name)
        if not found:
            session.output.error(f"scontrol: error: Topology information contains {otherwise}\n")
    session.output.write("".join(unit.line for unit in found))
    return 0


def _switch_line(switch: Switch, switches: Mapping[str, Switch], nodes: Iterable[str]) -> str:
    below = f" Switches={switch.written or compress(switch.switches)}" if switch.switches else ""
    level = _level(switch, switches)
    return f"SwitchName={switch.name} Level={level} LinkSpeed={switch.link_speed} Nodes={compress(nodes)}{below}\n"


def nodes_below(switch: Switch, switches: Mapping[str, Switch]) -> set[str]:
    """Every node that the switch reaches downwards."""
    nodes = set(switch.nodes)
    for name in switch.switches:
        nodes |= nodes_below(switches[name], switches)
    return nodes


def _level(switch: Switch, switches: Mapping[str, Switch]) -> int:
    return 1 + max(_level(switches[name], switches) for name in switch.switches) if switch.switches else 0


async def _show_licenses(session: Session, names: Sequence[str]) -> int:
    machine = session.controller.machine
    chosen = {name: total for name, total in machine.site.licenses.items() if not names or name == names[0]}
    if not chosen:
        if not names:
            session.output.write("No licenses configured in Slurm.\n")
            return 0
        return session.say(f'scontrol: error: query "{names[0]}" matched zero licenses.\n')
    used = licenses_used(machine)
    gap = " " if session.one_line else "\n    "
    for name, total in chosen.items():
        taken = used.get(name, 0)
        session.output.write(
            f"LicenseName={name}{gap}Total={total} Used={taken} Free={max(total - taken, 0)} Reserved=0 Remote=no\n"
        )
    return 0


# ---------------------------------------------------------------------------------------------- what there is none of


async def _show_aliases(session: Session, names: Sequence[str]) -> int:
    """The nodes of a host, by its name."""
    host = names[0] if names else platform.node().partition(".")[0]
    nodes = session.controller.machine.nodes.values()
    found = [node.name for node in nodes if (node.host_name or node.name) == host]
    if found:
        session.output.write(" ".join(found) + "\n")
    return 0


async def _show_daemons(session: Session, names: Sequence[str]) -> int:
    if names:
        return session.say("too many arguments for keyword:show\n")
    session.output.write("slurmctld slurmd\n")
    return 0


async def _show_none(session: Session, names: Sequence[str]) -> int:
    return 0


async def _show_slurmd(session: Session, names: Sequence[str]) -> int:
    """There is no slurmd to ask."""
    refused = os.strerror(errno.ECONNREFUSED)
    return session.say(f"scontrol: error: slurm_slurmd_info: {refused}\nslurm_load_slurmd_status:{refused}\n")


_TOPOLOGY_CONFIGURATION = """%YAML 1.1
---
- topology: default
  cluster_default: false
  block: {}
  flat: {}
  ring: {}
  torus3d: {}
  tree: {}
...
"""


async def _show_topology_configuration(session: Session, names: Sequence[str]) -> int:
    """What Slurm shows where there is no topology.yaml; topology.conf is not told in this form."""
    session.output.write(_TOPOLOGY_CONFIGURATION)
    return 0


ENTITIES: tuple[tuple[str, int, int, Show], ...] = (
    ("aliases", 1, 1, _show_aliases),
    ("assoc_mgr", 2, 99, show_associations),
    ("cache", 2, 99, show_associations),
    ("bbstat", 2, 99, _show_none),
    ("burstbuffer", 2, 1, _show_none),
    ("config", 1, 1, _show_configuration),
    ("daemons", 1, 1, _show_daemons),
    ("dwstat", 2, 99, _show_none),
    ("federations", 1, 1, _show_none),
    ("hostlistsorted", 9, 1, _folded(compress)),
    ("hostlist", 5, 1, _folded(fold)),
    ("hostnames", 5, 1, _show_hostnames),
    ("licenses", 2, 1, _show_licenses),
    ("nodes", 1, 1, _show_nodes),
    ("partitions", 2, 1, _show_partitions),
    ("partitionname", 2, 1, _show_partitions),
    ("reservations", 1, 1, scontrol_reservation.show),
    ("reservationname", 1, 1, scontrol_reservation.show),
    ("slurmd", 2, 1, _show_slurmd),
    ("topoconf", 5, 1, _show_topology_configuration),
    ("topology", 1, 99, _show_topology),
)
"""Entities by name, how much of it is enough, how many words may follow, and what answers."""
