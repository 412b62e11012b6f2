"""From a command line, its environment and its script to job requests: what sbatch, srun and salloc have in common.

An option may be said in four places, of which the later wins: the script's ``#SBATCH`` lines, its PBS and LSF lines, the
caller's environment, the command line. Components of a het job start from what the component before them was told, but
for what each must say itself (OF_ONE_COMPONENT).
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, cast

from grammar.arguments import Given, parse_arguments, read_arguments
from grammar.bindings import is_tres_binding
from grammar.constraints import features_of, normalise_constraint, parse_constraint
from grammar.errors import GrammarError
from grammar.hostlist import HostlistError, compress, expand, fold
from grammar.numbers import leading_number
from grammar.option_order import PLACES
from grammar.options import (
    COMMANDS,
    COUNTED,
    LIMITS,
    OptionError,
    Reading,
    SubmissionOption,
    options_of,
    read_variable,
    variables_of,
)
from grammar.script import ScriptDirectives
from grammar.tres import INVALID_TRES, Gres, gpus_per_task, parse_gres, parse_tres_per_task
from slurmk.commands.call import Call
from slurmk.commands.shown_options import SHOWN
from slurmk.model.job import Credentials, JobRequest
from slurmk.model.node import SHARED_DEVICES, WHOLE_DEVICE
from slurmk.model.site import Site

REQUEST_FIELDS = frozenset(item.name for item in fields(JobRequest))

MEMORY_FIELDS = frozenset(("memory_per_node", "memory_per_cpu", "memory_per_tres"))

OF_ONE_COMPONENT = frozenset(
    """
    array batch_features constraints contiguous core_specification thread_specification cores_per_socket
    sockets_per_node threads_per_core cpus_per_task cpus_per_tres memory_per_cpu memory_per_tres network shared
    tres_per_job tres_per_node tres_per_socket gpus_per_task no_gres minimum_cpus_per_node nodefile required_nodes
    nodes minimum_nodes maximum_nodes tasks tasks_per_core ntasks_per_tres tasks_per_node tasks_per_socket partition
    burst_buffer mail_type required_switches wait_for_switch temporary_disk_per_node tres_per_task tres_bind tres_freq licenses
    use_min_nodes spread_job segment_size
    """.split()  # noqa: SIM905
)
"""Fields that every component of a het job says for itself."""

LONGEST_TEXT = 1024
LONG_TEXTS: Mapping[str, int] = {"dependency": 131072, "current_working_directory": 4096, "array": 65536} | dict.fromkeys(
    ("required_nodes", "excluded_nodes", "export", "export_file", "constraints", "standard_output", "standard_error"), 65536
)
"""Characters that a text of a request may have; other texts have LONGEST_TEXT."""


@dataclass(slots=True)
class Options:
    """What one component was told. ``values`` are fields of ``grammar.options``; ``said`` are the options that gave them, with
    the layer: ``script``, ``environment`` or ``command line``, and the text as typed."""

    values: dict[str, Any] = field(default_factory=dict)
    said: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def take(self, row: SubmissionOption, found: Mapping[str, object], layer: str, text: str | None) -> None:
        """Add what an option set; a later layer replaces what an earlier one said."""
        if MEMORY_FIELDS & found.keys() and not self._memory_counts(layer, row.name):
            return
        hinted = "hint" in self.values  # then another hint takes back what that one set
        for name, value in found.items():
            if value is None and row.name == "hint" and not hinted:
                continue
            if name in COUNTED:
                self.values[name] = self.values.get(name, 0) + int(cast(int, value))
            else:
                self.values[name] = value
        self.said[row.name] = (layer, text)
        if layer != "environment" and (warning := row.warning(text)) and warning not in self.warnings:
            self.warnings.append(warning)

    def _memory_counts(self, layer: str, said: str) -> bool:
        """What the environment says of memory gives way to the script and to the command line."""
        for name, option in (("memory_per_node", "mem"), ("memory_per_cpu", "mem-per-cpu"), ("memory_per_tres", "mem-per-gpu")):
            before = self.said.get(option)
            if before is None or before[0] == layer or option == said:
                continue
            if layer == "environment":
                return False
            if before[0] == "environment":
                del self.said[option]
                self.values.pop(name, None)
        return True

    def next_component(self) -> Options:
        """What the next component of a het job starts from."""
        again = OF_ONE_COMPONENT
        if "hint" in self.values and not _INSTEAD_OF_HINTS & self.said.keys():
            again = again - {"cores_per_socket", "threads_per_core"}
        kept = {name: value for name, value in self.values.items() if name not in again}
        said = {name: text for name, text in self.said.items() if again.isdisjoint(_fields_of(name))}
        return Options(kept, said)

    def forget(self, fields: frozenset[str]) -> None:
        """Take back what was said of these fields."""
        self.values = {name: value for name, value in self.values.items() if name not in fields}
        self.said = {name: text for name, text in self.said.items() if fields.isdisjoint(_fields_of(name))}

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.values.get(name, otherwise)


@lru_cache(maxsize=256)
def _fields_of(option: str) -> tuple[str, ...]:
    return next((row.fields for command in COMMANDS for row in options_of(command) if row.name == option), ())


# ------------------------------------------------------------------------------------------------- layers


def getopt_error(command: str, error: GrammarError) -> OptionError:
    """What getopt says, as the commands print it."""
    return OptionError(str(error), f'Try "{command} --help" for more information')


def parse_components(command: str, arguments: Sequence[str]) -> tuple[list[list[Given]], list[str]]:
    """The options of each component of a command line, and the operands of the last. Raises OptionError."""
    components: list[list[Given]] = []
    rest: Sequence[str] = arguments
    while True:
        try:
            given, operands = parse_arguments(command, options_of(command), rest, stop_at_operand=True, places=PLACES)
        except GrammarError as error:
            raise getopt_error(command, error) from None
        components.append(given)
        if not operands or operands[0] != ":":
            return components, operands
        rest = operands[1:]


def read_layers(
    command: str,
    environment: Mapping[str, str],
    given: Sequence[Sequence[Given]],
    now: float,
    script: ScriptDirectives | None = None,
    ignored_variables: frozenset[str] = frozenset(),
) -> list[Options]:
    """The options of every component, from all layers. Raises OptionError."""
    count = max(len(given), len(script.components) if script else 0)
    told: list[Options] = []
    for index in range(count):
        options = told[-1].next_component() if told else _before_all(command, given, now)
        if script is not None:
            if index < len(script.components):
                words = (word for directive in script.components[index] for word in directive.words)
                _take_directives(command, options, words, now)
            if index == 0 and not options.get("ignore_pbs"):
                for translated in (words for directive in script.foreign for words in directive.translated()):
                    _take_directives(command, options, translated, now)
        _take_environment(command, options, environment, now, ignored_variables)
        if given:  # what the command line says of its last component holds for all further ones
            _take_given(command, options, given[min(index, len(given) - 1)], now, "command line")
        told.append(options)
    return told


def _before_all(command: str, given: Sequence[Sequence[Given]], now: float) -> Options:
    """What a first component starts from. sbatch reads its whole command line once before everything else, and what that
    says anywhere and components inherit holds for the first one too, where nothing else does."""
    options = Options()
    if command != "sbatch" or len(given) < 2:
        return options
    for component in given:
        if any(MEMORY_FIELDS & set(_fields_of(one.name)) for one in component):
            options.forget(MEMORY_FIELDS)
        _take_given(command, options, component, now, "environment")  # which gives way to everything else
        options = options.next_component()
    options.forget(OF_ONE_COMPONENT | frozenset(COUNTED))
    return options


def _take_directives(command: str, options: Options, words: Iterable[str], now: float) -> None:
    """All directives are read as one command line, so that a value may stand on the next of them; each option is taken
    before the next is read, so that the first fault is told."""
    operand: str | None = None
    try:
        for one in read_arguments(command, options_of(command), tuple(words), stop_at_operand=True, places=PLACES):
            if not isinstance(one, Given):
                operand = one
                break
            if one.name not in COMMAND_LINE_ONLY:
                _take_given(command, options, (one,), now, "script")
    except OptionError:
        raise
    except GrammarError as error:
        raise getopt_error(command, error) from None
    if operand is not None:
        raise OptionError(f"{command}: error: Invalid directive found in batch script: {operand}")


COMMAND_LINE_ONLY = frozenset(("help", "usage", "version", "wrap", "autocomplete", "verbose", "quiet"))
"""Options that a script cannot set."""


def _take_environment(
    command: str, options: Options, environment: Mapping[str, str], now: float, ignored: frozenset[str]
) -> None:
    known = variables_of(command)
    for name in [name for name in known if name in environment and name not in ignored]:
        row = known[name]
        found = read_variable(row, environment[name], Reading(command, row.name, now))
        if found:
            options.take(row, found, "environment", environment[name])


def _take_given(command: str, options: Options, given: Iterable[Given], now: float, layer: str) -> None:
    for one in given:
        row = one.option
        assert isinstance(row, SubmissionOption)
        options.take(row, row.read(one.value, Reading(command, row.name, now)), layer, one.value)


def check_values(command: str, given: Iterable[Sequence[Given]], now: float) -> None:
    """Refuse a command line for its values, before anything else is looked at. Raises OptionError."""
    scratch = Options()
    for component in given:
        _take_given(command, scratch, component, now, "command line")


def verbose_lines(command: str, options: Options) -> list[str]:
    """What ``-v`` lists: the options that were said. Raises OptionError."""
    if options.get("quiet"):
        raise _error(command, "don't specify both --verbose (-v) and --quiet (-Q)")
    rule = f"{command}: -------------------- --------------------"
    lines = [f"{command}: defined options", rule]
    for name in sorted(options.said):
        text = options.said[name][1]
        show = SHOWN.get(name)
        shown = show(options.values, text or "") if show else "set" if text is None else text
        lines.append(f"{command}: {name:<20}: {shown}")
    return [*lines, rule, f"{command}: end of defined options"]


# ------------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class Checked:
    """A component after the rules that hold between options. ``warnings`` are lines for standard error."""

    request: JobRequest
    warnings: tuple[str, ...] = ()


def request_of(command: str, options: Options, call: Call) -> Checked:
    """The job request of one component, with the rules between options applied. Raises OptionError."""
    warnings = [f"warning: {line}" for line in options.warnings]
    try:
        return _request_of(command, options, call, warnings)
    except OptionError as error:
        error.lines = (*(f"{command}: {line}" for line in warnings), *error.lines)
        raise


def _request_of(command: str, options: Options, call: Call, warnings: list[str]) -> Checked:
    _check_exclusions(command, options)
    values = dict(options.values)
    _hint_gives_way(options, values)
    warnings += _old_gres(values)
    _hosts(command, values)
    within = str(values.get("job_id") or call.environment.get("SLURM_JOB_ID") or "") if command == "srun" else ""
    in_job = bool(within)
    if in_job:
        _gpus_of_step(options, values)
    _task_resources(command, options, values)
    _check_gres(command, values, within or None)
    if values.get("tasks") is None and ("extra-node-info" in options.said or _layout_counts(values)):
        values["tasks"] = _tasks_of_layout(values)
    warnings += _specialised_cores(command, values)
    warnings += _sizes(command, values)
    if not in_job:
        _fit_gpus(command, values)
    _check_segments(command, values)
    _ports(command, values)
    _features(command, values, within or None)
    if values.get("resources") and not in_job:
        raise _not_submitted(command, "Invalid license specification")
    if values.get("memory_per_cpu") == 0:
        values["memory_per_node"] = values.pop("memory_per_cpu")
    named = values.get("current_working_directory")
    directory = call.directory if named is None else absolute(named, call.directory)
    values["current_working_directory"] = directory
    for name in ("standard_output", "standard_error", "standard_input"):
        if values.get(name) is not None:
            values[name] = stream_file(values[name], directory)
    if (begin := values.get("begin_time")) and (deadline := values.get("deadline")) and begin > deadline:
        raise _error(command, "Incompatible begin and deadline time specification")
    if "immediate" in values:
        values["immediate"] = True
    if values.get("reboot"):
        values.setdefault("shared", "none")
    request = JobRequest(**{name: value for name, value in values.items() if name in REQUEST_FIELDS and value is not None})
    _check_lengths(command, request)
    return Checked(request, tuple(f"{command}: {line}" for line in warnings))


def _fatal(command: str, text: str) -> OptionError:
    return OptionError(f"{command}: fatal: {text}", code=1)


def _error(command: str, *lines: str, code: int = 1) -> OptionError:
    return OptionError(*(f"{command}: error: {line}" for line in lines), code=code, settable=code == 1)


def _check_exclusions(command: str, options: Options) -> None:
    said = options.said
    memory = [said[name][0] for name in ("mem", "mem-per-cpu", "mem-per-gpu") if name in said]
    if len(memory) > 1:
        if all(layer == "environment" for layer in memory):
            names = "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE"
        else:
            names = "--mem, --mem-per-cpu, and --mem-per-gpu"
        raise _fatal(command, f"{names} are mutually exclusive.")
    sharing = [said[name][0] for name in ("exclusive", "oversubscribe") if name in said]
    if len(sharing) > 1 and "environment" not in sharing:
        raise _fatal(command, "--exclusive and --oversubscribe options are mutually exclusive")
    if "gpus-per-node" in said and "gpu" in (said.get("gres", ("", ""))[1] or ""):
        raise _fatal(command, "--gpus-per-node and --gres=gpu are mutually exclusive.")
    if "cpus-per-gpu" in said and ("cpus-per-task" in said or "cpu" in (said.get("tres-per-task", ("", ""))[1] or "")):
        raise _fatal(command, "--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive")
    if "gpus-per-socket" in said and "ntasks-per-gpu" in said:
        raise _fatal(command, "--gpus-per-socket is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
    if "gpus-per-task" in said and "ntasks-per-gpu" in said:
        per_task = "SLURM_GPUS_PER_TASK" if said["gpus-per-task"][0] == "environment" else "--gpus-per-task"
        raise _fatal(command, f"{per_task} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
    if "ntasks-per-node" in said and ("ntasks-per-gpu" in said or "ntasks-per-tres" in said):
        per_node = _variable(command, "NTASKS_PER_NODE") if said["ntasks-per-node"][0] == "environment" else "--ntasks-per-node"
        raise _fatal(command, f"{per_node} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
    sharing = (said.get("gres-flags", ("", ""))[1] or "").lower().split(",")
    if command != "srun" and "allow-task-sharing" in sharing:
        raise _error(command, "--gres-flags=allow-task-sharing is only used with srun.", code=255)
    per_core, threads = options.get("tasks_per_core"), options.get("threads_per_core")
    if per_core and threads and "hint" not in said and per_core > threads:
        raise _error(command, f"--ntasks-per-core ({per_core}) can not be bigger than --threads-per-core ({threads})")
    if "one-task-per-sharing" in sharing:
        message = "In order to use --gres-flags=one-task-per-sharing you must also have"
        raise _error(command, f"{message} SelectTypeParameters=MULTIPLE_SHARING_GRES_PJ in your slurm.conf", code=255)


def _features(command: str, values: dict[str, Any], within: str | None) -> None:
    """Refuse expressions without meaning; whether nodes have the features is for the controller to say. ``within`` is the job
    of a step."""
    text = values.get("constraints")
    if text:
        values["constraints"] = text = normalise_constraint(text)
    try:
        tree = parse_constraint(text or "")
    except GrammarError as error:
        raise _not_submitted(command, str(error)) from None
    batch = values.get("batch_features")
    if batch is not None and not set(batch.replace("&", ",").replace("|", ",").split(",")) <= set(features_of(tree)):
        raise _not_submitted(command, "Job --batch option is invalid or not a subset of --constraint")
    if values.get("tres_bind") and not is_tres_binding(values["tres_bind"]):
        raise _not_created(command, within, INVALID_TRES)


def _hosts(command: str, values: dict[str, Any]) -> None:
    for name in ("required_nodes", "excluded_nodes"):
        if text := values.get(name):
            values[name] = _node_names(command, text, required=name == "required_nodes")
    if values.get("distribution") == "arbitrary" and not values.get("required_nodes"):
        message = "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"
        raise _error(command, message)


def _node_names(command: str, text: str, *, required: bool) -> str:
    """A list of nodes in the form in which a job keeps it, each once. Raises OptionError."""
    try:
        return compress(dict.fromkeys(expand(text)))
    except HostlistError as error:
        if not required or "{" in text:
            raise _not_submitted(command, "Invalid node name specified") from None
        found = [f"{command}: error: _parse_single_range: {error.detail}"] if error.detail else []
        raise OptionError(*found, f"{command}: fatal: Invalid node list specified", code=1) from None


def _one_cpu_count(command: str, options: Options, counts: dict[str, int], cpus: int) -> int:
    """CPUs a task when --cpus-per-task and --tres-per-task=cpu= were both said: the later layer holds. Raises OptionError."""
    (cpus_layer, cpus_text), (tres_layer, tres_text) = options.said["cpus-per-task"], options.said["tres-per-task"]
    if (cpus_layer == "environment") != (tres_layer == "environment"):
        return cpus if tres_layer == "environment" else counts["cpu"]
    if cpus_layer != "environment":
        raise _fatal(command, "You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other")
    if cpus != counts["cpu"]:
        names = f"{_variable(command, 'CPUS_PER_TASK')}={cpus_text} != {_variable(command, 'TRES_PER_TASK')}={tres_text}"
        raise _fatal(command, f"cpus-per-task set by two different environment variables {names}")
    return cpus


def _variable(command: str, name: str) -> str:
    return {"sbatch": "SBATCH_", "salloc": "SALLOC_"}.get(command, "SLURM_") + name


def _task_resources(command: str, options: Options, values: dict[str, Any]) -> None:
    """--cpus-per-task, --gpus-per-task and --tres-per-task are one text in the end: ``cpu=2,gres/gpu=1``."""
    text, raw, cpus = values.get("tres_per_task"), values.pop("gpus_per_task", None), values.get("cpus_per_task")
    if raw is not None and raw.startswith("-"):
        raise _error(command, INVALID_TRES)
    gpus = gpus_per_task(raw or "")
    if text:
        text = _OLD_KIND.sub("gres/", text)
        counts = _counts_per_task(command, text)
        if "cpu" in counts:
            if cpus is not None:
                counted = _one_cpu_count(command, options, counts, cpus)
                if counted != counts["cpu"]:
                    counts["cpu"] = counted
                    text = ",".join(f"{name}={count}" for name, count in counts.items())
            values["cpus_per_task"] = counts["cpu"]
        elif cpus is not None:
            text = f"cpu={cpus},{text}"
        if gpus and any(name.startswith("gres/gpu") for name in counts):
            raise _fatal(command, "You can not have --tres-per-task=gres/gpu= and --gpus-per-task please use one or the other")
        if gpus:
            text = f"{text},{gpus}"
    else:
        given = text
        text = ",".join(part for part in (f"cpu={cpus}" if cpus is not None else "", gpus or "") if part) or given
    values["tres_per_task"] = text
    per_task = _gpus_in(text or "")
    if (binding := _bound_to_tasks(text or "")) and not values.get("tres_bind"):
        values["tres_bind"] = binding
    asked = per_task or any(leading_number(word)[0] for word in (raw or "").split(","))
    if asked and values.get("tasks") is None:
        _tasks_from_gpus(command, values, per_task)
    elif values.get("tasks") is None and values.get("ntasks_per_tres"):
        _tasks_per_gpu(command, values)


_OLD_KIND = re.compile(r"(?<![^,])gres:")


def _bound_to_tasks(text: str) -> str:
    """What binds each task to the GRES that --tres-per-task asks for it."""
    found: dict[str, int] = {}
    for label, count in _items_of_task(text):
        if label.startswith("gres/"):
            name = label.removeprefix("gres/").partition(":")[0]
            found[name] = found.get(name, 0) + count
    return "+".join(f"gres/{name}:per_task:{found[name]}" for name in sorted(found))


def _gpus_of_step(options: Options, values: dict[str, Any]) -> None:
    """What a step says of its GPUs on the command line stands for what its job says of the same in variables."""
    typed = {name for name, (layer, _) in options.said.items() if layer == "command line"}
    if "gpus-per-task" in typed and "tres-per-task" not in typed:
        kept = [word for word in (values.get("tres_per_task") or "").split(",") if not word.startswith("gres/gpu")]
        values["tres_per_task"] = ",".join(kept) or None
    if "gpus-per-node" in typed and "gpus" not in typed:
        values["tres_per_job"] = None
    if {"gpus", "gpus-per-task"} & typed and not {"gres", "gpus-per-node"} & typed:
        values["tres_per_node"] = None


def _counts_per_task(command: str, text: str) -> dict[str, int]:
    """What --tres-per-task says, by name; of one said twice the first holds. Raises OptionError."""
    for word in text.split(","):
        name, _, count = word.replace(":", "=").partition("=")
        if name in NEVER_PER_TASK:
            raise _fatal(command, f"Invalid TRES for --tres-per-task: {name}")
        if name == "cpu" and not leading_number(count)[0]:
            raise _fatal(command, "Invalid --tres-per-task=cpu=0")
    found: dict[str, int] = {}
    try:
        for name, number in parse_tres_per_task(text):
            found.setdefault(name, number)
    except GrammarError as error:
        if any(not word.startswith("gres/") and not word.startswith("cpu") for word in text.split(",")):
            raise _not_submitted(command, str(error)) from None
        raise _error(command, str(error)) from None
    return found


NEVER_PER_TASK = frozenset(("mem", "billing", "node", "energy", "vmem", "pages"))
"""TRES that --tres-per-task does not take."""


def _gpus_in(text: str) -> int:
    return sum(count for name, count in _items_of_task(text) if name.startswith("gres/gpu"))


def _items_of_task(text: str) -> Sequence[tuple[str, int]]:
    """Of --tres-per-task; nothing where it cannot be read."""
    try:
        return parse_tres_per_task(text) if text else ()
    except GrammarError:
        return ()


def _gpu_count(text: str | None) -> int:
    return sum(item.count for item in _gpu_items(text))


def _tasks_from_gpus(command: str, values: dict[str, Any], per_task: int) -> None:
    """A fixed number of nodes has a task each, unless CPUs were asked for a task. Raises OptionError."""
    nodes = values.get("minimum_nodes")
    if nodes and nodes == values.get("maximum_nodes") and values.get("cpus_per_task") is None:
        values["tasks"] = nodes * (values.get("tasks_per_node") or 1)
        return
    total = _gpu_count(values.get("tres_per_job"))
    if total and per_task:
        values["tasks"] = max(1, total // per_task)
    elif not values.get("tasks_per_node") or (command != "srun" and (not nodes or nodes != values.get("maximum_nodes"))):
        options = "--gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks"
        line = f"Failed to validate job spec. {options} is not allowed."
        raise _error(command, line, "Invalid generic resource (gres) specification")


def _tasks_per_gpu(command: str, values: dict[str, Any]) -> None:
    total = _gpu_count(values.get("tres_per_job"))
    if not total and values.get("tres_per_node"):
        total = _gpu_count(values["tres_per_node"]) * (values.get("minimum_nodes") or 1)
    if total:
        values["tasks"] = total * values["ntasks_per_tres"]
    elif not values.get("nodes"):
        line = "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification"
        raise _error(command, line, "Invalid generic resource (gres) specification")


OTHER_TRES = frozenset(("cpu", "mem", "node", "billing", "license", "energy", "gres"))
"""Names that are TRES but never GRES."""


def _check_gres(command: str, values: dict[str, Any], job: str | None) -> None:
    """``job`` is the one whose step is asked for. Raises OptionError."""
    _check_words(command, values)
    gpus = any(_gpu_count(values.get(name)) for name in _GPUS_FOR) or _gpus_in(values.get("tres_per_task") or "") > 0
    for option, name in (("mem_per_tres", "memory_per_tres"), ("cpus_per_tres", "cpus_per_tres")):
        wanted = values.get(name)
        if wanted and not gpus and not wanted.endswith(":0"):
            raise _error(command, f"Requested {option}={wanted} but did not request any GPU.", _INVALID_GRES)
    if not gpus:
        return
    _check_gpu_counts(command, values, job)
    _check_parts_of_gpus(command, values, job)
    typed = {bool(item.type) for name in _GPUS_FOR for item in _gpu_items(values.get(name))} | _gpu_types_of_tasks(values)
    if len(typed) > 1:
        raise _error(command, "Invalid GRES specification (with and without type identification)")


def _gpu_types_of_tasks(values: Mapping[str, Any]) -> set[bool]:
    """Whether the GPUs of a task have a type: both where there are both."""
    names = (name for name, _ in parse_tres_per_task(values.get("tres_per_task") or ""))
    return {":" in name for name in names if name.startswith("gres/gpu")}


def _check_words(command: str, values: Mapping[str, Any]) -> None:
    """Every GRES text can be read, and names what may be a GRES. Raises OptionError."""
    try:
        items = [item for name in _GPUS_FOR for item in parse_gres(values.get(name) or "")]
    except GrammarError as error:
        raise _error(command, str(error)) from None
    if any(item.name in OTHER_TRES for item in items):
        raise _error(command, _INVALID_GRES)
    if any(_COUNT_ALONE.fullmatch(item.name) for item in items):
        raise _not_submitted(command, INVALID_TRES)


_COUNT_ALONE = re.compile(r"\d*[1-9]\d*[KMGTkmgt]?|", re.ASCII)
"""A count without a name, which is no GRES; a count of none says nothing."""

_INVALID_GRES = "Invalid generic resource (gres) specification"
_GPUS_FOR = ("tres_per_job", "tres_per_node", "tres_per_socket")


def _gpu_items(text: str | None) -> list[Gres]:
    return [item for item in parse_gres(text) if item.name == "gpu"] if text else []


def _check_gpu_counts(command: str, values: dict[str, Any], within: str | None) -> None:
    """GPUs of the job, of nodes, sockets and tasks fit each other and the numbers of nodes and tasks. Of a step ``within`` a
    job only that is said. Raises OptionError."""
    job, node, socket = (_gpu_count(values.get(name)) for name in _GPUS_FOR)
    task, tasks = _gpus_in(values.get("tres_per_task") or ""), values.get("tasks")
    nodes = job // node if job and node else 0
    least, most = values.get("minimum_nodes") or 1, values.get("maximum_nodes")
    most = (values.get("minimum_nodes") or nodes) if most is None else most
    faults = (
        (job and (max(node, socket) > job or (node and socket > node)), _ENSURE_ALL),
        (task > (job or node or task) or (node and socket > node), "Failed to ensure --gpus >= --gpus-per-task"),
        (job and node and job % node, "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node"),
        (
            nodes and not least <= nodes <= most,
            "Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes"
            f" ({nodes}) doesn't fall between min_nodes ({least}) and max_nodes ({most}) boundaries.",
        ),
        (job and task and job % task, "Failed to validate job spec, --gpus not multiple of --gpus-per-task"),
        (
            node and task and node % task,
            "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.",
        ),
        (
            node and task and values.get("tasks_per_node") not in (None, node // task),
            "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task"
            " requested number of tasks per node differ from --ntasks-per-node.",
        ),
        (
            job and task and tasks and job // task != tasks,
            "Failed to validate job spec. Based on --gpus and --gpus-per-task"
            " number of requested tasks differ from -n/--ntasks.",
        ),
        (
            socket and not values.get("sockets_per_node"),
            "--gpus-per-socket option requires --sockets-per-node specification",
        ),
    )
    for wrong, line in faults:
        if wrong and within:
            raise _not_created(command, within, _INVALID_GRES)
        if wrong:
            raise _error(command, line, _INVALID_GRES)
    if nodes and tasks and tasks < nodes:
        raise _not_submitted(command, "Task count specification invalid")


def _check_parts_of_gpus(command: str, values: dict[str, Any], within: str | None) -> None:
    """GPUs are asked for whole or in parts, not both, and of those in parts no frequency. Raises OptionError."""
    task = values.get("tres_per_task") or ""
    per_task = [(name.removeprefix("gres/").partition(":")[0], count) for name, count in _items_of_task(task)]
    asked = [(item.name, item.count) for item in parse_gres(values.get("tres_per_node") or "")] + per_task
    if not any(name in SHARED_DEVICES and count for name, count in asked):
        return
    whole = any(name == WHOLE_DEVICE and count for name, count in asked)
    if whole or values.get("tres_freq") or any(_gpu_count(values.get(name)) for name in _GPUS_FOR):
        raise _not_created(command, within, _INVALID_GRES) if within else _error(command, _INVALID_GRES)


def _fit_gpus(command: str, values: dict[str, Any]) -> None:
    """GPUs against the numbers of nodes and tasks as they are in the end; a node has as many tasks as its GPUs are enough
    for. Raises OptionError."""
    job, node = _gpu_count(values.get("tres_per_job")), _gpu_count(values.get("tres_per_node"))
    task, tasks = _gpus_in(values.get("tres_per_task") or ""), values.get("tasks")
    if job and job < (values.get("minimum_nodes") or 1):
        raise _error(command, "Failed to validate job spec, --gpus < -N", _INVALID_GRES)
    if not (node and task):
        return
    values["tasks_per_node"] = node // task
    if tasks and not values.get("nodes"):
        values["maximum_nodes"] = max(-(-tasks // (node // task)), values.get("minimum_nodes") or 1)


_ENSURE_ALL = "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"


def _old_gres(values: dict[str, Any]) -> list[str]:
    """``--gres=gres:gpu:2``, as scripts for older releases have it: the first word is passed over, with a warning."""
    text = values.get("tres_per_node") or ""
    if "gres/gres:" not in text:
        return []
    values["tres_per_node"] = text.replace("gres/gres:", "gres/")
    return ["warning: --gres takes no gres: before the name any more, it is passed over"]


_INSTEAD_OF_HINTS = frozenset(
    ("extra-node-info", "sockets-per-node", "cores-per-socket", "threads-per-core", "ntasks-per-core", "cpu-bind")
)


def _hint_gives_way(options: Options, values: dict[str, Any]) -> None:
    """A hint says nothing about a layout that is given in numbers."""
    said = _INSTEAD_OF_HINTS & options.said.keys()
    if "hint" not in options.said or not said:
        return
    numbers = {"cores-per-socket": "cores_per_socket", "threads-per-core": "threads_per_core"}
    for option, name in numbers.items():
        if option not in said and "extra-node-info" not in said:
            values.pop(name, None)


def _layout_counts(values: Mapping[str, Any]) -> bool:
    """Sockets, cores and threads on a fixed number of nodes, when nothing else says how many tasks there are."""
    fixed = values.get("required_nodes") or (values.get("minimum_nodes") or 0) == (values.get("maximum_nodes") or -1)
    otherwise = values.get("tasks_per_node") or values.get("ntasks_per_tres")
    return bool(fixed) and not otherwise and any(values.get(name) for name in _LAYOUT)


_LAYOUT = ("sockets_per_node", "cores_per_socket", "threads_per_core")


def _tasks_of_layout(values: Mapping[str, Any]) -> int:
    """``-B`` alone asks for as many tasks on each node as the sockets, cores and threads that it names."""
    tasks = values.get("minimum_nodes") or len(expand(values.get("required_nodes") or "")) or 1
    for name in _LAYOUT:
        tasks *= values.get(name) or 1
    return tasks


def _sizes(command: str, values: dict[str, Any]) -> list[str]:
    """Nodes from tasks and from named nodes; tasks are left to the controller where they were not said."""
    required = len(expand(values["required_nodes"])) if values.get("required_nodes") else 0
    tasks, per_node = values.get("tasks"), values.get("tasks_per_node")
    least, most = values.get("minimum_nodes"), values.get("maximum_nodes")
    said = least is not None
    cpus = values.get("cpus_per_task") or 0
    if not (said or required or tasks or cpus > 1 or values.get("tasks_per_core")):
        least = most = 1
    elif not said and required:
        least = most = required
        if tasks is not None and tasks > required:
            most = tasks
        elif tasks is None and (cpus > 1 or values.get("tasks_per_core")):
            most = None
    elif not said and tasks:
        least, most = 1, tasks
    if tasks is not None and per_node:
        needed = -(-tasks // per_node)
        if not said:
            least, most = required or needed, max(needed, required)
    warnings = []
    if tasks is not None and least is not None and tasks < least:
        warnings.append(f"warning: can't run {tasks} processes on {least} nodes, setting nnodes to {tasks}")
        least = tasks
        most = most if said else least
    if tasks is not None and said and most is not None and most > tasks:
        most = max(tasks, least or 1)
    if tasks is not None and most is not None and least is not None and most < least:
        most = least
    values["minimum_nodes"], values["maximum_nodes"] = least, most
    return warnings


def _check_segments(command: str, values: Mapping[str, Any]) -> None:
    size, nodes = values.get("segment_size") or 0, values.get("minimum_nodes") or 0
    if 0 < size < nodes and nodes % size:
        text = "node count must be evenly divisible by segment size"
        raise _fatal(command, f"--segment={size} does not fit the job size ({nodes}): {text}")


def _specialised_cores(command: str, values: dict[str, Any]) -> list[str]:
    """Sites that allow specialised cores say so in slurm.conf; slurmk has none to give, and says what Slurm says then."""
    warnings = []
    for name, option in (("core_specification", "-S"), ("thread_specification", "--thread-spec")):
        if values.pop(name, None) is not None:
            reason = "it's not allowed by configuration (AllowSpecResourcesUsage = No)"
            warnings.append(f"error: Ignoring {option} since {reason}")
    return warnings


def _ports(command: str, values: dict[str, Any]) -> None:
    if command != "srun" and values.get("reserve_ports") is not None:
        raise _error(command, "Slurmstepd step management must be enabled to use --resv-ports for job allocations")


def _check_lengths(command: str, request: JobRequest) -> None:
    for name in REQUEST_FIELDS:
        value = getattr(request, name)
        if isinstance(value, str) and len(value) > LONGEST_TEXT and len(value) > LONG_TEXTS.get(name, LONGEST_TEXT):
            raise _not_submitted(command, "Pathname of a file, directory or other parameter too long")


def _not_submitted(command: str, reason: str) -> OptionError:
    """A refusal in the words in which the command reports those of the controller."""
    before = {"sbatch": "Batch job submission failed", "srun": "Unable to allocate resources"}
    return _error(command, f"{before.get(command, 'Job submit/allocate failed')}: {reason}")


def _not_created(command: str, within: str | None, reason: str) -> OptionError:
    """The same of a step in a job; ``within`` is the job, where it is one."""
    return _error(command, f"Unable to create step for job {within}: {reason}") if within else _not_submitted(command, reason)


def absolute(path: str, directory: str) -> str:
    """A path as seen from a directory; it is joined, not simplified."""
    return path if path.startswith("/") else f"{directory.rstrip('/')}/{path}"


def stream_file(path: str, directory: str) -> str:
    """The file of a standard stream as the job keeps it: an absolute pattern; ``none`` is /dev/null."""
    if path.lower() == "none":
        return "/dev/null"
    return path if path.startswith("/") else f"{directory}/{path}"


def check_gres_help(options: Options, site: Site) -> None:
    """``--gres=help`` asks which GRES there are. Raises OptionError with the answer."""
    said = options.said.get("gres")
    if said is not None and said[1] == "help":
        lines = [f"{name}[[:type]:count]\n" for name in site.gres_types]
        raise OptionError(code=0, output="".join(["Valid gres options are:\n", *lines]))


def check_cluster(command: str, options: Options, cluster: str) -> list[str]:
    """There is one cluster; others are not known, which is told. Raises OptionError when it is not among those named."""
    text = options.get("clusters")
    if text is None:
        return []
    names = [name for name in (word.strip().lower() for word in text.split(",")) if name] or [""]
    unknown = [f"No cluster '{name}' known by database." for name in names if name not in (cluster, "all")]
    if len(unknown) < len(names):
        return unknown
    hint = "Use 'sacctmgr list clusters' to see available clusters."
    raise _error(command, *unknown, f"'{text}' can't be reached now, or it is an invalid entry for --cluster.  {hint}")


def check_step_gres(command: str, options: Options, site: Site) -> None:
    """A step asks for GRES of the site's kinds. Raises OptionError."""
    for item in (options.get("tres_per_node") or "").split(","):
        name = item.removeprefix("gres/").replace("=", ":").partition(":")[0]
        if name and site.gres_types and name not in site.gres_types:
            raise _error(command, _INVALID_GRES)


