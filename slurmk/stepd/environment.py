"""The SLURM_* variables of batch scripts and of tasks, as tables over the job's description (see bridge.description)."""

from __future__ import annotations

import os

from slurmk.stepd import hosts
from slurmk.stepd.processes import MARK, NICENESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

    from slurmk.stepd.manager import Step

    Description = Mapping[str, Any]
    Variables = Dict[str, str]

BATCH_STEP_NUMBER = "-5"

UNLIMITED_SECONDS = 365 * 86400
"""What SLURM_JOB_END_TIME says of a job without a time limit."""

LAUNCHERS = {
    "HYDRA_BOOTSTRAP": "slurm",
    "HYDRA_LAUNCHER_EXTRA_ARGS": "--external-launcher",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "--external-launcher",
    "OMPI_MCA_plm_slurm_args": "--external-launcher",
    "PRTE_MCA_plm_slurm_args": "--external-launcher",
}
"""What tells MPI's own launchers to use srun."""

GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")

REQUESTED: Sequence[Tuple[str, str]] = (
    # variable, field of the request whose value it is
    ("SLURM_CPUS_PER_TASK", "cpus_per_task"),
    ("SLURM_MEM_PER_CPU", "memory_per_cpu"),
    ("SLURM_MEM_PER_NODE", "memory_per_node"),
    ("SLURM_NTASKS", "tasks"),
    ("SLURM_NPROCS", "tasks"),
    ("SLURM_NTASKS_PER_NODE", "tasks_per_node"),
    ("SLURM_NTASKS_PER_CORE", "tasks_per_core"),
    ("SLURM_NTASKS_PER_SOCKET", "tasks_per_socket"),
    ("SLURM_NTASKS_PER_GPU", "ntasks_per_tres"),
    ("SLURM_THREADS_PER_CORE", "threads_per_core"),
    ("SLURM_OPEN_MODE", "open_mode"),
    ("SLURM_DIST_PLANESIZE", "distribution_plane_size"),
    ("SLURM_JOB_LICENSES", "licenses"),
    ("SLURM_JOB_RESERVATION", "reservation"),
    ("SLURM_JOB_DEPENDENCY", "dependency"),
    ("SLURM_ACCTG_FREQ", "account_gather_frequency"),
    ("SLURM_NETWORK", "network"),
    ("SLURM_CONTAINER", "container"),
    ("SLURM_CONTAINER_ID", "container_id"),
    ("SLURM_JOB_SEGMENT_SIZE", "segment_size"),
    ("SLURM_CORE_SPEC", "core_specification"),
    ("SLURM_THREAD_SPEC", "thread_specification"),
    ("SLURM_TRES_BIND", "tres_bind"),
)

GPU_REQUESTED: Sequence[Tuple[str, str]] = (
    ("SLURM_GPUS", "tres_per_job"),
    ("SLURM_GPUS_PER_SOCKET", "tres_per_socket"),
    ("SLURM_CPUS_PER_GPU", "cpus_per_tres"),
    ("SLURM_MEM_PER_GPU", "memory_per_tres"),
    ("SLURM_GPU_FREQ", "tres_freq"),
)
"""Variables that have what stands behind ``gres/gpu:`` (or ``gres:gpu:``) in a field of the request."""


def job_variables(job: Description) -> Variables:
    """What every process of the job has, whatever node and step it is of."""
    nodes = job["nodes"]
    names = hosts.compress(node["node"] for node in nodes)
    found = {
        "SLURM_CLUSTER_NAME": job["cluster"],
        "SLURM_JOBID": str(job["job"]),
        "SLURM_JOB_ID": str(job["job"]),
        "SLURM_JOB_ACCOUNT": job["account"],
        "SLURM_JOB_CPUS_PER_NODE": hosts.counts(usable_cpus(node) for node in nodes),
        "SLURM_JOB_GID": str(job["gid"]),
        "SLURM_JOB_NAME": job["name"],
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_JOB_PARTITION": job["partition"],
        "SLURM_JOB_QOS": job["qos"],
        "SLURM_JOB_SLUID": job["sluid"],
        "SLURM_JOB_START_TIME": str(job["start_time"]),
        "SLURM_JOB_UID": str(job["uid"]),
        "SLURM_JOB_USER": job["user"],
        "SLURM_NODELIST": names,
        "SLURM_OOM_KILL_STEP": str(job["request"].get("oom_kill_step", 0)),
        "SLURM_STEPMGR": nodes[0]["node"] if job.get("step_manager") else "",
    }
    end = job["start_time"] + UNLIMITED_SECONDS if job["end_time"] is None else job["end_time"]
    found["SLURM_JOB_END_TIME"] = str(end)
    if job["restart"]:
        found["SLURM_RESTART_COUNT"] = str(job["restart"])
    if job.get("parameters", {}).get("SLURM_CONF"):
        found["SLURM_CONF"] = job["parameters"]["SLURM_CONF"]
    found.update(_array_variables(job))
    found.update(job.get("variables", {}))
    return {name: value for name, value in found.items() if value != ""}


