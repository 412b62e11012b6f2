"""The options of sbatch, srun and salloc: one table, one row an option (sbatch(1), srun(1), salloc(1)).

A row says how the option is written, what its text means, which fields it sets and which environment variables stand for
it. Fields are those of ``JobRequest``, or one of SETTINGS, which tell a command what to do and are no part of the job.
``status`` and ``note`` say what slurmk does with it; the compatibility page in docs/ is made from this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from signal import SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2
from types import MappingProxyType

from grammar.arguments import Argument, Option, Status
from grammar.bindings import BindingError, check_cpu_binding, check_gpu_binding, check_memory_binding
from grammar.containers import parse_enroot_image
from grammar.errors import GrammarError
from grammar.frequencies import FrequencyError, check_cpu_frequency, check_sample_intervals, is_gpu_frequency
from grammar.hostlist import HostlistError, expand
from grammar.mail import parse_mail_type
from grammar.numbers import leading_number, whole_number
from grammar.signals import NAMES, parse_signal, parse_warning_signal
from grammar.sizes import parse_memory
from grammar.times import INFINITE, parse_duration, parse_duration_seconds, parse_time
from grammar.tres import prefix_gpus, prefix_gres

COMMANDS = ("sbatch", "srun", "salloc")

SETTINGS = frozenset(
    """
    wait parsable test_only quiet verbose wrap ignore_pbs user group nodefile help usage version autocomplete
    gpus_per_task label unbuffered kill_on_bad_exit relative exact overlap multi_prog job_id step_wait pty
    disable_status quit_on_interrupt preserve_environment het_group mpi prolog epilog task_prolog task_epilog
    immediate no_allocate no_gres whole interactive kill_command no_shell bell asynchronous debugger_test ignored ignore_signals
    bcast bcast_exclude compress send_libraries slurmd_debug external_launcher x11
    """.split()  # noqa: SIM905
)
"""Fields that are not of JobRequest."""

HELP, USAGE, VERSION, AUTOCOMPLETE = "help", "usage", "version", "autocomplete"


class OptionError(GrammarError):
    """An option that cannot be taken: the lines that Slurm prints (each as it stands on standard error) and the exit code,
    for which SLURM_EXIT_ERROR may stand if ``settable``; ``output`` is for standard output, where an option's value asks for
    help."""

    def __init__(self, *lines: str, code: int = 255, output: str = "", settable: bool = False) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.code = code
        self.settable = settable
        self.output = output


@dataclass(frozen=True, slots=True)
class Reading:
    """What the meaning of a value may depend on: the command, the name of the option, and Unix seconds now."""

    command: str
    option: str
    now: float

    def error(self, text: str, code: int = 255) -> OptionError:
        return OptionError(f"{self.command}: error: {text}", code=code)

    def fatal(self, text: str) -> OptionError:
        return OptionError(f"{self.command}: fatal: {text}", code=1)

    def invalid(self, first: str = "") -> OptionError:
        lines = [first] if first else []
        return OptionError(*lines, f"{self.command}: error: Invalid --{self.option} specification")


Value = Callable[[str, Reading], object]
"""From an option's text to its field's value, or to a tuple of values when the row sets several fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionOption(Option):
    """One row. ``value`` is None for an option without an argument, which sets its fields to ``alone``; an optional argument
    that was left out does the same. ``environment`` are the variables that stand for it, by command."""

    commands: tuple[str, ...] = COMMANDS
    fields: tuple[str, ...] = ()
    value: Value | None = None
    alone: object = True
    environment: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    old: bool = False  # of older releases only

    def warning(self, text: str | None) -> str | None:
        """What to tell somebody who writes an old form of an option."""
        if self.old:
            return f"--{self.name} is of older releases: {self.note}"
        if self.took_value and text is not None:
            return f"--{self.name} takes no value any more, {text!r} is passed over"
        return None

    def read(self, text: str | None, reading: Reading) -> dict[str, object]:
        """The fields that the option sets. Raises OptionError."""
        if not self.fields:
            return {}
        omitted = text is None or (not text and self.argument is Argument.OPTIONAL)
        if self.value is None or (omitted and self.status is not Status.REFUSED):
            found = self.alone
        else:
            try:
                found = self.value(text or "", reading)
            except OptionError:
                raise
            except GrammarError:
                raise reading.invalid() from None
        if len(self.fields) == 1:
            return {self.fields[0]: found}
        assert isinstance(found, tuple)
        return dict(zip(self.fields, found, strict=True))


# ------------------------------------------------------------------------------------------------ values


def _text(text: str, _: Reading) -> str:
    return text


LARGEST = 0x7FFFFFFF


def _whole(text: str, reading: Reading, *, least: int = 1, called: str = "") -> int:
    """A number within bounds. An empty text is 0 where that is allowed."""
    name = called or f"--{reading.option}"
    number = whole_number(text)
    if number is None or number < least:
        raise reading.error(f'Invalid numeric value "{text}" for {name}.', 1)
    if number >= LARGEST:
        raise reading.error(f"Numeric argument ({number}) too large for {name}.", 1)
    return number


def _number(least: int = 1, called: str = "") -> Value:
    def read(text: str, reading: Reading) -> int:
        return _whole(text, reading, least=least, called=called)

    return read


def _minutes(text: str, _: Reading) -> int:
    return parse_duration(text) or INFINITE


def _plain_minutes(text: str, _: Reading) -> int:
    return parse_duration(text)


def _delay_boot(text: str, _: Reading) -> int:
    seconds = parse_duration_seconds(text)
    return INFINITE if seconds is None else seconds


def _moment(text: str, reading: Reading) -> int:
    try:
        return parse_time(text, reading.now)
    except GrammarError as error:
        raise reading.invalid(str(error) if error.position is not None else "") from None


def _memory(text: str, _: Reading) -> int:
    return parse_memory(text)


_NODE_COUNT = re.compile(r"[ \t]*\+?(\d{1,10})([kKmM]?)[ \t]*\Z", re.ASCII)
_NODE_LIST = re.compile(r"\d{1,7}(?:-\d{1,7}(?::\d{1,7})?)?(?:,\d{1,7}(?:-\d{1,7}(?::\d{1,7})?)?)+\Z|\d{1,7}-\d{1,7}:\d{1,7}\Z")

_NODE_SIZES = re.compile(r"(\d+)(?:-(\d+))?(?::(\d+))?", re.ASCII)


def _node_count(text: str, reading: Reading) -> int:
    match = _NODE_COUNT.match(text)
    number = int(match[1]) * {"": 1, "k": 1024, "m": 1048576}[match[2].lower()] if match else LARGEST + 1
    if number > LARGEST:
        raise reading.error(f'"{text}" is not a valid node count')
    return number