def check_display(command: str, options: Options, environment: Mapping[str, str]) -> None:
    """--x11, as where Slurm finds no display, or no cookie for it: nothing here reads one. Raises OptionError."""
    if options.get("x11") and not environment.get("DISPLAY"):
        raise OptionError(f"{command}: error: No DISPLAY variable set, cannot setup x11 forwarding.")
    if options.get("x11"):
        text = "x11_get_xauth: Could not retrieve magic cookie. Cannot use X11 forwarding."
        raise OptionError(f"{command}: error: {text}")


# ------------------------------------------------------------------------------------------------- identity


NOBODY = 65534
"""The user of nothing, who has no jobs."""


@lru_cache(maxsize=1024)
def _account_of(user: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(int(user)) if user.isascii() and user.isdigit() and len(user) < 11 else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        return None


def credentials_of(command: str, options: Options, call: Call) -> Credentials:
    """Whose the job is: the caller's, or with ``--uid`` and ``--gid`` whose root says. Group names and lists are filled in by
    the controller. Raises OptionError."""
    user, group = options.get("user"), options.get("group")
    for name, value in (("uid", user), ("gid", group)):
        if value is not None and call.caller.user_id != 0:
            raise _error(command, f"--{name} only permitted by root user", code=255)
    user_id, user_name, group_id = call.caller.user_id, call.caller.user_name, call.group_id
    if user is not None:
        account = _account_of(user)
        if account is None or account.pw_uid == NOBODY:
            raise _error(command, "Invalid --uid specification", code=255)
        user_id, user_name, group_id = account.pw_uid, account.pw_name, account.pw_gid
    if group is not None:
        group_id = _group_id(command, group)
    return Credentials(user_id=user_id, group_id=group_id, user_name=user_name, group_name="")


def _group_id(command: str, group: str) -> int:
    import grp

    try:
        found = grp.getgrgid(int(group)) if group.isascii() and group.isdigit() else grp.getgrnam(group)
    except (KeyError, OverflowError):
        raise _error(command, "Invalid --gid specification", code=255) from None
    return found.gr_gid


# ------------------------------------------------------------------------------------------------- environment


def exported(environment: Mapping[str, str], export: str | None) -> dict[str, str]:
    """What of the caller's environment goes with the job: all of it, or what ``--export`` says, besides Slurm's own variables.

    The words of a list count in their order; ``ALL`` among them stands for the whole environment.
    """
    if export is None or export.upper() == "ALL":
        return dict(environment)
    found = _slurm_variables(environment)
    for word in split_export(export):
        name, equals, value = word.partition("=")
        if equals and name:
            found[name] = value
        elif word.upper() == "ALL":
            found |= environment
        elif name in environment:
            found[name] = environment[name]
    return found


def wants_login(request: JobRequest) -> bool:
    """Whether the job's environment stands on what a login of its user sets."""
    return bool(request.get_user_env) or (request.export is not None and request.export.upper() not in ("ALL", "NIL"))


def _slurm_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(("SLURM_", "SLURMK_"))}


