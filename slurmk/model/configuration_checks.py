"""What is wrong with slurm.conf and cgroup.conf though each line can be read: words that no key takes, values that contradict
each other. What Slurm's controller does not start with is a GrammarError; what it says in its log and passes over is put right
in the configuration, and told as a warning. Both name file, line and key.
"""

from __future__ import annotations

import pwd
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from grammar.configuration import Configuration, Reader, Setting
from grammar.configuration_words import (
    CGROUP_KEYS,
    DEFUNCT,
    LEAST,
    PLUGINS,
    SCHEDULER_BOUNDS,
    SCHEDULER_WORDS,
    TRES,
    TRES_WITH_NAMES,
    WORDS,
    Plugins,
    Words,
)
from grammar.errors import GrammarError
from grammar.times import parse_duration_seconds

_WEIGHT = re.compile(r"\d{1,12}(?:\.\d{0,12})?[KMGTP]?\Z", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\s*[-+]?\d{1,18}", re.ASCII)
_EMPTY = frozenset({"", "(null)"})


def check(configuration: Configuration) -> None:
    """Check all keys, put right what can be, and add what there is to tell to the configuration's warnings. Raises
    GrammarError for the first thing that cannot."""
    for look in (
        _plugins,
        _words,
        _least,
        _defunct,
        _times,
        _tres,
        _preemption,
        _selection,
        _binding,
        _memory,
        _scheduler,
        _prologs,
    ):
        look(configuration)


USUAL_USER = "slurm"
"""The user that packages of Slurm make. A machine that reads a cluster's file to try it lacks it, which is only told."""


def check_users(configuration: Configuration) -> None:
    """Check that this machine has the users of SlurmUser and SlurmdUser, by name or number. Raises GrammarError."""
    for key in ("SlurmUser", "SlurmdUser"):
        setting = configuration.get(key)
        name = setting.value.partition("(")[0] if setting is not None else ""
        if setting is None or _is_user(name):
            continue
        text = f"{key}: Invalid user for {key} {setting.value}"
        if name != USUAL_USER:
            raise setting.error(text)
        warn(configuration, setting, text)


def _is_user(name: str) -> bool:
    try:
        return bool(pwd.getpwuid(int(name)) if name.isascii() and name.isdecimal() else pwd.getpwnam(name))
    except (KeyError, ValueError, OverflowError):
        return False


def check_weights(setting: Setting | None) -> None:
    """Weights of TRES, as ``CPU=1.0,Mem=0.25G``. Raises GrammarError."""
    for word in setting.words if setting is not None and setting.value not in _EMPTY else ():
        assert setting is not None
        name, equals, value = word.partition("=")
        problem = ""
        if not equals:
            problem = f'"{word}" is an invalid TRES weight entry'
        elif not is_tres(name):
            problem = f"TRES weight '{name}' is not a configured TRES type."
        elif _WEIGHT.match(value) is None:
            problem = f"Invalid value in {word}"
        if problem:
            raise setting.error(f"{setting.key.name}: {problem} failed to parse tres weights str '{setting.value}'")


def is_tres(name: str) -> bool:
    """Whether there is a TRES of that name, or could be."""
    kind, slash, own = name.strip().lower().partition("/")
    return kind in TRES_WITH_NAMES and bool(own) if slash else kind in TRES


def warn(configuration: Configuration, setting: Setting, text: str) -> None:
    """Tell something of a setting."""
    configuration.warnings.append(str(setting.error(text)))


def _set(configuration: Configuration, setting: Setting, value: str) -> None:
    """Let the key have another value than it was given; none for ""."""
    name = setting.key.name.lower()
    if value:
        configuration.settings[name] = replace(setting, value=value)
    else:
        del configuration.settings[name]


def _named(configuration: Configuration, key: str) -> Setting | None:
    setting = configuration.get(key)
    return None if setting is None or setting.value.lower() in _EMPTY else setting


# ------------------------------------------------------------------------------------------------ single keys


def _plugins(configuration: Configuration) -> None:
    for row in PLUGINS:
        setting = _named(configuration, row.key)
        for word in _unknown(row, setting):
            assert setting is not None
            text = f"{row.key}: cannot create {row.kind} context for {word}"
            if not row.own:
                raise setting.error(text)
            warn(configuration, setting, text)


def _unknown(row: Plugins, setting: Setting | None) -> Iterator[str]:
    if setting is None:
        return
    for word in setting.words if row.several else (setting.value,):
        if word.lower().removeprefix(f"{row.kind}/") not in row.names.split():
            yield word


def _words(configuration: Configuration) -> None:
    for row in WORDS:
        setting = _named(configuration, row.key)
        if setting is None:
            continue
        bad = [word for word in setting.words if not _takes(row, word)]
        if bad and row.fatal:
            raise setting.error(row.error.format(word=bad[0], value=setting.value))
        for word in bad:
            warn(configuration, setting, row.error.format(word=word, value=setting.value))
        if bad:
            _set(configuration, setting, ",".join(word for word in setting.words if word not in bad))


def _takes(row: Words, word: str) -> bool:
    lower = word.lower()
    if row.key.endswith("Debug") and lower.isdecimal():
        return int(lower[:4]) <= len(row.words)
    return lower in {known.lower() for known in row.words} or lower.startswith(row.prefixes or ("\0",))


def _least(configuration: Configuration) -> None:
    for row in LEAST:
        setting = configuration.get(row.key)
        if setting is None or setting.number >= row.least:
            continue
        text = row.error.format(value=setting.value)
        if row.instead is None:
            raise setting.error(text)
        warn(configuration, setting, text)
        _set(configuration, setting, str(row.instead))


def _defunct(configuration: Configuration) -> None:
    for setting in list(configuration.settings.values()):
        name = setting.key.name
        if name in DEFUNCT:
            warn(configuration, setting, f'The option "{name}" is defunct, please remove it from slurm.conf.')
    if configuration.get("SlurmctldHost") is not None:
        for key in ("BackupController", "ControlMachine"):
            old = configuration.get(key)
            if old is not None:
                warn(configuration, old, f"Ignoring {key} since SlurmctldHost is set.")
    for key in ("ResumeProgram", "SuspendProgram"):
        program = _named(configuration, key)
        if program is not None and not program.value.startswith("/"):
            warn(configuration, program, f"{key}: power_save program {program.value} not absolute pathname")
    namespace = _named(configuration, "NamespaceType") or _named(configuration, "JobContainerType")
    flags = configuration.get("PrologFlags")
    if namespace is not None and not namespace.value.endswith("/none"):
        words = flags.value.lower().split(",") if flags is not None else []
        if not {"contain", "x11", "runinjob"}.intersection(words):
            text = f"{namespace.key.name}: PrologFlags=Contain is required for use with {namespace.value}"
            raise namespace.error(text)


def _times(configuration: Configuration) -> None:
    period = configuration.get("PriorityCalcPeriod")
    if period is not None and not parse_duration_seconds(period.value):
        raise period.error(f'Bad value "{period.value}" for PriorityCalcPeriod')
    half_life, reset = configuration.get("PriorityDecayHalfLife"), configuration.get("PriorityUsageResetPeriod")
    never = reset is None or reset.value.upper() == "NONE"
    if half_life is not None and parse_duration_seconds(half_life.value) == 0 and never:
        raise half_life.error("PriorityDecayHalfLife=0 needs a PriorityUsageResetPeriod, or usage adds up for ever")
    suspend = _named(configuration, "SuspendTime")
    if suspend is not None and re.fullmatch(r"-(?!1\Z).*|\d{10,}", suspend.value):
        raise suspend.error(f'Bad value "{suspend.value}" for SuspendTime')
    message, step = configuration.get("MessageTimeout"), configuration.get("UnkillableStepTimeout")
    if step is not None and step.number < 5 * (message.number if message is not None else 10):
        warn(configuration, step, "UnkillableStepTimeout must be at least 5 times greater than MessageTimeout")


def _tres(configuration: Configuration) -> None:
    check_weights(configuration.get("PriorityWeightTRES"))
    counted = _named(configuration, "AccountingStorageTRES")
    for word in counted.words if counted is not None else ():
        if counted is not None and not is_tres(word):
            raise counted.error(f"AccountingStorageTRES: Unknown tres type '{word}'")


# ------------------------------------------------------------------------------------------------ keys together


_SINGLE_MODES = frozenset({"OFF", "CANCEL", "REQUEUE", "SUSPEND"})


def _preemption(configuration: Configuration) -> None:
    mode, kind = configuration.get("PreemptMode"), configuration.get("PreemptType")
    words = mode.value.upper().replace(" ", "").split(",") if mode is not None else ["OFF"]
    if mode is not None and len(_SINGLE_MODES.intersection(words)) > 1:
        raise mode.error(f"PreemptMode={mode.value} invalid")
    if mode is not None and "SUSPEND" in words and "GANG" not in words:
        raise mode.error("PreemptMode=SUSPEND requires GANG too")
    none = kind is None or kind.value.lower() in ("preempt/none", "none", *_EMPTY)
    does = bool({"CANCEL", "REQUEUE", "SUSPEND", "WITHIN", "PRIORITY"}.intersection(words))
    where = mode or kind
    if where is not None and none == does:
        raise where.error("PreemptType and PreemptMode values incompatible")


_CORES = ("CR_CPU", "CR_CORE", "CR_SOCKET")


def _selection(configuration: Configuration) -> None:
    setting = _named(configuration, "SelectTypeParameters")
    if setting is None:
        return
    bases = [word.upper().removesuffix("_MEMORY") for word in setting.words]
    units = [base for base in bases if base in _CORES]
    if len(units) > 1:
        raise setting.error(f"Bad SelectTypeParameter: {setting.value}")
    kind = configuration.get("SelectType")
    if units and kind is not None and kind.value.lower() == "select/linear":
        raise setting.error(
            f"SelectTypeParameters: {setting.value} is invalid for select/linear, it can't contain CR_(CPU|CORE|SOCKET)."
        )


_ONE_UNIT = frozenset({"cores", "sockets", "threads", "boards", "ldoms", "none"})


def _binding(configuration: Configuration) -> None:
    setting = _named(configuration, "TaskPluginParam")
    units = [word for word in setting.words if word.lower() in _ONE_UNIT] if setting is not None else []
    if setting is not None and len(units) > 1:
        raise setting.error(f"Bad TaskPluginParam: {units[1]}")


def _memory(configuration: Configuration) -> None:
    for kind in ("DefMem", "MaxMem"):
        per_cpu = configuration.get(f"{kind}PerCPU")
        if per_cpu is not None and configuration.get(f"{kind}PerNode") is not None:
            warn(configuration, per_cpu, memory_conflict(kind))
            _set(configuration, per_cpu, "")
    for record in configuration.records:
        for kind in ("DefMem", "MaxMem"):
            setting = record.get(f"{kind}PerCPU")
            if setting is not None and record.get(f"{kind}PerNode") is not None:
                warn(configuration, setting, memory_conflict(kind))


def memory_conflict(kind: str) -> str:
    """What is said where memory is given for CPUs and for nodes."""
    return f"{kind}PerCPU ignored, since it's mutually exclusive with {kind}PerNode"


def _scheduler(configuration: Configuration) -> None:
    setting = _named(configuration, "SchedulerParameters")
    if setting is None:
        return
    bounds = {row.name: row for row in SCHEDULER_BOUNDS}
    kept: list[str] = []
    values: dict[str, int] = {}
    for word in setting.words:
        name, equals, text = word.strip().partition("=")
        row = bounds.get(name) if equals else None
        found = _WHOLE.match(text)
        value = int(found[0]) if found else 0
        if name in SCHEDULER_WORDS and text not in SCHEDULER_WORDS[name]:
            warn(configuration, setting, f"Invalid SchedulerParameters {name}: {text}")
        elif row is None or row.least <= value <= row.most or value == row.also:
            kept.append(word)
            values[name] = value
        else:
            warn(configuration, setting, f"Invalid SchedulerParameters {name}: {text}")
    if values.get("bf_max_job_user", 0) > values.get("bf_max_job_test", 0x7FFFFFFF):
        least, most = values["bf_max_job_user"], values["bf_max_job_test"]
        warn(configuration, setting, f"SchedulerParameters: bf_max_job_user > bf_max_job_test ({least} > {most})")
    if values.get("bf_max_job_user") and values.get("bf_max_job_assoc"):
        text = "SchedulerParameters: Both bf_max_job_user and bf_max_job_assoc are set: bf_max_job_assoc taking precedence."
        warn(configuration, setting, text)
    configuration.used_scheduler_parameters = ",".join(kept)


def _prologs(configuration: Configuration) -> None:
    flags = _named(configuration, "PrologFlags")
    if flags is not None and {"serial", "runinjob"} <= set(flags.value.lower().replace(" ", "").split(",")):
        warn(configuration, flags, "PrologFlag Serial is incompatible with RunInJob")


# ------------------------------------------------------------------------------------------------ cgroup.conf


_LINE = re.compile(r"\s*([A-Za-z]+)\s*=\s*(.*?)\s*\Z")
_NUMBER = re.compile(r"\d{1,10}(?:\.\d{0,10})?%?\Z", re.ASCII)


def check_cgroup(read: Reader, path: str) -> None:
    """Check cgroup.conf, if there is one. Raises GrammarError."""
    for number, raw in enumerate((read(path) or "").split("\n"), 1):
        text = raw.partition("#")[0].strip()
        match = _LINE.match(text)
        if not text or text.lower().startswith("include "):
            continue
        problem = f'Parse error: "{text}"' if match is None else _of_cgroup(match[1], match[2].strip('"'))
        if problem:
            raise GrammarError(f"{path} line {number}: {problem}")


def _of_cgroup(key: str, value: str) -> str:
    name, kind = CGROUP_KEYS.get(key.lower(), ("", ""))
    checks: dict[str, tuple[Callable[[], bool], str]] = {
        "#": (lambda: _NUMBER.match(value) is not None, f"{name} value ({value}) is not a valid number"),
        "?": (lambda: value.lower() in _YES_NO, f'"{value}" is not a valid option for "{name}"'),
    }
    if not name:
        return f"Parsing error at unrecognized key: {key}"
    good, text = checks.get(kind, (lambda: True, ""))
    return "" if good() else text


_YES_NO = frozenset({"yes", "no", "true", "false", "up", "down", "1", "0", "y", "n"})
