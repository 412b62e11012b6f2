"""Which CPUs each task of a step uses on its node (srun(1), --cpu-bind and --mem-bind), and what tells it.

What is asked for is worked out from the step's request; the masks are made on the node, of the CPUs that the step has
there: the job's CPU numbers count sockets, then cores, then threads, and ``Machine`` knows which CPUs those are. Where
the node is bigger than the machine (a pretended one, or a pod that may use only some CPUs), several share one.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

    Variables = Dict[str, str]

SYSTEM = "/sys/devices/system"

LISTS = ("map_cpu", "mask_cpu", "map_ldom", "mask_ldom", "map_mem", "mask_mem")
OF_DOMAINS = ("rank_ldom", "map_ldom", "mask_ldom")
UNITS = ("threads", "cores", "sockets", "ldoms")

HINTS = {"nomultithread": "threads", "multithread": "threads", "compute_bound": "cores", "memory_bound": "cores"}

IMPLIED = {"tasks_per_socket": "sockets", "tasks_per_core": "cores", "threads_per_core": "threads"}
"""Units that tasks are bound to when their number in one is said."""

OUTSIDE = "CPU binding outside of job step allocation, allocated CPUs are: %s."
UNSATISFIED = "Unable to satisfy cpu bind request"

SHOWN = {"none": "NONE", "map_cpu": "MAP ", "map_ldom": "LDMAP ", "mask_ldom": "LDMASK", "rank_ldom": "LDRANK"}
"""What the line about a binding calls it; others are masks."""

MEMORY_SHOWN = {"none": "NONE", "rank": "RANK", "local": "LOC", "map_mem": "MAP", "mask_mem": "MASK", "": "NULL"}


MPOL_PREFERRED, MPOL_BIND = 1, 2
SET_MEMORY_POLICY = {"x86_64": 238, "aarch64": 237, "riscv64": 237, "ppc64le": 261}
"""Numbers of set_mempolicy(2)."""


class Unbindable(Exception):
    """The step's tasks cannot be bound as asked; ``allocated`` is the mask of the CPUs that they may use."""

    def __init__(self, allocated: str) -> None:
        super().__init__(UNSATISFIED)
        self.allocated = allocated


class Wish:
    """How tasks shall be bound: ``kind`` is a word of --cpu-bind or --mem-bind, or empty; ``items`` its list."""

    def __init__(self, kind: str = "", items: Sequence[str] = (), verbose: bool = False, prefer: bool = False) -> None:
        self.kind = kind
        self.items = list(items)
        self.verbose = verbose
        self.prefer = prefer

    def variables(self, prefix: str) -> Variables:
        """``prefix`` is SLURM_CPU_BIND or SLURM_MEM_BIND."""
        word = "verbose" if self.verbose else "quiet"
        kind = self.kind + ":" if self.kind in LISTS else self.kind
        listed = ",".join(self.items)
        words = [word, *(["prefer"] if self.prefer else []), *([kind + listed] if kind else [])]
        found = {prefix: ",".join(words), prefix + "_LIST": listed, prefix + "_TYPE": kind, prefix + "_VERBOSE": word}
        if self.prefer:
            found[prefix + "_PREFER"] = "prefer"
        return found


def read(text: str) -> Wish:
    """The text of --cpu-bind or --mem-bind, which was checked before: the last word of each sort counts."""
    wish = Wish()
    for word in _words(text):
        kind, _, listed = word.lower().partition(":")
        if kind in ("q", "quiet", "v", "verbose"):
            wish.verbose = kind.startswith("v")
        elif kind in ("p", "prefer"):
            wish.prefer = True
        elif kind in LISTS:
            wish.kind, wish.items = kind, [item for each in listed.split(",") for item in _repeated(each, kind)]
        elif kind in ("no", "none", "nobind"):
            wish.kind, wish.items = "none", []
        elif kind not in ("one_thread", ""):
            wish.kind, wish.items = kind, []
    return wish


def _words(text: str) -> List[str]:
    """Words between commas; what follows a list's kind and begins as a number does belongs to the list."""
    words: List[str] = []
    for piece in text.split(","):
        listing = bool(words) and words[-1].lower().partition(":")[0] in LISTS
        if listing and piece[:1] and all(each in "0123456789abcdefABCDEFxX*" for each in piece):
            words[-1] += "," + piece
        else:
            words.append(piece)
    return words


def _repeated(item: str, kind: str) -> List[str]:
    """``0x3*2`` as ``3`` twice."""
    number, _, times = item.partition("*")
    if kind.startswith("mask") and number.lower().startswith("0x"):
        number = number[2:]
    return [number] * (min(int(times), 1 << 16) if times.isdigit() else 1)