def split_export(text: str) -> list[str]:
    """The words of an ``--export`` list. Quotes keep a comma from ending a word, and stay."""
    words, start, quote = [], 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == ",":
            words.append(text[start:position])
            start = position + 1
    words.append(text[start:])
    return [word for word in words if word]


def unclosed_export(export: str | None) -> str | None:
    """The word of an ``--export`` list whose quotes are not closed, which only the last can be."""
    words = split_export(export or "")
    last = words[-1] if words else ""
    quote = ""
    for letter in last:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
    return last if quote else None


def read_export_file(content: bytes) -> dict[str, str]:
    """``NAME=value`` texts, each ended by NUL."""
    found = {}
    for entry in content.decode("utf-8", "surrogateescape").split("\0"):
        name, equals, value = entry.partition("=")
        if equals and name:
            found[name] = value
    return found


OPTION_VARIABLES: tuple[tuple[str, str], ...] = (
    ("account_gather_frequency", "SLURM_ACCTG_FREQ"),
    ("cpu_frequency", "SLURM_CPU_FREQ_REQ"),
    ("distribution", "SLURM_DISTRIBUTION"),
    ("distribution_plane_size", "SLURM_DIST_PLANESIZE"),
    ("hint", "SLURM_HINT"),
    ("memory_binding", "SLURM_MEM_BIND"),
    ("network", "SLURM_NETWORK"),
    ("dependency", "SLURM_JOB_DEPENDENCY"),
    ("tasks_per_core", "SLURM_NTASKS_PER_CORE"),
    ("tasks_per_node", "SLURM_NTASKS_PER_NODE"),
    ("tasks_per_socket", "SLURM_NTASKS_PER_SOCKET"),
    ("ntasks_per_tres", "SLURM_NTASKS_PER_GPU"),
    ("threads_per_core", "SLURM_THREADS_PER_CORE"),
    ("cpus_per_task", "SLURM_CPUS_PER_TASK"),
    ("tres_bind", "SLURM_TRES_BIND"),
    ("tres_per_task", "SLURM_TRES_PER_TASK"),
    ("segment_size", "SLURM_JOB_SEGMENT_SIZE"),
)
"""Fields of a request that the job's environment tells as they are."""