def _array_variables(job: Description) -> Variables:
    array = job["array"]
    if array is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": str(array["job"]),
        "SLURM_ARRAY_TASK_ID": str(array["task"]),
        "SLURM_ARRAY_TASK_COUNT": str(array["count"]),
        "SLURM_ARRAY_TASK_MIN": str(array["minimum"]),
        "SLURM_ARRAY_TASK_MAX": str(array["maximum"]),
        "SLURM_ARRAY_TASK_STEP": str(array["step"]),
    }


def node_variables(job: Description, index: int) -> Variables:
    """What every process of the job on its node number ``index`` has."""
    node = job["nodes"][index]
    addresses = node.get("topology") or [node["node"]]
    return {
        "SLURMD_NODENAME": node["node"],
        "SLURM_CPUS_ON_NODE": str(usable_cpus(node)),
        "SLURM_TOPOLOGY_ADDR": ".".join(addresses),
        "SLURM_TOPOLOGY_ADDR_PATTERN": ".".join([node.get("topology_kind", "switch")] * (len(addresses) - 1) + ["node"]),
        "TMPDIR": "/tmp",
        MARK: mark(job, node["node"]),
    }


def device_variables(gres: Sequence[Mapping[str, Any]], devices_name: str) -> Variables:
    """What a share of GPUs, whole or in shards, says of itself; ``devices_name`` is the variable that names its devices."""
    devices = gpu_indices(gres)
    count = gpu_count(gres) or len(devices)
    if not count:
        return {}
    percentage = thread_percentage(gres)
    if percentage:
        return dict(percentage, CUDA_VISIBLE_DEVICES="0")  # as the MPS server of that GPU numbers it
    found = dict(visible(devices), SLURM_GPUS_ON_NODE=str(count))
    found[devices_name] = ",".join(map(str, devices))
    shards = sum(each["count"] for each in gres if each["name"] == "shard")
    if shards:
        found["SLURM_SHARDS_ON_NODE"] = str(shards)
    return found