def cpu_wish(request: Mapping[str, Any]) -> Optional[Wish]:
    """What a step's request says about CPUs; None when it says nothing. Counts of tasks and hints name a unit, too."""
    text = str(request.get("cpu_bind") or "")
    wish = read(text)
    wish.kind = "" if wish.kind == "rank" else wish.kind  # obsolete: as if it had not been said
    wish.kind = wish.kind or _implied(request)
    if wish.kind or wish.verbose or "one_thread" in text:
        return wish
    return None


def _implied(request: Mapping[str, Any]) -> str:
    for word in str(request.get("hint") or "").lower().split(","):
        if word in HINTS:
            return HINTS[word]
    return next((unit for field, unit in IMPLIED.items() if request.get(field) is not None), "")


def memory_wish(request: Mapping[str, Any]) -> Optional[Wish]:
    """What a step's request says about memory."""
    return read(str(request["mem_bind"])) if request.get("mem_bind") else None


def variables(request: Mapping[str, Any]) -> Variables:
    """What srun tells of the bindings that it was asked for."""
    found: Variables = {}
    for prefix, wish in (("SLURM_CPU_BIND", cpu_wish(request)), ("SLURM_MEM_BIND", memory_wish(request))):
        if wish is not None:
            found.update(wish.variables(prefix))
    return found


def on_node(
    job: Mapping[str, Any], request: Mapping[str, Any], cpus: Sequence[int], tasks: int, how: str
) -> Optional[Dict[str, Any]]:
    """What the keeper of a step is told about binding; None where the site binds nothing (TaskPlugin), or has it off
    (TaskPluginParam) and nobody asks for it."""
    parameters = job.get("parameters", {})
    if "affinity" not in str(parameters.get("TaskPlugin") or "").lower():
        return None
    own = str(parameters.get("TaskPluginParam") or "").lower().split(",")
    default = next((word for word in own if word in (*UNITS, "none")), "")
    wish = cpu_wish(request)
    if default == "none" and wish is None and not request.get("mem_bind"):
        return None
    verbose = "verbose" in own if wish is None else wish.verbose
    if wish is None or not wish.kind:
        wish = Wish(default, verbose=verbose)
    return {
        "wish": wish.variables("")[""],
        "memory": request.get("mem_bind") or "",
        "cpus": list(cpus),
        "tasks": tasks,
        "each": request.get("cpus_per_task") or 1,
        "distribution": how,
        "threads_per_core": request.get("threads_per_core"),
        "otherwise": next((word[9:] for word in own if word.startswith("autobind=")), ""),
    }


# --------------------------------------------------------------------------------------------------- the machine


class Machine:
    """The CPUs of this machine in the order in which Slurm counts them, each with its socket, core and memory domain."""

    def __init__(self, places: Mapping[int, Tuple[int, int, int]], usable: Iterable[int]) -> None:
        self.places = places  # CPU: socket, core, domain
        self.order = sorted(places, key=lambda cpu: (*places[cpu][:2], cpu))
        self.usable = set(usable)

    def cpus(self, numbers: Iterable[int]) -> List[int]:
        """The CPUs that a node's CPU numbers stand for, each once, in their order."""
        wanted = list(numbers)
        direct = [self.order[number] for number in wanted if number < len(self.order)]
        if len(direct) < len(wanted) or not self.usable.issuperset(direct):
            pool = [cpu for cpu in self.order if cpu in self.usable] or self.order
            direct = [pool[number % len(pool)] for number in wanted]
        return sorted(set(direct), key=self.order.index)

    def unit(self, cpu: int, unit: str) -> Tuple[int, ...]:
        """Names what of a kind of unit the CPU belongs to."""
        socket, core, domain = self.places[cpu]
        return {"threads": (cpu,), "cores": (socket, core), "sockets": (socket,), "ldoms": (domain,)}[unit]

    def whole(self, cpus: Sequence[int], unit: str) -> int:
        """How many units are among those CPUs with all their CPUs."""
        found: Set[Tuple[int, ...]] = {self.unit(cpu, unit) for cpu in cpus}
        return len(found - {self.unit(cpu, unit) for cpu in self.order if cpu not in cpus})

    def domains(self) -> List[List[int]]:
        """The CPUs of each memory domain."""
        names = sorted({place[2] for place in self.places.values()})
        return [[cpu for cpu in self.order if self.places[cpu][2] == name] for name in names]