GPU_VARIABLES: tuple[tuple[str, str], ...] = (
    ("tres_per_job", "SLURM_GPUS"),
    ("tres_per_socket", "SLURM_GPUS_PER_SOCKET"),
    ("cpus_per_tres", "SLURM_CPUS_PER_GPU"),
    ("memory_per_tres", "SLURM_MEM_PER_GPU"),
)
"""Fields that hold GPUs in Slurm's words, which the environment tells without ``gres/gpu:``."""


ARBITRARY_NODES = "SLURM_ARBITRARY_NODELIST"
"""The node of each task in turn, where the tasks are dealt out so."""


def gpus_said(text: str | None) -> str | None:
    """A field that holds GPUs in Slurm's words, without ``gres/gpu:``."""
    return text.replace("gres/gpu:", "") if text else text


def frequency_variable(frequency: str | None) -> str | None:
    """What SLURM_CPU_FREQ_REQ says: the words of --cpu-freq with a capital each."""
    return re.sub(r"[a-z]+", lambda word: word[0].capitalize(), frequency.lower()) if frequency else frequency


def option_variables(request: JobRequest, options: Options) -> dict[str, str]:
    """The SLURM_ variables by which a job's script, and the sruns in it, learn what the job was asked."""
    found = {variable: str(value) for name, variable in OPTION_VARIABLES if (value := getattr(request, name)) is not None}
    if request.distribution == "arbitrary" and options.get("required_nodes"):
        found[ARBITRARY_NODES] = fold(expand(options.values["required_nodes"]))
    if not {"ntasks-per-node", "tasks-per-node"} & options.said.keys():
        found.pop("SLURM_NTASKS_PER_NODE", None)
    if request.open_mode:
        found["SLURM_OPEN_MODE"] = "a" if request.open_mode.startswith("a") else "t"
    for name, variable in GPU_VARIABLES:
        if value := gpus_said(getattr(request, name)):
            found[variable] = value
    if "gpus-per-node" in options.said and request.tres_per_node:
        found["SLURM_GPUS_PER_NODE"] = request.tres_per_node.replace("gres/gpu:", "")
    tasks = request.tasks
    if tasks is None and request.tasks_per_node:
        tasks = request.tasks_per_node * (request.minimum_nodes or 1)
    if tasks is not None:
        found["SLURM_NTASKS"] = found["SLURM_NPROCS"] = str(tasks)
    if request.overcommit:
        found["SLURM_OVERCOMMIT"] = "1"
    if request.profile and request.profile != "none":
        found["SLURM_PROFILE"] = ",".join(word.capitalize() for word in request.profile.split(","))
    if request.memory_binding:
        found["SLURM_MEM_BIND_VERBOSE"] = "verbose" if "verbose" in request.memory_binding else "quiet"
    if request.export is not None and request.export.upper() != "ALL" and request.export_file is None:
        found["SLURM_EXPORT_ENV"] = request.export
    if wants_login(request):
        found["SLURM_GET_USER_ENV"] = "1"
    return found