def _nodes(text: str, reading: Reading) -> tuple[str, int, int]:
    """(text, fewest, most) of ``4``, ``2-4``, ``-4``, and of a list of sizes."""
    if _NODE_LIST.match(text):
        return _node_sizes(text, reading)
    counts, colon, step = text.partition(",")[0].partition(":")
    if colon and step and counts and not _NODE_COUNT.match(step):
        raise reading.error(f'"{step}" is not a valid node count')
    if colon and step and not _NODE_COUNT.match(counts):
        raise reading.error(f'"{counts or text}" is not a valid node count')
    first, dash, last = text.partition(",")[0].partition("-")
    fewest = _node_count(first, reading) if first or not dash else 1
    if dash and not last:
        raise reading.error(f"Maximum node count -1 is less than minimum node count {fewest}")
    most = (_node_count(last, reading) if dash else fewest) or fewest  # 0: no more said
    if most < fewest:
        raise reading.error(f"Maximum node count {most} is less than minimum node count {fewest}")
    return text, fewest, most


def _node_sizes(text: str, reading: Reading) -> tuple[str, int, int]:
    sizes: list[int] = []
    for match in _NODE_SIZES.finditer(text):
        first, last, step = (int(part) if part else None for part in match.groups())
        assert first is not None
        if last is not None and (last < first or step == 0):
            raise reading.error(f"Maximum node count {last} is less than minimum node count {first}")
        sizes += [first, range(first, (last or first) + 1, step or 1)[-1]]
    return text, min(sizes), max(sizes)


def _nice(text: str, reading: Reading) -> int:
    match = re.match(r"[ \t]*([+-]?\d{1,18})", text)
    number = int(match[1]) if match else 0
    if abs(number) > 2147483645:
        raise reading.error("Invalid --nice value, out of range (+/- 2147483645)")
    return number


def _priority(text: str, reading: Reading) -> int:
    if text.upper() == "TOP":
        return 0xFFFFFFFD
    match = re.match(r"[ \t]*(-?\d{1,18})", text)
    number = int(match[1]) if match else 0
    if number < 0:
        raise reading.error("Priority must be >= 0")
    if number >= 0xFFFFFFFE:
        raise reading.error("Priority must be < 4294967294")
    return number


def _cores(text: str, reading: Reading) -> tuple[int | None, int | None, int | None]:
    """-B: ``sockets[:cores[:threads]]``; ``*`` is any, of a range the lower end counts, K is 1024."""
    found: list[int | None] = []
    for name, word in zip(("first", "second", "third"), text.split(":"), strict=False):
        found.append(None if word in ("*", "") else _lower_end(word, reading, f"{name} arg of -B"))
    found += [None] * (3 - len(found))
    return found[0], found[1], found[2]


def _lower_end(text: str, reading: Reading, called: str) -> int:
    number, rest = leading_number(text)
    multiple, rest = (1024, rest[1:]) if rest[:1] in ("k", "K") else (1, rest)
    if number < 0 or rest == text or (rest and not re.match(r"-\d", rest)):
        raise reading.error(f'Invalid numeric value "{text}" for {called}.', 1)
    return _whole(str(number * multiple), reading, least=0, called=called)


SWITCH_WAIT = 300
"""Seconds that a job waits for its count of switches when it does not say (max_switch_wait)."""


def _switches(text: str, reading: Reading) -> tuple[int, int | None]:
    """(switches, seconds): what is no time after the ``@`` is passed over."""
    count, _, wait = text.partition("@")
    switches = _whole(count, reading)
    try:
        seconds = parse_duration_seconds(wait) if wait else None
    except GrammarError:
        seconds = None
    return switches, SWITCH_WAIT if seconds is None else seconds


def _one_of(**words: object) -> Value:
    def read(text: str, reading: Reading) -> object:
        if text.lower() not in words:
            raise reading.invalid()
        return words[text.lower()]

    return read


OF_ALLOCATION = "allocation"
"""The word of --exclusive that says nothing of the step which srun makes with its allocation."""

EXCLUSIVE_WORDS = {"user": "user", "mcs": "mcs", "topo": "topo", "exclusive": "none", "oversubscribe": "oversubscribe"} | {
    OF_ALLOCATION: "none"
}
_LEVELS = frozenset(("*", "block", "cyclic", "fcyclic", ""))
_PACKING = frozenset(("pack", "nopack"))


def _distribution(text: str, reading: Reading) -> tuple[str, int | None]:
    """(distribution, plane size) of ``block:cyclic``, ``plane=4``, ``arbitrary``, each with ``,pack`` or ``,nopack``."""
    low = text.lower()
    if low.startswith("plane"):
        size = low.removeprefix("plane=")
        if not (size.isascii() and size.isdigit() and int(size[:9]) > 0):
            raise reading.invalid(f"{reading.command}: error: Invalid plane size or size not specified")
        return "plane", int(size[:9])
    words, *flags = low.split(",")
    packed = low in _PACKING or (len(flags) < 2 and _PACKING.issuperset(flags))
    if not packed or not (low in _PACKING or words == "arbitrary" or _is_level_list(words)):
        raise reading.invalid()
    return low, None


def _is_level_list(text: str) -> bool:
    """``nodes[:sockets[:cores]]``; nothing at all is none."""
    first, *rest = text.split(":")
    return bool(text) and first in _LEVELS - {"fcyclic"} and len(rest) < 3 and _LEVELS.issuperset(rest)


def _words_help(option: str, words: Iterable[str]) -> str:
    return "".join([f"--{option} takes:\n", *(f"    {word}\n" for word in words)])


def _hint(text: str, reading: Reading) -> tuple[str, int | None, int | None]:
    """(hint, cores per socket, threads per core)."""
    known: dict[str, tuple[int | None, int | None]] = {
        "compute_bound": (None, 1),
        "memory_bound": (1, 1),
        "nomultithread": (None, 1),
        "multithread": (None, None),
    }
    cores: int | None = None
    threads: int | None = None
    for word in text.split(","):
        if word.lower() == "help":
            raise OptionError(code=1, output=_words_help(reading.option, [*known, "help"]))
        if word.lower() not in known:
            raise reading.error(f'unrecognized --hint argument "{word}", see --hint=help', 1)
        cores, threads = (new or old for new, old in zip(known[word.lower()], (cores, threads), strict=True))
    return text, cores, threads


def _signal(text: str, _: Reading) -> tuple[int, int, str | None]:
    warning = parse_warning_signal(text)
    return warning.number, warning.delay, warning.flags or None