def this_machine() -> Machine:
    """Read from /sys; where that does not tell, every CPU is a core of one socket."""
    usable = os.sched_getaffinity(0)
    online = _numbers(_read("cpu/online")) or sorted(usable)
    domains = {}
    for name in _entries("node"):
        if name.startswith("node") and name[4:].isdigit():
            domains.update(dict.fromkeys(_numbers(_read("node/%s/cpulist" % name)), int(name[4:])))
    places = {}
    for cpu in online:
        socket, core = (_read("cpu/cpu%d/topology/%s" % (cpu, what)) for what in ("physical_package_id", "core_id"))
        place = (int(socket), int(core)) if socket.isdigit() and core.isdigit() else (0, cpu)
        places[cpu] = (*place, domains.get(cpu, 0))
    return Machine(places, usable)


def _read(name: str) -> str:
    try:
        with open(os.path.join(SYSTEM, name), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _entries(name: str) -> List[str]:
    try:
        return os.listdir(os.path.join(SYSTEM, name))
    except OSError:
        return []


def _numbers(text: str) -> List[int]:
    """``0-3,8`` as numbers."""
    found: List[int] = []
    for item in filter(None, text.split(",")):
        low, _, high = item.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


# --------------------------------------------------------------------------------------------------- masks


class Binding:
    """How the tasks of a step are bound on one node: ``masks`` by the number of the task there, None for one that is not
    bound; ``shown`` is what lines about it call it; ``wish`` is what variables tell."""

    def __init__(self, masks: Sequence[Optional[List[int]]], shown: str, wish: Wish) -> None:
        self.masks = list(masks)
        self.shown = shown
        self.wish = wish


def bind(wish: Optional[Wish], machine: Machine, asked: Mapping[str, Any]) -> Binding:
    """The binding of ``asked["tasks"]`` tasks of ``asked["each"]`` CPUs; ``asked["cpus"]`` are the step's CPU numbers on the
    node, ``asked["distribution"]`` is how they are given. Raises Unbindable."""
    allowed = machine.cpus(asked["cpus"])
    tasks, each = int(asked["tasks"]), max(1, int(asked.get("each") or 1))
    verbose = wish is not None and wish.verbose
    if wish is not None and wish.kind == "none":
        return Binding([None] * tasks, SHOWN["none"], wish)
    if wish is not None and (wish.kind in OF_DOMAINS or wish.kind in LISTS):
        return _listed(wish, machine, allowed, tasks)
    unit = wish.kind if wish is not None and wish.kind in UNITS else _match(machine, allowed, asked, tasks * each)
    if not unit:  # no unit of which there are as many as wanted: all tasks have all CPUs
        return Binding([allowed] * tasks, "MASK", Wish("mask_cpu", [mask(allowed)], verbose))
    usable = _of_cores(machine, allowed, int(asked.get("threads_per_core") or 0))
    laid = _lay_out(machine, usable, tasks, each, str(asked.get("distribution") or ""))
    masks = [_expanded(machine, usable if unit == "threads" else allowed, cpus, unit) for cpus in laid]
    return Binding(masks, "MASK", Wish("mask_cpu", list(map(mask, masks)), verbose))


def _match(machine: Machine, allowed: Sequence[int], asked: Mapping[str, Any], wanted: int) -> str:
    """The unit of which the step has as many as its tasks want CPUs, else the site's own; empty for none."""
    counts = {"sockets": machine.whole(allowed, "sockets"), "cores": machine.whole(allowed, "cores"), "threads": len(allowed)}
    return next((unit for unit, count in counts.items() if count == wanted), str(asked.get("otherwise") or ""))


def _of_cores(machine: Machine, allowed: Sequence[int], threads: int) -> List[int]:
    """No more than so many CPUs of each core; 0 is all."""
    seen: Dict[Tuple[int, ...], int] = {}
    found = []
    for cpu in allowed:
        core = machine.unit(cpu, "cores")
        seen[core] = seen.get(core, 0) + 1
        if not threads or seen[core] <= threads:
            found.append(cpu)
    return found


def _listed(wish: Wish, machine: Machine, allowed: Sequence[int], tasks: int) -> Binding:
    """Bindings that the user lists, one a task; the list begins again when it is over."""
    domains = machine.domains()
    masks: List[Optional[List[int]]] = []
    for task in range(tasks):
        item = wish.items[task % len(wish.items)] if wish.items else str(task % len(domains))
        if wish.kind == "map_cpu":
            cpus = [int(item)]
        elif wish.kind == "mask_cpu":
            cpus = _bits(item)
        elif wish.kind == "mask_ldom":
            cpus = [cpu for number in _bits(item) if number < len(domains) for cpu in domains[number]]
        else:
            cpus = domains[int(item) % len(domains)]
        masks.append(cpus)
    if wish.kind not in OF_DOMAINS and not all(set(cpus or ()) <= set(allowed) for cpus in masks):
        raise Unbindable(mask(allowed))
    return Binding(masks, SHOWN.get(wish.kind, "MASK"), wish)


def _bits(text: str) -> List[int]:
    value = int(text or "0", 16)
    return [number for number in range(value.bit_length()) if value >> number & 1]


def _lay_out(machine: Machine, allowed: Sequence[int], tasks: int, each: int, how: str) -> List[List[int]]:
    """The CPUs of every task: block fills one socket after the other, cyclic gives the next task the next socket, fcyclic
    the next CPU. When all are given, they are given again."""
    second = how.split(",")[0].partition(":")[2].partition(":")[0]
    sockets: Dict[Tuple[int, ...], List[int]] = {}
    for cpu in allowed:
        sockets.setdefault(machine.unit(cpu, "sockets"), []).append(cpu)
    queues = list(sockets.values()) if second != "block" else [list(allowed)]
    left = [list(queue) for queue in queues]
    found: List[List[int]] = []
    turn = 0
    for _ in range(tasks):
        given: List[int] = []
        while len(given) < max(1, each):
            if not any(left):
                left = [list(queue) for queue in queues]
            turn = next(number % len(left) for number in range(turn, turn + len(left)) if left[number % len(left)])
            given.append(left[turn].pop(0))
            turn += 1 if second == "fcyclic" else 0
        turn += 0 if second == "fcyclic" else 1
        found.append(given)
    return found


def _expanded(machine: Machine, allowed: Sequence[int], cpus: Sequence[int], unit: str) -> List[int]:
    """Those CPUs with the rest of their units, as far as the step has it."""
    units = {machine.unit(cpu, unit) for cpu in cpus}
    return [cpu for cpu in allowed if machine.unit(cpu, unit) in units]


def mask(cpus: Iterable[int]) -> str:
    """``0x3`` for CPUs 0 and 1."""
    return "0x%X" % sum(1 << cpu for cpu in set(cpus))


def line(binding: Binding, node: str, rank: int, local: int, process: int, machine: Machine) -> bytes:
    """What is said of one task's binding."""
    cpus = binding.masks[local]
    shown = mask(machine.usable if cpus is None else cpus)
    end = "" if cpus is None else " set"
    words = (binding.shown, node, rank, local, process, shown.lower(), end)
    return ("cpu-bind=%s - %s, task %2d %2d [%d]: mask %s%s\n" % words).encode()


class MemoryBinding:
    """Where a task's memory comes from: ``domains`` of the machine, None for any; ``prefer`` when others may help out."""

    def __init__(self, wish: Wish, machine: Machine, local: int, cpus: Optional[Sequence[int]]) -> None:
        every = sorted({place[2] for place in machine.places.values()})
        self.wish = wish
        self.prefer = wish.prefer
        self.domains: Optional[List[int]] = None
        item = wish.items[local % len(wish.items)] if wish.items else str(local % len(every))
        if wish.kind == "local":
            own = {machine.places[cpu][2] for cpu in cpus or machine.usable}
            self.domains = sorted(own)
        elif wish.kind == "mask_mem":
            self.domains = _bits(item)
        elif wish.kind in ("rank", "map_mem"):
            self.domains = [int(item)]
        self.shown = every if self.domains is None else self.domains

    def set(self) -> None:
        """Make it the policy of this process (set_mempolicy(2)), as far as the kernel lets it."""
        number = SET_MEMORY_POLICY.get(os.uname().machine)
        if self.domains is None or number is None or not self.domains or max(self.domains) >= 1024:
            return
        try:
            import ctypes

            size = 1024
            nodes = (ctypes.c_ulong * (size // (8 * ctypes.sizeof(ctypes.c_ulong))))()
            for domain in self.domains:
                nodes[domain // (8 * ctypes.sizeof(ctypes.c_ulong))] |= 1 << domain % (8 * ctypes.sizeof(ctypes.c_ulong))
            library = ctypes.CDLL(None, use_errno=True)
            library.syscall(number, MPOL_PREFERRED if self.prefer else MPOL_BIND, ctypes.byref(nodes), ctypes.c_ulong(size))
        except (ImportError, OSError, AttributeError):
            return

    def line(self, rank: int, local: int, process: int) -> bytes:
        """What is said of it."""
        end = "" if self.domains is None else " set"
        words = (
            MEMORY_SHOWN.get(self.wish.kind, "NULL"),
            os.uname().nodename,
            rank,
            local,
            process,
            mask(self.shown).lower(),
            end,
        )
        return ("mem-bind=%s - %s, task %2d %2d [%d]: mask %s%s\n" % words).encode()