def propagated_limits(asked: str | None, site: Site) -> tuple[str, ...]:
    """Names of the resource limits that a job takes over from its submitter: by --propagate, else as slurm.conf says
    (PropagateResourceLimits and PropagateResourceLimitsExcept)."""
    if asked is not None:
        return _limit_names(asked)
    excepted = site.parameters.get("PropagateResourceLimitsExcept", "").strip("()").replace("null", "")
    if excepted:
        return tuple(name for name in LIMITS if name not in _limit_names(excepted))
    return _limit_names(site.parameters.get("PropagateResourceLimits") or "ALL")


def _limit_names(text: str) -> tuple[str, ...]:
    words = {word.strip().upper().removeprefix("RLIMIT_") for word in text.split(",")}
    return tuple(name for name in LIMITS if "ALL" in words or name in words)


def propagated(limits: str, asked: str | None, site: Site) -> str:
    """Those of a caller's limits (``NOFILE=1024,CPU=unlimited``) that its job takes over."""
    found = dict(item.partition("=")[::2] for item in limits.split(","))
    wanted = ((name, found.get(name, "")) for name in propagated_limits(asked, site))
    return ",".join(
        f"{name}={value}" for name, value in wanted if value == "unlimited" or (value.isascii() and value.isdigit())
    )