def _open_mode(text: str, reading: Reading) -> str:
    """Its first letter counts."""
    mode = {"a": "a", "t": "w"}.get(text[:1].lower())
    if mode is None:
        raise reading.invalid()
    return mode


def _gres(text: str, _: Reading) -> tuple[str | None, bool]:
    """(TRES per node, whether none is wanted)."""
    if text.lower() == "none":
        return None, True
    return prefix_gres(text), False


def _gpus(text: str, _: Reading) -> str | None:
    return prefix_gpus(text.rstrip(",")) if text else None


def _cpus_per_gpu(text: str, reading: Reading) -> str:
    return f"gres/gpu:{_whole(text, reading)}"


def _memory_per_gpu(text: str, _: Reading) -> str:
    return f"gres/gpu:{parse_memory(text)}"


def _gpu_bind(text: str, reading: Reading) -> str:
    try:
        check_gpu_binding(text)
    except BindingError as error:
        raise _all_errors(reading, *error.lines, f"Invalid --gpu-bind argument: {text}") from None
    return f"gres/gpu:{text}"


def _gpu_frequency(text: str, reading: Reading) -> str:
    if not is_gpu_frequency(text):
        raise reading.error(f"Invalid --gpu-freq argument: gpu:{text}")
    return f"gpu:{text}"


def _cpu_frequency(text: str, reading: Reading) -> str:
    try:
        check_cpu_frequency(text)
    except FrequencyError as error:
        raise _all_errors(reading, *error.lines, "Invalid --cpu-freq argument") from None
    return text


def _all_errors(reading: Reading, *lines: str, code: int = 255) -> OptionError:
    return OptionError(*(f"{reading.command}: error: {line}" for line in lines), code=code)


_GRES_FLAGS = ("disable-binding", "enforce-binding", "multiple-tasks-per-sharing", "one-task-per-sharing", "allow-task-sharing")


def _gres_flags(text: str, reading: Reading) -> str:
    for word in text.split(",") if text else ():
        if word.strip().lower() not in _GRES_FLAGS:
            raise reading.error(f"Invalid --gres-flags specification: {word}")
    return text.lower()


_PROFILES = ("none", "all", "energy", "task", "lustre", "network")


def _profile(text: str, reading: Reading) -> str:
    """The words that name a profile; others are passed over as long as there is one."""
    known = [word for word in text.lower().split(",") if word in _PROFILES]
    if not known:
        raise reading.error(f"invalid --profile={text} option")
    return ",".join(known)


def _accounting_frequency(text: str, reading: Reading) -> str:
    try:
        check_sample_intervals(text)
    except FrequencyError as error:
        raise _all_errors(reading, *error.lines) from None
    return text


def _memory_binding(text: str, reading: Reading) -> str:
    if text.lower() == "help":
        words = ("quiet", "verbose", "none", "rank", "local", "prefer", "map_mem:NODE,...", "mask_mem:MASK,...", "help")
        raise OptionError(output=_words_help(reading.option, words))
    try:
        check_memory_binding(text)
    except BindingError as error:
        raise _all_errors(reading, *error.lines) from None
    return text


def _cpu_binding(text: str, reading: Reading) -> str:
    if text.lower() == "help":
        words = (
            "quiet",
            "verbose",
            "none",
            "rank",
            "sockets",
            "cores",
            "threads",
            "ldoms",
            "map_cpu:CPU,...",
            "mask_cpu:MASK,...",
        )
        raise OptionError(code=1, output=_words_help(reading.option, (*words, "help")))
    try:
        check_cpu_binding(text)
    except BindingError as error:
        lines = [f"{reading.command}: error: {line}" for line in error.lines]
        raise OptionError(*lines, f"{reading.command}: fatal: Failed to parse --cpu-bind= values.", code=1) from None
    return text


def _accelerators(text: str, reading: Reading) -> str:
    if not text or not set(text) <= set("gnv"):
        raise reading.invalid()
    return text


def _yes_or_no(text: str, reading: Reading) -> bool:
    if text.lower() not in ("yes", "no", "y", "n"):
        raise reading.invalid()
    return text.lower().startswith("y")


def _tree_width(text: str, reading: Reading) -> int:
    number = 0xFFFD if text.lower() == "off" else whole_number(text)
    if number is None or not 0 <= number <= 0xFFFD:
        raise reading.error(f"Invalid --treewidth value: {text}")
    return number


MPI_TYPES = re.compile(r"none|openmpi|pmi2|pmix(?:_v[1-5])?|cray_shasta|list")


def _mpi(text: str, reading: Reading) -> str:
    if not MPI_TYPES.fullmatch(text):
        lines = (f"MPI: Cannot create context for mpi/{text}", "MPI: Unable to load any plugin")
        raise _all_errors(reading, *lines, f"Invalid MPI type '{text}', --mpi=list for acceptable types", code=1)
    return text


def _het_group(text: str, reading: Reading) -> str:
    """Components of a het job by number. Raises OptionError."""
    try:
        numbers = expand(f"[{text}]")
    except HostlistError as error:
        found = [f"_parse_single_range: {error.detail}"] if error.detail else []
        raise _all_errors(reading, *found, f"Invalid --het-group value: {text}", code=1) from None
    if any(int(number) >= MOST_COMPONENTS for number in numbers):
        raise reading.error(f"Invalid --het-group value: {text}", 1)
    return text


MOST_COMPONENTS = 128
"""Components that a het job may have (MAX_HET_JOB_COMPS)."""


def _ignored_signals(text: str, reading: Reading) -> tuple[int, ...]:
    if not text:
        raise reading.error("--ignore-signals requires at least one signal")
    found = []
    for word in text.split(","):
        try:
            found.append(parse_signal(word))
        except GrammarError:
            raise reading.error(f"Invalid signal name or number: {word}") from None
        if found[-1] not in IGNORABLE:
            raise reading.error(f"Signal {NAMES.get(found[-1], word)} cannot be ignored", 1)
    return tuple(found)


IGNORABLE = frozenset((SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM))
"""Signals that srun may be told to ignore."""

SEVERITIES = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2")
"""How much a log says, each word by its number."""


def _severity(text: str, _: Reading) -> int:
    """A word or a number; what is neither is more than there is."""
    number = whole_number(text)
    if number is not None and 0 <= number < len(SEVERITIES):
        return number
    return SEVERITIES.index(text.lower()) if text.lower() in SEVERITIES else len(SEVERITIES)


