"""Which nodes a step uses, how many tasks each gets, and what CPUs, memory and GRES it holds: a pure function.

The step manager keeps what running steps hold; this module says what one more step would get, that it must wait (Busy),
or that the job can never give it that (Refused), in Slurm's words.
"""

from __future__ import annotations

from slurmk.stepd import hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

TOO_MANY = "More processors requested than permitted"
NO_SUCH_NODES = "Requested node configuration is not available"
BUSY = "Requested nodes are busy"
NO_MEMORY = "Memory required by task is not available"
NO_SUCH_GRES = "Invalid generic resource (gres) specification"

LARGEST = 1000000
"""Tasks of one step."""


class Refused(Exception):
    """The job can never give the step what it asks for."""


class Busy(Exception):
    """The step has to wait until other steps end."""


class Holding:
    """What running steps hold on one node of the job."""

    def __init__(self, share: Mapping[str, Any]) -> None:
        self.share = share
        self.cpus = 0
        self.memory = 0
        self.cpu_ids: Set[int] = set()
        self.devices: Set[Tuple[str, int]] = set()

    @property
    def cpus_each(self) -> int:
        """CPUs that go with each one that tasks use; more than one where the job leaves threads of its cores idle."""
        cpus = int(self.share["cpus"])
        return cpus // max(1, cpus - int(self.share.get("idle_cpus", 0)))

    def whole_cores(self, cpus: int) -> int:
        """CPUs of the cores on which tasks use that many."""
        threads = int(self.share.get("threads", 1))
        used = max(1, threads // self.cpus_each)
        return -(-cpus // used) * max(threads, self.cpus_each)

    @property
    def free_cpus(self) -> int:
        return int(self.share["cpus"]) - self.cpus

    def choose(self, count: int, *, free: bool) -> List[int]:
        """Numbers of that many CPUs of the job's there, at first those that no other step holds; with ``free``, those alone."""
        every = list(self.share.get("cpu_ids") or range(int(self.share["cpus"])))
        left = [number for number in every if number not in self.cpu_ids]
        return (left if free else left + [number for number in every if number in self.cpu_ids])[:count]

    @property
    def free_memory(self) -> int:
        return int(self.share["memory"]) - self.memory


class Layout:
    """One step on its nodes; all lists are in the order of the step's nodes. ``job_nodes`` are numbers of the job's nodes."""

    def __init__(self, job_nodes: Sequence[int], ranks: Sequence[Sequence[int]], distribution: str) -> None:
        self.job_nodes = list(job_nodes)
        self.ranks = [list(each) for each in ranks]
        self.counts = [len(each) for each in ranks]
        self.distribution = distribution
        self.cpus: List[int] = []
        self.counted: List[int] = []  # CPUs that accounting tells: without what whole cores have beyond those asked for
        self.cpu_ids: List[List[int]] = []
        self.memory: List[int] = []
        self.gres: List[List[Dict[str, Any]]] = []
        self.holds = True  # False for a step that overlaps others
        self.holds_gres = True

    @property
    def tasks(self) -> int:
        return sum(self.counts)


def lay_out(job: Mapping[str, Any], request: Mapping[str, Any], holdings: Sequence[Holding], first: int) -> Layout:
    """Raises Refused or Busy. ``first`` is the number of the node to look at first, so that steps go round the nodes."""
    if request.get("interactive"):
        return _beside_all(job, [0])
    if request.get("external_launcher"):
        nodes = _candidates(job, request)
        return _beside_all(job, sorted(nodes[: int(request.get("minimum_nodes") or len(nodes))]))
    candidates = _candidates(job, request)
    arbitrary = _distribution_word(request) == "arbitrary" and bool(request.get("nodelist"))
    tasks = _tasks(request, [holdings[node] for node in candidates])
    if arbitrary:
        order = [_index(job, name) for name in _expand(request["nodelist"])][:tasks]
        if len(order) < tasks:
            raise Refused(NO_SUCH_NODES)
        chosen = sorted(set(order))
        ranks = [[rank for rank, node in enumerate(order) if node == each] for each in chosen]
    else:
        wanted = min(int(request.get("minimum_nodes") or len(candidates)), tasks)
        if wanted > len(candidates):
            raise Refused(NO_SUCH_NODES)
        total = {node: _capacity(int(holdings[node].share["cpus"]) // holdings[node].cpus_each, request) for node in candidates}
        most = int(request.get("maximum_nodes") or len(candidates))
        if sum(sorted(total.values(), reverse=True)[: max(wanted, min(most, len(candidates)))]) < tasks:
            raise Refused(TOO_MANY)
        chosen = _choose(job, request, holdings, candidates, wanted, most, tasks, first)
        rooms = [_room(request, holdings[node]) for node in chosen]
        if _packs(job, request):
            chosen, rooms = _packed(chosen, rooms, tasks)
        ranks = distribute(tasks, rooms, request, pack=_packs(job, request))
    layout = Layout(chosen, ranks, _distribution(request, tasks, len(chosen)))
    _give(job, request, holdings, layout)
    return layout


def _beside_all(job: Mapping[str, Any], nodes: Sequence[int]) -> Layout:
    """salloc's own shell, or the daemons of a launcher: one task a node, which shares all that the job has there and holds
    nothing."""
    shares = [job["nodes"][node] for node in nodes]
    layout = Layout(nodes, [[rank] for rank in range(len(nodes))], "block")
    layout.cpus, layout.memory = [int(share["cpus"]) for share in shares], [0] * len(nodes)
    layout.counted = list(layout.cpus)
    layout.cpu_ids = [list(share.get("cpu_ids") or range(int(share["cpus"]))) for share in shares]
    layout.gres = [[dict(each) for each in share["gres"]] for share in shares]
    layout.holds = layout.holds_gres = False
    return layout


def _candidates(job: Mapping[str, Any], request: Mapping[str, Any]) -> List[int]:
    """Numbers of the job's nodes that the step may use, those it must use first."""
    names = [node["node"] for node in job["nodes"]]
    excluded = set(_expand(request.get("exclude")))
    allowed = [number for number, name in enumerate(names) if name not in excluded]
    if request.get("relative") is not None:
        start = int(request["relative"])
        allowed = [number for number in allowed if number >= start]
    required = list(dict.fromkeys(_index(job, name) for name in _expand(request.get("nodelist"))))
    if any(number not in allowed for number in required):
        raise Refused(NO_SUCH_NODES)
    if not allowed:
        raise Refused(NO_SUCH_NODES)
    return required + [number for number in allowed if number not in required]


def _expand(text: Optional[str]) -> List[str]:
    try:
        return hosts.expand(text) if text else []
    except ValueError:
        raise Refused(NO_SUCH_NODES) from None


def _index(job: Mapping[str, Any], name: str) -> int:
    for number, node in enumerate(job["nodes"]):
        if node["node"] == name:
            return number
    raise Refused(NO_SUCH_NODES)


def _tasks(request: Mapping[str, Any], holdings: Sequence[Holding]) -> int:
    """How many tasks there are, where it is not said: one a node, or with CPUs for a task as many as fit those of the nodes. Of
    a range of nodes these are as many as the job has. ``holdings`` are those of the nodes to choose from."""
    tasks = request.get("tasks")
    if tasks is None:
        nodes = min(int(request.get("maximum_nodes") or request.get("minimum_nodes") or len(holdings)), len(holdings))
        nodes = max(nodes, int(request.get("minimum_nodes") or 0))
        tasks = nodes * int(request.get("tasks_per_node") or 1)
        each = request.get("cpus_per_task")
        if each and not request.get("tasks_per_node"):
            used = (int(holding.share["cpus"]) // holding.cpus_each for holding in holdings[:nodes])
            tasks = max(tasks, sum(cpus // max(1, int(each)) for cpus in used))
    if not 0 < int(tasks) <= LARGEST:
        raise Refused(TOO_MANY)
    return int(tasks)


def _capacity(cpus: int, request: Mapping[str, Any]) -> int:
    """Tasks that fit that many CPUs."""
    if request.get("overcommit"):
        return LARGEST
    return cpus // max(1, int(request.get("cpus_per_task") or 1))


def _room(request: Mapping[str, Any], holding: Holding) -> int:
    """Tasks that fit what other steps leave of a node; with overcommitment, what fits without it."""
    cpus = int(holding.share["cpus"]) if request.get("overlap") else holding.free_cpus
    if request.get("overcommit"):
        return max(1, cpus) if cpus > 0 else 0
    return _capacity(cpus // holding.cpus_each, request)


def _choose(
    job: Mapping[str, Any],
    request: Mapping[str, Any],
    holdings: Sequence[Holding],
    candidates: Sequence[int],
    wanted: int,
    most: int,
    tasks: int,
    first: int,
) -> List[int]:
    """Nodes with room for the tasks, in the job's order. Raises Busy."""
    required = list(dict.fromkeys(_index(job, name) for name in _expand(request.get("nodelist"))))
    count = len(job["nodes"])
    start = candidates[0] if request.get("relative") is not None else first
    others = sorted((node for node in candidates if node not in required), key=lambda node: (node - start) % count)
    usable = [node for node in required + others if _room(request, holdings[node]) > 0]
    if any(node not in usable for node in required[:wanted]):
        raise Busy(BUSY)
    if not (request.get("exact") or request.get("cpus_per_task") or request.get("overlap")):
        untouched = [node for node in usable if not holdings[node].cpus]
        usable = sorted(usable, key=lambda node: (node not in required, node not in untouched))
    chosen = usable[:wanted]
    if not request.get("overcommit") and sum(_room(request, holdings[node]) for node in usable[: max(wanted, most)]) < tasks:
        usable = sorted(usable, key=lambda node: (node not in required, -_room(request, holdings[node])))
        chosen = usable[:wanted]
    room = sum(_room(request, holdings[node]) for node in chosen)
    ranged = request.get("minimum_nodes") is not None and request.get("maximum_nodes") is not None
    for node in usable[wanted : min(max(wanted, most), tasks)]:
        if (room >= tasks or request.get("overcommit")) and not ranged:
            break
        chosen.append(node)
        room += _room(request, holdings[node])
    if len(chosen) < wanted or (room < tasks and not request.get("overcommit")):
        raise Busy(BUSY)
    return sorted(chosen)


def _packs(job: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether blocks of tasks fill a node before the next (Pack, else CR_Pack_Nodes)."""
    words = str(request.get("distribution") or "").lower().split(",")[1:]
    return "pack" in words or (bool(job.get("pack_nodes")) and "nopack" not in words)


def _packed(chosen: Sequence[int], rooms: Sequence[int], tasks: int) -> Tuple[List[int], List[int]]:
    """As many of the nodes, from the first, as the tasks fill."""
    count = next((number for number in range(1, len(rooms) + 1) if sum(rooms[:number]) >= tasks), len(rooms))
    return list(chosen[:count]), list(rooms[:count])


def distribute(tasks: int, room: Sequence[int], request: Mapping[str, Any], *, pack: bool = False) -> List[List[int]]:
    """Ranks of the tasks of each node. ``room`` is how many fit each; what is beyond that goes round the nodes.

    Blocks have as many tasks as if tasks went round the nodes; --ntasks-per-node bounds them as long as others have room.
    """
    word = _distribution_word(request)
    if word in ("", "*"):
        word = "block" if tasks > len(room) else "cyclic"
    limit = request.get("tasks_per_node")
    bounded = [min(fitting, int(limit)) for fitting in room] if limit else list(room)
    if word == "plane":
        return _plane(tasks, bounded, int(request.get("plane_size") or 1))
    if word == "cyclic":
        return _cyclic(tasks, bounded)
    counts = _filled(tasks, bounded) if pack else [len(ranks) for ranks in _cyclic(tasks, bounded)]
    ranks, start = [], 0
    for count in counts:
        ranks.append(list(range(start, start + count)))
        start += count
    return ranks


def _filled(tasks: int, room: Sequence[int]) -> List[int]:
    """Tasks of each node when one is filled before the next, but each has one; what is beyond the room goes round."""
    counts = [1 if number < tasks else 0 for number in range(len(room))]
    left = tasks - sum(counts)
    for number, fitting in enumerate(room):
        more = min(left, max(0, fitting - counts[number]))
        counts[number] += more
        left -= more
    for extra in range(left):
        counts[extra % len(counts)] += 1
    return counts


def _cyclic(tasks: int, room: Sequence[int]) -> List[List[int]]:
    ranks: List[List[int]] = [[] for _ in room]
    rank, full = 0, False
    while rank < tasks:
        before = rank
        for number, fitting in enumerate(room):
            if rank < tasks and (full or len(ranks[number]) < fitting):
                ranks[number].append(rank)
                rank += 1
        full = full or rank == before
    return ranks


def _plane(tasks: int, room: Sequence[int], size: int) -> List[List[int]]:
    """Blocks of ``size`` tasks in turn; a full node is passed over as long as another has room."""
    ranks: List[List[int]] = [[] for _ in room]
    node = 0
    while tasks > sum(map(len, ranks)):
        done = sum(map(len, ranks))
        space = size if done >= sum(room) else room[node] - len(ranks[node])
        ranks[node].extend(range(done, min(tasks, done + max(0, min(size, space)))))
        node = (node + 1) % len(room)
    return ranks


def _distribution_word(request: Mapping[str, Any]) -> str:
    return str(request.get("distribution") or "").lower().split(":")[0].split(",")[0].split("=")[0]


def _distribution(request: Mapping[str, Any], tasks: int, nodes: int) -> str:
    """What SLURM_DISTRIBUTION says. Where CPUs were asked for a task but no number of tasks, that is a block."""
    counted = request.get("tasks") is not None or request.get("cpus_per_task") is None
    usual = "cyclic" if tasks <= nodes and counted else "block"
    said = str(request.get("distribution") or "").lower()
    return usual + said[1:] if said.startswith("*") else said or usual


# ------------------------------------------------------------------------------------------------- resources


def _give(job: Mapping[str, Any], request: Mapping[str, Any], holdings: Sequence[Holding], layout: Layout) -> None:
    """CPUs, memory and GRES of the step on each node. Raises Busy or Refused."""
    layout.holds = not request.get("overlap")
    wanted = _gres_wanted(job, request, layout)
    for number, (node, count) in enumerate(zip(layout.job_nodes, layout.counts)):
        holding = holdings[node]
        free = holding.free_cpus if layout.holds else int(holding.share["cpus"])
        needed = _cpus_needed(request, count, [] if wanted is None else wanted[number])
        if needed is not None and needed > int(holding.share["cpus"]) and request.get("cpus_per_gres"):
            raise Refused(TOO_MANY)
        layout.cpus.append(max(1, free if needed is None else min(holding.whole_cores(needed), free)))
        layout.counted.append(max(1, free if needed is None else min(needed * holding.cpus_each, free)))
        layout.cpu_ids.append(holding.choose(layout.cpus[-1], free=layout.holds and free > 0))
        memory, least = _memory(job, request, holding, count, layout.counted[-1] // holding.cpus_each)
        limit = int(holding.share["memory"])
        if limit and least > limit:
            raise _too_much(request, limit)
        if limit and layout.holds and least > holding.free_memory:
            raise Busy(BUSY)
        layout.memory.append(memory)
    if wanted is None:
        layout.gres = _of_job(job, layout)
        layout.holds_gres = False
    else:
        layout.gres = [_devices(holdings[node], each, layout.holds) for node, each in zip(layout.job_nodes, wanted)]
        layout.holds_gres = layout.holds


def _cpus_needed(request: Mapping[str, Any], tasks: int, gres: Sequence[Tuple[str, str, int]]) -> Optional[int]:
    """The CPUs that a step takes on a node; None for all that are free there."""
    each = parse_gres(request.get("cpus_per_gres"))
    if each and gres:
        return each[0][2] * sum(count for name, _, count in gres if name == each[0][0])
    if request.get("whole") or not (request.get("exact") or request.get("cpus_per_task")):
        return None
    return tasks * max(1, int(request.get("cpus_per_task") or 1))


def _memory(job: Mapping[str, Any], request: Mapping[str, Any], holding: Holding, tasks: int, cpus: int) -> Tuple[int, int]:
    """MiB that the step holds on a node, of all CPUs that it gets there, and those of its tasks, without which it cannot begin.

    0 when nobody asked for a share of the job's memory.
    """
    if request.get("memory_per_node") is not None:
        asked = int(request["memory_per_node"])
        return asked, asked
    per_cpu = request.get("memory_per_cpu")
    if per_cpu is None:
        per_cpu = job["request"].get("memory_per_cpu")
        left = min(int(per_cpu or 0) * cpus, max(0, holding.free_memory))
        return left, left
    return int(per_cpu) * cpus, int(per_cpu) * min(cpus, tasks * max(1, int(request.get("cpus_per_task") or 1)))


def _too_much(request: Mapping[str, Any], limit: int) -> Exception:
    """What is said of more memory than the job has on a node: of too many CPUs, unless it is too much for each of them."""
    if request.get("memory_per_node") is not None:
        return Refused(NO_MEMORY)
    return Refused(TOO_MANY) if int(request.get("memory_per_cpu") or 0) <= limit else Busy(BUSY)


def parse_gres(text: Optional[str]) -> List[Tuple[str, str, int]]:
    """``gres/gpu:a100:2`` and its kin as (name, type, count)."""
    found = []
    for word in (text or "").replace("=", ":").split(","):
        for prefix in ("gres/", "gres:"):
            if word.startswith(prefix):
                word = word[len(prefix) :]
        parts = word.split(":")
        if not parts[0]:
            continue
        count = 1
        if len(parts) > 1 and parts[-1].isdigit():
            count = int(parts.pop())
        found.append((parts[0], parts[1] if len(parts) > 1 else "", count))
    return found


def _gres_wanted(
    job: Mapping[str, Any], request: Mapping[str, Any], layout: Layout
) -> Optional[List[List[Tuple[str, str, int]]]]:
    """What each node shall give; None when the step did not say. Raises Refused."""
    shares = [job["nodes"][node]["gres"] for node in layout.job_nodes]
    if request.get("no_gres") or str(request.get("gres") or "").lower() == "none":
        return [[] for _ in layout.job_nodes]
    if request.get("gres"):
        return [parse_gres(request["gres"]) for _ in layout.job_nodes]
    if request.get("gres_per_task"):
        per_task = parse_gres(request["gres_per_task"])
        for share, count in zip(shares, layout.counts):
            if any(number <= _held(share, name, kind) < number * count for name, kind, number in per_task):
                raise Refused(TOO_MANY)
        return [[(name, kind, number * count) for name, kind, number in per_task] for count in layout.counts]
    if request.get("gres_per_step"):
        wanted: List[List[Tuple[str, str, int]]] = [[] for _ in shares]
        for name, kind, total in parse_gres(request["gres_per_step"]):
            for each, count in zip(wanted, _spread(total, [_held(share, name, kind) for share in shares])):
                each.append((name, kind, count))
        return wanted
    return None


_AS_ASKED_OF_JOB = {"gres": "tres_per_node", "gres_per_task": "tres_per_task", "gres_per_step": "tres_per_job"}
"""Fields of a step's request and those of a job's that say the same of GRES."""


def _of_job(job: Mapping[str, Any], layout: Layout) -> List[List[Dict[str, Any]]]:
    """The job's GRES for a step that asks for none: those that the job asked for, and not what it has besides because it has
    the nodes to itself."""
    shares = [job["nodes"][node] for node in layout.job_nodes]
    if not job.get("whole_nodes") or job["request"].get("tres_per_socket"):
        return [[dict(each) for each in share["gres"]] for share in shares]
    asked = {name: job["request"].get(source) for name, source in _AS_ASKED_OF_JOB.items()}
    asked["gres_per_task"] = ",".join(word for word in str(asked["gres_per_task"] or "").split(",") if "gres" in word)
    try:
        wanted = _gres_wanted(job, asked, layout) or [[] for _ in shares]
        return [_devices(Holding(share), each, False) for share, each in zip(shares, wanted)]
    except Refused:  # the step has fewer nodes than the job, or more tasks
        return [[dict(each) for each in share["gres"]] for share in shares]


def _spread(total: int, room: Sequence[int]) -> List[int]:
    """That many on nodes with so much room, as evenly as can be, more on earlier ones. Raises Refused."""
    if total > sum(room):
        raise Refused(NO_SUCH_GRES)
    counts = [0 for _ in room]
    while total > 0:
        left = [number for number, space in enumerate(room) if counts[number] < space]
        each = max(1, total // len(left))
        for number in left:
            more = min(room[number] - counts[number], each, total)
            counts[number] += more
            total -= more
    return counts


def _held(share: Sequence[Mapping[str, Any]], name: str, kind: str) -> int:
    """How many of a GRES the job has on a node."""
    return sum(each["count"] for each in share if each["name"] == name and kind in ("", each["type"]))


def _devices(holding: Holding, wanted: Sequence[Tuple[str, str, int]], holds: bool) -> List[Dict[str, Any]]:
    given: List[Dict[str, Any]] = []
    for name, kind, count in wanted:
        left = count
        have = [each for each in holding.share["gres"] if each["name"] == name and kind in ("", each["type"])]
        if _held(holding.share["gres"], name, kind) < count:
            raise Refused(NO_SUCH_GRES)
        for each in have:
            free = [index for index in each["indices"] if not holds or (name, index) not in holding.devices]
            taken = free[:left] if each["indices"] else []
            number = len(taken) if each["indices"] else min(left, each["count"])
            if number:
                given.append(dict(each, count=number, indices=taken))
                left -= number
        if left:
            raise Busy(BUSY)
    return given


def hold(layout: Layout, holdings: Sequence[Holding], sign: int = 1) -> None:
    """Take what the step holds out of what is free, or give it back (``sign`` -1)."""
    for number, node in enumerate(layout.job_nodes):
        holding = holdings[node]
        if layout.holds:
            holding.cpus += sign * layout.cpus[number]
            holding.memory += sign * layout.memory[number]
            ids = set(layout.cpu_ids[number])
            holding.cpu_ids = holding.cpu_ids | ids if sign > 0 else holding.cpu_ids - ids
        if layout.holds_gres:
            devices = {(each["name"], index) for each in layout.gres[number] for index in each["indices"]}
            holding.devices = holding.devices | devices if sign > 0 else holding.devices - devices


def gres_text(layout: Layout) -> str:
    """The step's GRES as in a TRES string: ``gres/gpu=2,gres/gpu:a100=2``."""
    totals: Dict[str, int] = {}
    for gres in layout.gres:
        for each in gres:
            totals["gres/" + each["name"]] = totals.get("gres/" + each["name"], 0) + each["count"]
            if each["type"]:
                name = "gres/%s:%s" % (each["name"], each["type"])
                totals[name] = totals.get(name, 0) + each["count"]
    return ",".join("%s=%d" % pair for pair in totals.items())