def thread_percentage(gres: Sequence[Mapping[str, Any]]) -> Variables:
    """How much of a GPU CUDA's Multi-Process Service (MPS) gives to a share of one."""
    shares = [each for each in gres if each["name"] == "mps" and each.get("each")]
    if not shares:
        return {}
    return {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(sum(each["count"] * 100 // each["each"] for each in shares))}


def mark(job: Description, node: str) -> str:
    """Names one job's part on one node, among all clusters of the machine."""
    return "%s:%d:%d:%s" % (job.get("place", ""), job["job"], job["restart"], node)


def gpu_indices(gres: Sequence[Mapping[str, Any]]) -> List[int]:
    """Numbers of the GPUs in a share, those too that it has only shards of."""
    whole = {index for each in gres if each["name"] == "gpu" for index in each["indices"]}
    shared = {index // each["each"] for each in gres if each.get("each") for index in each["indices"]}
    return sorted(whole | shared)


def gpu_count(gres: Sequence[Mapping[str, Any]]) -> int:
    return sum(each["count"] for each in gres if each["name"] == "gpu")


def visible(devices: Sequence[int]) -> Variables:
    """Which GPUs programs may use."""
    return dict.fromkeys(GPU_VARIABLES, ",".join(map(str, devices)))


def requested_variables(request: Mapping[str, Any]) -> Variables:
    """What was asked for, as sbatch tells its script."""
    found = {variable: str(request[field]) for variable, field in REQUESTED if request.get(field) is not None}
    for variable, field in GPU_REQUESTED:
        value = _of_gpus(request.get(field))
        if value:
            found[variable] = value
    # --gres and --gpus-per-node set the same field; only the latter's text has a variable, and both read alike here
    if request.get("profile"):
        found["SLURM_PROFILE"] = str(request["profile"]).capitalize()
    if request.get("distribution"):
        found["SLURM_DISTRIBUTION"] = str(request["distribution"]).lower()
    if request.get("overcommit"):
        found["SLURM_OVERCOMMIT"] = "1"
    export = "ALL" if request.get("export") is None else str(request["export"])
    if export.upper() != "ALL" and not request.get("export_file"):
        found["SLURM_EXPORT_ENV"] = export
    if request.get("get_user_env") or export.upper() not in ("ALL", "NIL"):
        found["SLURM_GET_USER_ENV"] = "1"
    per_task = request.get("tres_per_task")
    if request.get("cpus_per_task") is not None and not str(per_task or "").startswith("cpu"):
        per_task = "cpu=%d%s" % (request["cpus_per_task"], "," + per_task if per_task else "")
    if per_task:
        found["SLURM_TRES_PER_TASK"] = _equals_form(per_task)
    return found


def _of_gpus(text: Optional[str]) -> str:
    for word in str(text or "").split(","):
        for prefix in ("gres/gpu:", "gres/gpu=", "gres:gpu:", "gpu:"):
            if word.startswith(prefix):
                return word[len(prefix) :]
    return ""


def _equals_form(text: str) -> str:
    """``cpu:2,gres/gpu:1`` as ``cpu=2,gres/gpu=1``."""
    return ",".join(word if "=" in word else "=".join(word.rsplit(":", 1)) for word in text.split(","))


def usable_cpus(node: Description) -> int:
    """CPUs that the job makes use of on one of its nodes."""
    return int(node["cpus"]) - int(node.get("idle_cpus", 0))


def tasks_per_node(job: Description) -> List[int]:
    """Tasks that the job's nodes are said to have: those asked for, else as many as its CPUs carry."""
    request = job["request"]
    if any(request.get(field) is not None for field in ("tasks", "tasks_per_node")):
        return [max(1, node["tasks"]) for node in job["nodes"]]
    return [max(1, usable_cpus(node) // max(1, request.get("cpus_per_task") or 1)) for node in job["nodes"]]


def batch_environment(job: Description) -> Variables:
    """The environment of the batch script on the job's first node."""
    request = job["request"]
    environment: Variables = dict(job["environment"])
    environment.update(LAUNCHERS)
    for name, value in requested_variables(request).items():
        environment.setdefault(name, value)
    environment.update(job_variables(job))
    environment.update(node_variables(job, 0))
    environment.update(device_variables(job["nodes"][0]["gres"], "SLURM_JOB_GPUS"))
    environment.update(
        {
            "ENVIRONMENT": "BATCH",
            "HOSTNAME": job["nodes"][0]["node"],
            "SLURM_GTIDS": "0",
            "SLURM_JOB_EXCLUSIVE": job.get("exclusive", "NO"),
            "SLURM_JOB_OVERSUBSCRIBE": job.get("oversubscribe", "NO"),
            "SLURM_LOCALID": "0",
            "SLURM_NNODES": str(len(job["nodes"])),
            "SLURM_NODEID": "0",
            NICENESS: job["environment"].get(NICENESS, "0"),
            "SLURM_PROCID": "0",
            "SLURM_STEPID": BATCH_STEP_NUMBER,
            "SLURM_STEP_ID": BATCH_STEP_NUMBER,
            "SLURM_SUBMIT_DIR": job["environment"].get("SLURM_SUBMIT_DIR") or job.get("submit_directory") or job["directory"],
            "SLURM_SUBMIT_HOST": job["submit_host"],
            "SLURM_TASKS_PER_NODE": hosts.counts(tasks_per_node(job)),
        }
    )
    if job.get("components"):
        for name in _OF_COMPONENTS if request.get("tasks") else (*_OF_COMPONENTS, "SLURM_NTASKS", "SLURM_NPROCS"):
            environment.pop(name, None)
    environment.update(het_variables(job.get("components") or ()))
    environment["PATH"] = path_with(environment.get("PATH"), job.get("commands", ""))
    return environment


_OF_COMPONENTS = (
    "SLURM_CPUS_PER_GPU",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_DIST_PLANESIZE",
    "SLURM_GPUS",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_SOCKET",
    "SLURM_MEM_PER_GPU",
    "SLURM_NETWORK",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_THREADS_PER_CORE",
    "SLURM_TRES_BIND",
)
"""What the script of a het job is told of each component alone, so that an srun in one does not go by the sizes of another."""


def het_variables(components: Sequence[Description]) -> Variables:
    """What the script of a het job sees of its components, which older programs call packs; nothing for another job."""
    found: Variables = dict.fromkeys(("SLURM_HET_SIZE", "SLURM_PACK_SIZE"), str(len(components))) if components else {}
    for number, job in enumerate(components):
        nodes = job["nodes"]
        own = requested_variables(job["request"])
        own.update(
            {
                "SLURM_JOB_ACCOUNT": job["account"],
                "SLURM_JOB_CPUS_PER_NODE": hosts.counts(usable_cpus(node) for node in nodes),
                "SLURM_JOB_ID": str(job["job"]),
                "SLURM_JOB_NAME": job["name"],
                "SLURM_JOB_NODELIST": hosts.compress(node["node"] for node in nodes),
                "SLURM_JOB_NUM_NODES": str(len(nodes)),
                "SLURM_JOB_PARTITION": job["partition"],
                "SLURM_JOB_QOS": job["qos"],
                "SLURM_TASKS_PER_NODE": hosts.counts(tasks_per_node(job)),
            }
        )
        for kind in ("HET", "PACK"):
            found.update({"%s_%s_GROUP_%d" % (name, kind, number): value for name, value in own.items() if value})
    return found


def path_with(path: Optional[str], commands: str) -> str:
    """A PATH on which our commands are found before any others of the same names."""
    path = path or os.defpath
    if not commands:
        return path
    for folder in path.split(":"):
        if folder == commands:
            return path
        if os.path.exists(os.path.join(folder, "srun")):
            break
    return commands + ":" + path


_OF_SRUN = """
SLURM_CLUSTER_NAME SLURM_CONF SLURM_JOBID SLURM_JOB_ACCOUNT SLURM_JOB_CPUS_PER_NODE SLURM_JOB_GID SLURM_JOB_ID SLURM_JOB_NAME
SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION SLURM_JOB_QOS SLURM_JOB_SLUID SLURM_JOB_UID SLURM_JOB_USER SLURM_NODELIST
"""


def srun_variables(job: Description, step: Step) -> Variables:
    """What srun's own prolog and epilog see of the step, on top of what srun's process had."""
    found = {name: value for name, value in job_variables(job).items() if name in _OF_SRUN.split()}
    counts = step.layout.counts
    found.update(
        {
            "SLURMD_DEBUG": "2",
            "SLURM_JOB_GROUP": job["group"],
            "SLURM_NNODES": str(len(counts)),
            "SLURM_NPROCS": str(sum(counts)),
            "SLURM_NTASKS": str(sum(counts)),
            "SLURM_STEPID": str(step.number),
            "SLURM_STEP_ID": str(step.number),
            "SLURM_TASKS_PER_NODE": hosts.counts(counts),
        }
    )
    return dict(LAUNCHERS, **found)


def _of_het_step(environment: Variables, het: Mapping[str, Any], index: int) -> Variables:
    """What the tasks of a step over several components see of the whole; what is told of components is also told by the name
    that they had before."""
    nodes, counts = het["nodes"], het["counts"]
    listed = hosts.compress(nodes)
    found = {name.replace("_HET_", "_PACK_"): value for name, value in environment.items() if "_HET_GROUP_" in name}
    if "SLURM_HET_SIZE" in environment:
        found["SLURM_PACK_SIZE"] = environment["SLURM_HET_SIZE"]
    tasks = str(sum(counts))
    found.update(dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), str(het["job"])))
    found.update(dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"), tasks))
    found.update(dict.fromkeys(("SLURM_NNODES", "SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"), str(len(nodes))))
    found.update(dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST"), listed))
    found.update(dict.fromkeys(("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"), hosts.counts(counts)))
    found["SLURM_JOB_CPUS_PER_NODE"] = hosts.counts(het["cpus"])
    found["SLURM_NODEID"] = str(het["first_node"] + index)
    return found


PRESERVED = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE")
"""What --preserve-env leaves as it is."""

INTERACTIVE_STEP = 0xFFFFFFFA
"""The number of the step that is salloc's own shell."""


def _signed(number: int) -> str:
    """A step's number as 32 bits with a sign, as variables have it."""
    return str(number - (1 << 32) if number >> 31 else number)


def step_environment(job: Description, step: Mapping[str, Any], index: int) -> Variables:
    """What all tasks of a step on the step's node number ``index`` have, on top of what srun's process had.

    ``step`` has step, nodes, job_nodes (indices into the job's), counts (tasks a node), ranks, cpus, gres, distribution,
    address and port of srun.
    """
    counts = step["counts"]
    environment: Variables = dict(step["environment"])
    environment.update(job_variables(job))
    environment.update(node_variables(job, step["job_nodes"][index]))
    environment.update(
        {
            "SLURMD_DEBUG": str(step.get("debug") or 2),
            "SLURM_CPUS_ON_NODE": str(step["cpus"][index]),
            "SLURM_DISTRIBUTION": step["distribution"],
            "SLURM_GTIDS": ",".join(map(str, step["ranks"][index])),
            "SLURM_JOB_GROUP": job["group"],
            "SLURM_LAUNCH_NODE_IPADDR": step["address"],
            "SLURM_NNODES": str(len(counts)),
            "SLURM_NODEID": str(index),
            "SLURM_NPROCS": str(sum(counts)),
            "SLURM_NTASKS": str(sum(counts)),
            "SLURM_SRUN_COMM_HOST": step["address"],
            "SLURM_SRUN_COMM_PORT": str(step["port"]),
            "SLURM_STEPID": _signed(step["step"]),
            "SLURM_STEP_ID": _signed(step["step"]),
            "SLURM_STEP_LAUNCHER_PORT": str(step["port"]),
            "SLURM_STEP_NODELIST": hosts.compress(step["nodes"]),
            "SLURM_STEP_NUM_NODES": str(len(counts)),
            "SLURM_STEP_NUM_TASKS": str(sum(counts)),
            "SLURM_STEP_TASKS_PER_NODE": hosts.counts(counts),
            "SLURM_TASKS_PER_NODE": hosts.counts(counts),
            "SLURM_UMASK": "%04o" % step["umask"],
            "SRUN_DEBUG": str(3 + step.get("verbose", 0) - step.get("quiet", 0)),
        }
    )
    if step.get("cpus_per_task") is not None:
        environment["SLURM_CPUS_PER_TASK"] = str(step["cpus_per_task"])
    if step.get("preserve"):
        environment.update({name: step["environment"][name] for name in PRESERVED if name in step["environment"]})
    if step.get("het"):
        environment.update(_of_het_step(environment, step["het"], index))
    if step["step"] == INTERACTIVE_STEP or not step["distribution"]:
        environment.pop("SLURM_DISTRIBUTION")
    environment.update(step.get("bindings") or {})
    if step.get("job_name"):
        environment["SLURM_JOB_NAME"] = step["job_name"]
    if step.get("tres_bind"):
        environment["SLURM_TRES_BIND"] = step["tres_bind"]
    if environment.get("SLURM_TRES_BIND"):
        environment["SLURMD_TRES_BIND"] = environment["SLURM_TRES_BIND"]
    if job["request"].get("licenses"):
        environment["SLURM_JOB_LICENSES"] = job["request"]["licenses"]
    if step.get("tres_freq"):
        environment["SLURMD_TRES_FREQ"] = step["tres_freq"]
    if step.get("oom_kill_step") is not None:
        environment["SLURM_OOM_KILL_STEP"] = str(step["oom_kill_step"])
    if step.get("ports"):
        environment["SLURM_STEP_RESV_PORTS"] = step["ports"]
    for name in ("SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_SHARDS_ON_NODE", *GPU_VARIABLES):
        environment.pop(name, None)
    environment.update(device_variables(step["gres"][index], "SLURM_STEP_GPUS"))
    environment["PATH"] = path_with(environment.get("PATH"), job.get("commands", ""))
    return environment


def task_variables(rank: int, local: int, gres: Sequence[Mapping[str, Any]] = (), bind: str = "") -> Variables:
    """What tells one task from the others; SLURM_TASK_PID is added once it has one. ``gres`` is the step's on this node."""
    found = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local)}
    devices = gpu_indices(gres)
    if devices and bind:
        own = bound(devices, bind, local) or devices[:1]
        found.update(visible(own), SLURM_STEP_GPUS=",".join(map(str, own)))
    return found


def frequency_lines(local: int, gres: Sequence[Mapping[str, Any]], request: Mapping[str, Any]) -> List[str]:
    """What the first task of a node with GPUs hears of --gpu-freq: nothing here sets the frequency of one."""
    asked = request.get("tres_freq") and gpu_count(gres) and not local
    return ["GpuFreq=control_disabled"] if asked else []


def binding_lines(local: int, gres: Sequence[Mapping[str, Any]], bind: str, verbose: bool) -> List[str]:
    """What stepd says of the binding of a task to GPUs: that it cannot be, and with ``verbose`` what it is."""
    devices = gpu_indices(gres)
    if not devices or not (bind or verbose):
        return []
    own = bound(devices, bind, local)
    lines = []
    if not own:
        way, _, argument = bind.partition(":")
        short = (
            "Not enough gres to bind %s per task" % argument if way == "per_task" else "Invalid map or mask value specified."
        )
        none = "Bind request gres/gpu:%s does not specify any devices within the allocation for task %d. Binding to the first "
        lines += ["error: " + short, "error: " + none % (bind, local) + "device in the allocation instead."]
    if verbose:
        used = own or devices[:1]
        listed = ",".join(map(str, used))
        words = (_bits(used), _bits(devices), listed, listed)
        lines.append("gpu-bind: usable_gres=0x%X; bit_alloc=0x%X; local_inx=0; global_list=%s; local_list=%s" % words)
    return lines


def _bits(numbers: Sequence[int]) -> int:
    return sum(1 << number for number in numbers)


def bound(devices: Sequence[int], bind: str, local: int) -> List[int]:
    """Those of a step's GPUs on a node that its task number ``local`` there uses, by a word of --gpu-bind; none when there are
    too few for it.

    ``single:N`` gives one GPU to N tasks in a row, again from the first when there are no more, ``per_task:N`` N GPUs to each;
    ``map`` and ``mask`` name them. Any other word gives all.
    """
    way, _, argument = bind.partition(":")
    every = list(devices)
    try:
        if way == "single":
            return [every[local // max(1, int(argument)) % len(every)]]
        if way == "per_task":
            count = max(1, int(argument or 1))
            own = every[local * count : local * count + count]
            return own if len(own) == count else []
        if way in ("map_gpu", "mask_gpu", "map", "mask"):
            words = [word for item in argument.split(",") for word in _repeated(item)] or [""]
            number = int(words[local % len(words)], 0 if way.startswith("map") else 16)
            return [each for each in every if (number == each if way.startswith("map") else number >> each & 1)]
    except ValueError:
        pass
    return every


def _repeated(item: str) -> List[str]:
    """``2*3`` is 2 three times."""
    word, _, times = item.partition("*")
    return [word] * min(int(times or 1), 1 << 16)


def gpu_binding(request: Mapping[str, Any]) -> str:
    """How a step's tasks share its GPUs: as --gpu-bind or --tres-bind says, else as tasks and GPUs were counted."""
    for part in str(request.get("tres_bind") or "").split("+"):
        for prefix in ("gres/gpu:", "gpu:"):
            if part.startswith(prefix):
                return part[len(prefix) :].replace("verbose,", "", 1)
    per_task = [word for word in str(request.get("gres_per_task") or "").split(",") if _of_gpus(word)]
    if per_task:
        count = _of_gpus(per_task[0]).rpartition(":")[2]
        return "per_task:%s" % (count if count.isdigit() else 1)
    if request.get("tasks_per_gpu"):
        return "single:%s" % request["tasks_per_gpu"]
    return ""