def _x11(text: str, reading: Reading) -> str | None:
    """Other words than these are passed over."""
    if text.lower() not in ("", "all", "batch", "first", "last"):
        return None
    if reading.command != "srun":
        raise reading.error(f"--{reading.option}: X11 is not forwarded", 1)
    return text or "all"


def _descriptor(text: str, reading: Reading) -> int:
    """The number of an open file of srun's."""
    number = whole_number(text)
    if number is None or not 0 <= number <= LARGEST:
        raise reading.fatal(f"--{reading.option}={text} must be numeric file descriptor")
    return number


LIMITS = ["CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"]


def _propagate(text: str, reading: Reading) -> str:
    if text in ("ALL", "NONE"):
        return text
    for word in filter(None, text.replace(" ", ",").split(",")):
        if word.removeprefix("RLIMIT_") not in LIMITS:
            raise _all_errors(reading, f"Bad rlimit name: {word}", f"--propagate={text} is not valid.", code=1)
    return text


def _memory_update(text: str, reading: Reading) -> tuple[int, int]:
    margin, at, delay = text.partition("@")
    if not at:
        raise reading.error("--mem-update requires MARGIN@DELAY format")
    numbers = whole_number(margin), whole_number(delay)
    if None in numbers or not all(number is not None and 0 < number <= LARGEST for number in numbers):
        raise reading.invalid()
    return numbers[0] or 0, numbers[1] or 0


def _refusal(reason: str) -> Value:
    def read(_: str, reading: Reading) -> object:
        raise reading.error(f"--{reading.option}: {reason}", 1)

    return read


def _zero_or_one(text: str, reading: Reading) -> bool:
    number = _whole(text, reading, least=0)
    if number not in (0, 1):
        raise reading.invalid()
    return bool(number)


def _oom_kill_step(text: str, reading: Reading) -> int:
    if text not in ("0", "1"):
        raise reading.invalid()
    return int(text)


def _segment(text: str, reading: Reading) -> int:
    number = whole_number(text)
    if number is None or not 0 <= number < 0xFFFF:
        raise reading.invalid()
    return number


def _image(text: str, reading: Reading) -> str:
    try:
        return parse_enroot_image(text)
    except GrammarError as error:
        raise reading.error(f"--{reading.option}={text}: {error}", 1) from None


def _kill_on_bad_exit(text: str, reading: Reading) -> bool:
    return bool(_whole(text, reading, least=0))


def _kill_command(text: str, reading: Reading) -> int:
    """A signal's number; any number above 0 is taken, as by kill(2)'s callers."""
    if text.isascii() and text.isdigit():
        return _whole(text, reading) if text.strip("0") else parse_signal(text)
    return parse_signal(text)


# ------------------------------------------------------------------------------------------------- the table

_NONE, _REQUIRED, _OPTIONAL = Argument.NONE, Argument.REQUIRED, Argument.OPTIONAL
_ACCEPTED, _REFUSED = Status.ACCEPTED, Status.REFUSED
_BATCH, _RUN, _ALLOCATION = ("sbatch",), ("srun",), ("salloc",)
_NOT_YET = "recorded and shown; not acted on yet"
_SITE_VOLUMES = "which volumes jobs get is set by the site"


def _row(
    names: str,
    argument: Argument,
    fields: str = "",
    value: Value | None = None,
    *,
    variables: str = "",
    accepted: str = "",
    refused: str = "",
    note: str = "",
    status: Status = Status.HONOURED,
    commands: tuple[str, ...] = COMMANDS,
    alone: object = True,
    hidden: bool = False,
    took_value: bool = False,
) -> SubmissionOption:
    """``names`` are the long names and at last, with its dash, the short one. ``variables`` are whole names of environment
    variables; SBATCH_ ones are sbatch's, SALLOC_ ones salloc's, SRUN_ and SLURM_ ones srun's, and ``*_X`` is all three's."""
    words = names.split()
    return SubmissionOption(
        names=tuple(word for word in words if not word.startswith("-")),
        short=next((word[1:] for word in words if word.startswith("-")), ""),
        argument=argument,
        status=_REFUSED if refused else _ACCEPTED if accepted else status,
        note=refused or accepted or note,
        hidden=hidden,
        took_value=took_value,
        commands=commands,
        fields=tuple(fields.split()),
        value=_refusal(refused) if refused else value,
        alone=alone,
        environment=MappingProxyType({command: found for command in commands if (found := _variables(command, variables))}),
    )


_PREFIXES = {"sbatch": ("SBATCH_",), "srun": ("SLURM_", "SRUN_", "SLURMD_"), "salloc": ("SALLOC_",)}


def _variables(command: str, names: str) -> tuple[str, ...]:
    found: list[str] = []
    for name in names.split():
        if name.startswith("*_"):
            found.append(_PREFIXES[command][0] + name[2:])
        elif name.startswith("="):
            found.append(name[1:])
        elif name.startswith(_PREFIXES[command]):
            found.append(name)
    return tuple(found)


PYXIS: tuple[SubmissionOption, ...] = tuple(
    replace(row, extension=True)
    for row in (
        _row("container-image", _REQUIRED, "container", _image, note="as --container, written as pyxis has it"),
        _row("container-mounts", _REQUIRED, "ignored", hidden=True, refused="which volumes jobs get is set by the site"),
        _row("container-workdir", _REQUIRED, "ignored", hidden=True, refused="say it with --chdir"),
        _row("container-save", _REQUIRED, "ignored", hidden=True, refused="containers are not saved"),
        _row("container-entrypoint", _NONE, "ignored", hidden=True, refused="an image's entry point is not run"),
        _row("container-remap-root", _NONE, "ignored", hidden=True, refused="jobs run as their user"),
        _row("container-name", _REQUIRED, "ignored", _text, hidden=True, accepted="all steps of a job share its containers"),
        _row("container-env", _REQUIRED, "ignored", _text, hidden=True, accepted="the job's variables win over the image's"),
        _row("container-mount-home", _NONE, "ignored", hidden=True, accepted=_SITE_VOLUMES),
        _row("no-container-mount-home", _NONE, "ignored", hidden=True, accepted=_SITE_VOLUMES),
        _row("container-writable", _NONE, "ignored", hidden=True, accepted="containers are writable"),
        _row("container-readonly", _NONE, "ignored", hidden=True, accepted="containers are writable"),
        _row("no-container-entrypoint", _NONE, "ignored", hidden=True, accepted="an image's entry point is not run"),
        _row("no-container-remap-root", _NONE, "ignored", hidden=True, accepted="jobs run as their user"),
    )
)
"""Options of pyxis, the plugin by which many sites run images; Slurm itself does not have them."""

OLD: tuple[SubmissionOption, ...] = tuple(
    replace(row, extension=True, hidden=True, old=True)
    for row in (
        _row("workdir", _REQUIRED, "current_working_directory", _text, note="what --chdir was called before 17.11"),
        _row("share", _NONE, "shared", alone="oversubscribe", note="what --oversubscribe was called before 16.05"),
        _row("mem_bind", _REQUIRED, "memory_binding", _memory_binding, accepted="what --mem-bind was called before 18.08"),
        _row("power", _REQUIRED, "ignored", _text, accepted="power management went with 23.11"),
        _row("checkpoint", _REQUIRED, "ignored", _text, accepted="checkpoints went with 20.02"),
        _row("checkpoint-dir", _REQUIRED, "ignored", _text, accepted="checkpoints went with 20.02"),
        _row("restart-dir", _REQUIRED, "ignored", _text, commands=_RUN, accepted="checkpoints went with 20.02"),
        _row("get-user-env", _OPTIONAL, "ignored", _text, commands=_ALLOCATION, accepted="the calling environment is used"),
    )
)
"""Options that 26.05 refuses and that scripts written for older releases have. Each is taken, with a warning."""


SUBMISSION: tuple[SubmissionOption, ...] = (
    # --- whose and what
    _row("account -A", _REQUIRED, "account", _text, variables="*_ACCOUNT"),
    _row("comment", _REQUIRED, "comment", _text),
    _row(
        "extra", _REQUIRED, "extra", _text, accepted="recorded and shown; SchedulerParameters=extra_constraints is not acted on"
    ),
    _row("job-name -J", _REQUIRED, "name", _text, variables="SBATCH_JOB_NAME SLURM_JOB_NAME"),
    _row("licenses -L", _REQUIRED, "licenses", _text),
    _row("mail-type", _REQUIRED, "mail_type", lambda text, _: parse_mail_type(text)),
    _row("mail-user", _REQUIRED, "mail_user", _text),
    _row("mcs-label", _REQUIRED, "mcs_label", _text, accepted="recorded; there is no MCS plugin"),
    _row("partition -p", _REQUIRED, "partition", lambda text, _: text or None, variables="*_PARTITION"),
    _row("qos -q", _REQUIRED, "qos", _text, variables="*_QOS"),
    _row("reservation", _REQUIRED, "reservation", _text, variables="*_RESERVATION"),
    _row("wckey", _REQUIRED, "wckey", _text, variables="*_WCKEY"),
    _row("clusters cluster -M", _REQUIRED, "clusters", _text, variables="SBATCH_CLUSTERS SALLOC_CLUSTERS =SLURM_CLUSTERS"),
    _row("cluster-constraint", _REQUIRED, "cluster_constraint", _text, accepted="there is one cluster"),
    _row("uid", _REQUIRED, "user", _text, commands=_BATCH),
    _row("gid", _REQUIRED, "group", _text, commands=_BATCH),
    _row("context", _REQUIRED, "ignored", _text, hidden=True, accepted="SELinux contexts are not set"),
    # --- when
    _row("array -a", _REQUIRED, "array", lambda text, _: text or None, commands=_BATCH, variables="SBATCH_ARRAY_INX"),
    _row("begin -b", _REQUIRED, "begin_time", _moment),
    _row("deadline", _REQUIRED, "deadline", _moment),
    _row("delay-boot", _REQUIRED, "delay_boot", _delay_boot, variables="*_DELAY_BOOT", accepted="nodes are not rebooted"),
    _row("dependency -d", _REQUIRED, "dependency", lambda text, _: text or None, variables="SLURM_DEPENDENCY"),
    _row("hold -H", _NONE, "hold"),
    _row("kill-on-invalid-dep", _REQUIRED, "kill_on_invalid_dependency", _one_of(yes=True, no=False), commands=_BATCH),
    _row("nice", _OPTIONAL, "nice", _nice, alone=100),
    _row("priority", _REQUIRED, "priority", _priority),
    _row("reboot", _NONE, "reboot", accepted="nodes are not rebooted; shown as asked"),
    _row(
        "requeue",
        _OPTIONAL,
        "requeue expedited_requeue",
        _one_of(expedite=(True, True)),
        alone=(True, False),
        commands=_BATCH,
        variables="SBATCH_REQUEUE",
    ),
    _row(
        "no-requeue",
        _NONE,
        "requeue expedited_requeue",
        commands=_BATCH,
        alone=(False, False),
        variables="SBATCH_NO_REQUEUE",
    ),
    _row("signal", _REQUIRED, "kill_warning_signal kill_warning_delay kill_warning_flags", _signal, variables="*_SIGNAL"),
    _row("time -t", _REQUIRED, "time_limit", _minutes, variables="*_TIMELIMIT"),
    _row("time-min", _REQUIRED, "time_minimum", _plain_minutes),
    _row(
        "immediate -I",
        _OPTIONAL,
        "immediate",
        _number(0, "immediate"),
        commands=("srun", "salloc"),
        alone=1,
        variables="*_IMMEDIATE",
    ),
    # --- how much and where
    _row("constraint -C", _REQUIRED, "constraints", _text, variables="*_CONSTRAINT"),
    _row("prefer", _REQUIRED, "prefer", _text),
    _row(
        "batch",
        _REQUIRED,
        "batch_features",
        _text,
        commands=_BATCH,
        variables="SBATCH_BATCH",
        note="of the job's nodes one with these features becomes the first, which runs the script",
    ),
    _row("contiguous", _NONE, "contiguous"),
    _row(
        "core-spec -S",
        _REQUIRED,
        "core_specification",
        _number(0),
        variables="*_CORE_SPEC",
        accepted="not allowed by configuration",
    ),
    _row(
        "thread-spec",
        _REQUIRED,
        "thread_specification",
        _number(),
        variables="*_THREAD_SPEC",
        accepted="not allowed by configuration",
    ),
    _row("cores-per-socket", _REQUIRED, "cores_per_socket", _number(), variables="SLURM_NCORES_PER_SOCKET"),
    _row("sockets-per-node", _REQUIRED, "sockets_per_node", _number(), variables="SLURM_NSOCKETS_PER_NODE"),
    _row("threads-per-core", _REQUIRED, "threads_per_core", _number(), variables="*_THREADS_PER_CORE"),
    _row("extra-node-info -B", _REQUIRED, "sockets_per_node cores_per_socket threads_per_core", _cores),
    _row("cpus-per-task -c", _REQUIRED, "cpus_per_task", _number(), variables="SLURM_CPUS_PER_TASK"),
    _row("cpus-per-gpu", _REQUIRED, "cpus_per_tres", _cpus_per_gpu, variables="*_CPUS_PER_GPU"),
    _row("exclude -x", _REQUIRED, "excluded_nodes", _text),
    _row("exclusive", _OPTIONAL, "shared", _one_of(**EXCLUSIVE_WORDS), alone="none", variables="*_EXCLUSIVE"),
    _row("gpus -G", _REQUIRED, "tres_per_job", _gpus, variables="*_GPUS"),
    _row("gpus-per-node", _REQUIRED, "tres_per_node", _gpus, variables="*_GPUS_PER_NODE"),
    _row("gpus-per-socket", _REQUIRED, "tres_per_socket", _gpus),
    _row("gpus-per-task", _REQUIRED, "gpus_per_task", _text, variables="*_GPUS_PER_TASK"),
    _row("gres", _REQUIRED, "tres_per_node no_gres", _gres, variables="*_GRES SLURM_STEP_GRES", alone=(None, False)),
    _row("mem", _REQUIRED, "memory_per_node", _memory, variables="*_MEM_PER_NODE"),
    _row("mem-per-cpu", _REQUIRED, "memory_per_cpu", _memory, variables="*_MEM_PER_CPU"),
    _row("mem-per-gpu", _REQUIRED, "memory_per_tres", _memory_per_gpu, variables="*_MEM_PER_GPU"),
    _row("mincpus", _REQUIRED, "minimum_cpus_per_node", _number()),
    _row("nodefile -F", _REQUIRED, "nodefile", _text),
    _row("nodelist -w", _REQUIRED, "required_nodes", _text),
    _row("nodes -N", _REQUIRED, "nodes minimum_nodes maximum_nodes", _nodes, variables="SLURM_JOB_NUM_NODES"),
    _row("ntasks -n", _REQUIRED, "tasks", _number(), variables="SLURM_NPROCS SLURM_NTASKS"),
    _row("ntasks-per-core", _REQUIRED, "tasks_per_core", _number(), variables="SLURM_NTASKS_PER_CORE"),
    _row("ntasks-per-gpu", _REQUIRED, "ntasks_per_tres", _number(), variables="SLURM_NTASKS_PER_GPU"),
    _row("ntasks-per-tres", _REQUIRED, "ntasks_per_tres", _number(), hidden=True),
    _row("ntasks-per-node", _REQUIRED, "tasks_per_node", _number(), variables="SLURM_NTASKS_PER_NODE"),
    _row("tasks-per-node", _REQUIRED, "tasks_per_node", _number(called="--ntasks-per-node"), hidden=True),
    _row("ntasks-per-socket", _REQUIRED, "tasks_per_socket", _number(), variables="SLURM_NTASKS_PER_SOCKET"),
    _row("overcommit -O", _NONE, "overcommit", variables="*_OVERCOMMIT"),
    _row("oversubscribe -s", _NONE, "shared", alone="oversubscribe"),
    _row(
        "segment",
        _REQUIRED,
        "segment_size",
        _segment,
        variables="SBATCH_SEGMENT_SIZE SRUN_SEGMENT_SIZE SALLOC_SEGMENT_SIZE",
    ),
    _row("consolidate-segments", _NONE, "consolidate_segments", accepted="segments share as few blocks as possible anyway"),
    _row("spread-segments", _NONE, "spread_segments"),
    _row("spread-job", _NONE, "spread_job", variables="*_SPREAD_JOB"),
    _row("switches", _REQUIRED, "required_switches wait_for_switch", _switches, variables="*_REQ_SWITCH"),
    _row("tmp", _REQUIRED, "temporary_disk_per_node", _memory),
    _row("tres-per-task", _REQUIRED, "tres_per_task", _text, variables="*_TRES_PER_TASK"),
    _row("use-min-nodes", _NONE, "use_min_nodes", variables="*_USE_MIN_NODES"),
    _row(
        "resources",
        _REQUIRED,
        "resources",
        _text,
        note="there is no resources.yaml, and so no resource that may be asked for",
        status=_REFUSED,
    ),
    # --- how it runs
    _row(
        "acctg-freq",
        _REQUIRED,
        "account_gather_frequency",
        _accounting_frequency,
        variables="*_ACCTG_FREQ",
        note="tasks are sampled as often as that; nothing else is sampled",
    ),
    _row(
        "bb",
        _REQUIRED,
        "burst_buffer",
        _text,
        variables="SLURM_BURST_BUFFER SALLOC_BURST_BUFFER",
        accepted="there are no burst buffers; shown as asked",
    ),
    _row("bbf", _REQUIRED, "burst_buffer_file", _text, note="put into the script; there are no burst buffers"),
    _row("chdir -D", _REQUIRED, "current_working_directory", _text, variables="SLURM_REMOTE_CWD SLURM_WORKING_DIR"),
    _row(
        "container",
        _REQUIRED,
        "container",
        _text,
        variables="SBATCH_CONTAINER SRUN_CONTAINER SALLOC_CONTAINER",
        note="on Kubernetes, the image that the job's pods run; the embedded cluster has no containers",
    ),
    _row(
        "container-id",
        _REQUIRED,
        "container_id",
        _text,
        variables="SBATCH_CONTAINER_ID SRUN_CONTAINER_ID SALLOC_CONTAINER_ID",
        accepted=_NOT_YET,
    ),
    _row(
        "container-type",
        _REQUIRED,
        "container_type",
        _text,
        variables="SBATCH_CONTAINER_TYPE SRUN_CONTAINER_TYPE SALLOC_CONTAINER_TYPE",
        accepted=_NOT_YET,
    ),
    _row(
        "cpu-freq",
        _REQUIRED,
        "cpu_frequency",
        _cpu_frequency,
        variables="SLURM_CPU_FREQ_REQ SALLOC_CPU_FREQ_REQ",
        accepted="frequencies are not set",
    ),
    _row(
        "distribution -m",
        _REQUIRED,
        "distribution distribution_plane_size",
        _distribution,
        variables="SBATCH_DISTRIBUTION SLURM_DISTRIBUTION",
    ),
    _row(
        "error -e",
        _REQUIRED,
        "standard_error",
        _text,
        commands=("sbatch", "srun"),
        variables="SBATCH_ERROR SLURM_STDERRMODE SRUN_ERROR",
    ),
    _row("export", _REQUIRED, "export", _text, commands=_BATCH, variables="SBATCH_EXPORT"),
    _row("export", _REQUIRED, "export", _text, commands=_RUN, variables="SLURM_EXPORT_ENV SRUN_EXPORT_ENV"),
    _row("export-file", _REQUIRED, "export_file", _text, commands=_BATCH),
    _row("external", _NONE, "external", commands=_BATCH, hidden=True, refused="external jobs are not run"),
    _row(
        "get-user-env",
        _NONE,
        "get_user_env",
        commands=_BATCH,
        variables="SBATCH_GET_USER_ENV",
        alone="1",
        took_value=True,
    ),
    _row("gpu-bind", _REQUIRED, "tres_bind", _gpu_bind, variables="*_GPU_BIND"),
    _row("gpu-freq", _REQUIRED, "tres_freq", _gpu_frequency, variables="*_GPU_FREQ", accepted="frequencies are not set"),
    _row(
        "gres-flags",
        _REQUIRED,
        "gres_flags",
        _gres_flags,
        variables="*_GRES_FLAGS",
        accepted="GRES are given without regard to sockets, so there is nothing to enforce or to disable; shown as asked",
    ),
    _row("hint", _REQUIRED, "hint cores_per_socket threads_per_core", _hint, variables="SBATCH_HINT SALLOC_HINT =SLURM_HINT"),
    _row(
        "input -i",
        _REQUIRED,
        "standard_input",
        _text,
        commands=("sbatch", "srun"),
        variables="SBATCH_INPUT SLURM_STDINMODE SRUN_INPUT",
    ),
    _row(
        "mem-bind",
        _REQUIRED,
        "memory_binding",
        _memory_binding,
        variables="*_MEM_BIND",
        note="acts on srun's tasks where TaskPlugin has task/affinity and the kernel allows set_mempolicy(2)",
    ),
    _row(
        "mem-update",
        _REQUIRED,
        "memory_update_margin memory_update_delay",
        _memory_update,
        accepted="a job keeps the memory that it was given",
    ),
    _row("network", _REQUIRED, "network", _text, variables="*_NETWORK", accepted="there is no switch plugin; shown as asked"),
    _row("no-kill -k", _OPTIONAL, "kill_on_node_fail", _one_of(off=True), alone=False, variables="*_NO_KILL"),
    _row(
        "oom-kill-step",
        _OPTIONAL,
        "oom_kill_step",
        _oom_kill_step,
        alone=1,
        variables="SLURM_OOMKILLSTEP",
        note="the tasks of the node where memory ran out are killed together",
    ),
    _row(
        "open-mode",
        _REQUIRED,
        "open_mode",
        _open_mode,
        commands=("sbatch", "srun"),
        variables="SBATCH_OPEN_MODE SLURM_OPEN_MODE",
    ),
    _row(
        "output -o",
        _REQUIRED,
        "standard_output",
        _text,
        commands=("sbatch", "srun"),
        variables="SBATCH_OUTPUT SLURM_STDOUTMODE SRUN_OUTPUT",
    ),
    _row(
        "profile",
        _REQUIRED,
        "profile",
        _profile,
        variables="*_PROFILE",
        accepted="no profiles are gathered",
    ),
    _row(
        "propagate",
        _OPTIONAL,
        "propagate",
        _propagate,
        commands=("sbatch", "srun"),
        alone="ALL",
    ),
    _row(
        "resv-ports",
        _OPTIONAL,
        "reserve_ports",
        _number(0, "--resv-port"),
        variables="SLURM_RESV_PORTS",
        alone=1,
        note="of those that MpiParams names; two jobs on a node may rarely get the same",
    ),
    _row("stepmgr", _NONE, "step_manager", note="for --async and swait, where PrologFlags has Contain"),
    _row("tres-bind", _REQUIRED, "tres_bind", _text, variables="*_TRES_BIND"),
    _row(
        "wait-all-nodes",
        _REQUIRED,
        "wait_all_nodes",
        _zero_or_one,
        commands=("sbatch", "salloc"),
        variables="SBATCH_WAIT_ALL_NODES SALLOC_WAIT_ALL_NODES",
        accepted="a job starts when all of its nodes are there",
    ),
    # --- sbatch's own
    _row("ignore-pbs", _NONE, "ignore_pbs", commands=_BATCH, variables="SBATCH_IGNORE_PBS"),
    _row("parsable", _NONE, "parsable", commands=("sbatch", "srun")),
    _row("test-only", _NONE, "test_only", commands=("sbatch", "srun")),
    _row("wait -W", _NONE, "wait", commands=_BATCH, variables="SBATCH_WAIT"),
    _row("wrap", _REQUIRED, "wrap", _text, commands=_BATCH),
    # --- srun's own
    _row(
        "accel-bind",
        _REQUIRED,
        "ignored",
        _accelerators,
        commands=_RUN,
        hidden=True,
        accepted="which devices are near a task's CPUs is not known; say --gpu-bind",
    ),
    _row(
        "async",
        _NONE,
        "asynchronous",
        commands=_RUN,
        note="in jobs with --stepmgr or SlurmctldParameters=enable_stepmgr, with PrologFlags=Contain",
    ),
    _row("bcast", _OPTIONAL, "bcast", _text, commands=_RUN, variables="SLURM_BCAST", alone=""),
    _row("bcast-exclude", _REQUIRED, "bcast_exclude", _text, commands=_RUN, variables="SLURM_BCAST_EXCLUDE"),
    _row(
        "compress",
        _OPTIONAL,
        "compress",
        _text,
        commands=_RUN,
        variables="SLURM_COMPRESS",
        alone="lz4",
        note="programs are compressed with zlib, which every Python has, whatever is named",
    ),
    _row(
        "cpu-bind cpu_bind",
        _REQUIRED,
        "cpu_binding",
        _cpu_binding,
        commands=_RUN,
        variables="SLURM_CPU_BIND",
        note="acts where TaskPlugin has task/affinity, as in Slurm; the CPUs of a pretended node are those of the machine",
    ),
    _row("debugger-test", _NONE, "debugger_test", commands=_RUN, hidden=True, note="tells of processes; there is no MPIR"),
    _row("disable-status -X", _NONE, "disable_status", commands=_RUN, variables="SLURM_DISABLE_STATUS"),
    _row("epilog", _REQUIRED, "epilog", _text, commands=_RUN, variables="SLURM_EPILOG"),
    _row("exact", _NONE, "exact", commands=_RUN, variables="SLURM_EXACT"),
    _row("external-launcher", _NONE, "external_launcher", commands=_RUN),
    _row("het-group pack-group", _REQUIRED, "het_group", _het_group, commands=_RUN),
    _row("ignore-signals", _REQUIRED, "ignore_signals", _ignored_signals, commands=_RUN),
    _row("interactive", _NONE, "interactive", commands=_RUN, hidden=True),
    _row("jobid", _REQUIRED, "job_id", _text, commands=_RUN, variables="SLURM_JOB_ID"),
    _row(
        "kill-on-bad-exit -K", _OPTIONAL, "kill_on_bad_exit", _kill_on_bad_exit, commands=_RUN, variables="SLURM_KILL_BAD_EXIT"
    ),
    _row("label -l", _NONE, "label", commands=_RUN, variables="SLURM_LABELIO"),
    _row("mpi", _REQUIRED, "mpi", _mpi, commands=_RUN, variables="SLURM_MPI_TYPE", accepted="processes start without PMI"),
    _row(
        "msg-timeout",
        _REQUIRED,
        "ignored",
        _number(),
        commands=_RUN,
        accepted="a step's connections stay open, so no message waits",
    ),
    _row("multi-prog", _NONE, "multi_prog", commands=_RUN),
    _row("no-allocate -Z", _NONE, "no_allocate", commands=_RUN, note="steps outside of a job are not run", status=_REFUSED),
    _row("overlap", _OPTIONAL, "overlap", lambda text, _: True, commands=_RUN, variables="SLURM_OVERLAP"),
    _row("preserve-env -E", _NONE, "preserve_environment", commands=_RUN),
    _row("prolog", _REQUIRED, "prolog", _text, commands=_RUN, variables="SLURM_PROLOG"),
    _row("pty", _OPTIONAL, "pty", _descriptor, commands=_RUN, alone=0),
    _row("quit-on-interrupt", _NONE, "quit_on_interrupt", commands=_RUN),
    _row("relative -r", _REQUIRED, "relative", _number(0), commands=_RUN),
    _row("send-libs", _OPTIONAL, "send_libraries", _yes_or_no, commands=_RUN, variables="SLURM_SEND_LIBS"),
    _row(
        "slurmd-debug",
        _REQUIRED,
        "slurmd_debug",
        _severity,
        commands=_RUN,
        variables="SLURMD_DEBUG",
        note="stepd tells of tasks from verbose on; what only slurmstepd has is not told",
    ),
    _row("task-epilog", _REQUIRED, "task_epilog", _text, commands=_RUN, variables="SLURM_TASK_EPILOG"),
    _row("task-prolog", _REQUIRED, "task_prolog", _text, commands=_RUN, variables="SLURM_TASK_PROLOG"),
    _row(
        "threads -T",
        _REQUIRED,
        "ignored",
        _number(),
        commands=_RUN,
        variables="SLURM_THREADS",
        accepted="messages do not fan out",
    ),
    _row("treewidth", _REQUIRED, "ignored", _tree_width, commands=_RUN, accepted="messages do not fan out"),
    _row("unbuffered -u", _NONE, "unbuffered", commands=_RUN, variables="SLURM_UNBUFFEREDIO"),
    _row("wait -W", _REQUIRED, "step_wait", _number(0), commands=_RUN, variables="SLURM_WAIT"),
    _row(
        "wait-for-children",
        _NONE,
        "ignored",
        commands=_RUN,
        note="what tasks leave behind ends with the step; refused as where there is no proctrack/cgroup",
        status=_REFUSED,
    ),
    _row("whole", _NONE, "whole", commands=_RUN, hidden=True, variables="SLURM_WHOLE"),
    _row(
        "x11",
        _OPTIONAL,
        "x11",
        _x11,
        commands=("srun", "salloc"),
        alone="all",
        note="X11 is not forwarded; refused as where Slurm finds no display or no cookie for it",
        status=_REFUSED,
    ),
    # --- salloc's own
    _row("bell", _NONE, "bell", commands=_ALLOCATION, variables="SALLOC_BELL"),
    _row("no-bell", _NONE, "bell", commands=_ALLOCATION, variables="SALLOC_NO_BELL", alone=False),
    _row(
        "kill-command -K", _OPTIONAL, "kill_command", _kill_command, commands=_ALLOCATION, alone=0, variables="SALLOC_KILL_CMD"
    ),
    _row("no-shell", _NONE, "no_shell", commands=_ALLOCATION),
    # --- every command's
    _row("quiet -Q", _NONE, "quiet"),
    _row("verbose -v", _NONE, "verbose"),
    _row("help -h", _NONE, HELP),
    _row("usage", _NONE, USAGE),
    _row("version -V", _NONE, VERSION),
    _row("autocomplete", _REQUIRED, AUTOCOMPLETE, _text, hidden=True),
    *PYXIS,
    *OLD,
)
"""Every option of the three commands."""

COUNTED = frozenset(("quiet", "verbose"))
"""Fields that add up when an option is repeated."""

EARLY = frozenset(("help -h", "usage", "version -V", "wrap", "autocomplete"))
"""Options that mean something on the command line only."""


@cache
def options_of(command: str) -> tuple[SubmissionOption, ...]:
    """The rows of one command, in the order of their names."""
    rows = [row for row in SUBMISSION if command in row.commands]
    return tuple(sorted(rows, key=lambda row: row.name))


@cache
def variables_of(command: str) -> Mapping[str, SubmissionOption]:
    """The rows by the environment variables that stand for them, weakest first where a row has several."""
    return MappingProxyType(
        {name: row for row in options_of(command) for name in row.environment.get(command, ())}
        | dict.fromkeys((f"{_PREFIXES[command][0]}WAIT4SWITCH",), _WAIT_FOR_SWITCH)
        | dict.fromkeys((f"{_PREFIXES[command][0]}DEBUG",), _DEBUG)
    )


def _seconds(text: str, _: Reading) -> int | None:
    return parse_duration_seconds(text)


def _level(text: str, _: Reading) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0


_WAIT_FOR_SWITCH = _row("switches", _REQUIRED, "wait_for_switch", _seconds)
_DEBUG = _row("verbose", _REQUIRED, "verbose", _level)


def read_variable(row: SubmissionOption, text: str, reading: Reading) -> dict[str, object]:
    """What an environment variable sets: a flag when it is empty, ``yes`` or a number other than 0; else as the option, an
    optional argument being left out when it is empty. Raises OptionError."""
    if row.argument is Argument.NONE:
        on = text in ("", "yes") or bool(re.match(r"[ \t]*[+-]?0*[1-9]", text))
        return row.read(None, reading) if on else {}
    if row.name == "immediate" and reading.command == "srun" and whole_number(text) is None:
        return row.read(None, reading)
    if row.argument is Argument.OPTIONAL and (not text or (row.name == "no-kill" and text == "no")):
        return row.read(None, reading)
    return row.read(text, reading)
