"""What each keeper of a step is told to start: programs, environments and files of its tasks."""

from __future__ import annotations

import os
import re

from slurmk.stepd import asynchronous, binding, environment, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

    from slurmk.stepd.manager import Step

    Message = Dict[str, Any]


class Misconfigured(Exception):
    """A --multi-prog file cannot be followed; ``lines`` say why."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


def tasks_of(job: Mapping[str, Any], step: Step, opening: Mapping[str, Any], memory: Sequence[int]) -> List[Message]:
    """The specification of each node's keeper. ``memory`` is the MiB that it may use there. Raises Misconfigured."""
    request = step.request
    made = step.layout
    programs = _programs(request, sum(step.het["counts"]) if step.het else made.tasks)
    gpus = environment.gpu_binding(request)
    asked = str(request.get("tres_bind") or (("gres/gpu:" + gpus) if gpus else ""))
    verbose = "gpu:verbose" in asked
    hooks = _hooks(job, request)
    seen = {
        "environment": dict(entry.partition("=")[::2] for entry in opening["environment"]),
        "step": step.number,
        "nodes": step.nodes,
        "job_nodes": made.job_nodes,
        "counts": made.counts,
        "ranks": made.ranks,
        "cpus": made.cpus,
        "gres": made.gres,
        "distribution": made.distribution if _tells_distribution(opening) else "",
        "umask": request.get("umask", 0o022),
        "cpus_per_task": request.get("cpus_per_task"),
        "tres_bind": asked,
        "tres_freq": request.get("tres_freq"),
        "oom_kill_step": request.get("oom_kill_step"),
        "ports": step.ports,
        "debug": request.get("debug"),
        "bindings": binding.variables(request),
        "job_name": request.get("job_name"),
        "address": opening.get("address") or "127.0.0.1",
        "port": opening.get("port") or 0,
        "preserve": request.get("preserve_environment"),
        "het": step.het,
        "verbose": request.get("verbose", 0),
        "quiet": request.get("quiet", 0),
    }
    bound = [binding.on_node(job, request, ids, count, made.distribution) for ids, count in zip(made.cpu_ids, made.counts)]
    specifications = []
    for index, name in enumerate(step.nodes):
        specifications.append(
            {
                "step": step.number,
                "node": name,
                "uid": job["uid"],
                "gid": job["gid"],
                "groups": job["groups"],
                "directory": request.get("cwd") or job["directory"],
                "umask": request.get("umask", 0o022),
                "environment": _with_libraries(step, name, environment.step_environment(job, seen, index)),
                "pty": opening.get("pty"),
                "held": request.get("debugger_test"),
                "debug": request.get("debug") or 0,
                "memory_limit": memory[index] * 1048576 if job.get("constrain_memory") else 0,
                "limits": opening.get("limits"),
                "propagate_priority": job.get("parameters", {}).get("PropagatePrioProcess"),
                "resident_limit": memory[index] * 1048576,
                "binding": None if request.get("interactive") else bound[index],
                **hooks,
                "tasks": [
                    {
                        "rank": rank,
                        "local": local,
                        "argv": _sent(step, name, programs[rank]),
                        "said": environment.frequency_lines(local, made.gres[index], request)
                        + environment.binding_lines(local, made.gres[index], gpus, verbose),
                        "environment": environment.task_variables(rank, local, made.gres[index], gpus),
                        **_files(job, step, opening, index, rank),
                    }
                    for local, rank in enumerate(made.ranks[index])
                ],
            }
        )
    return specifications


_WITH_DISTRIBUTION = ("distribution", "memory_per_node", "memory_per_cpu")


def _tells_distribution(opening: Mapping[str, Any]) -> bool:
    """srun sets SLURM_DISTRIBUTION in a job; where it makes the allocation, only when it was said, or memory was asked for."""
    said = any(opening["request"].get(name) is not None for name in _WITH_DISTRIBUTION)
    return said or not opening.get("owns_allocation")


def _sent(step: Step, node: str, argv: List[str]) -> List[str]:
    """The program where --bcast has put it on a node."""
    return [sent_to(step, node), *argv[1:]] if step.request.get("bcast") else argv


def sent_to(step: Step, node: str) -> str:
    sent = step.request["bcast"]
    folder = sent.get("folder")
    return str(sent["path"]) if folder is None else bcast_name(folder, int(step.job["job"]), step.name) + "_" + node


def bcast_name(folder: str, job: int, step: str) -> str:
    """The name of a program that was sent without one; the node's name follows."""
    return "%s/slurm_bcast_%d.%s" % (folder.rstrip("/"), job, step)


def _with_libraries(step: Step, node: str, variables: Dict[str, str]) -> Dict[str, str]:
    if (step.request.get("bcast") or {}).get("libraries"):
        own = sent_to(step, node) + "_libs"
        others = variables.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = own + ":" + others if others else own
    return variables


def _hooks(job: Mapping[str, Any], request: Mapping[str, Any]) -> Message:
    """Prologs and epilogs of tasks: the site's and the user's."""
    found = {}
    for name in ("task_prolog", "task_epilog"):
        own = request.get(name)
        pair = [job.get(name) or "", "" if str(own).lower() == "none" else own or ""]
        if any(pair):
            found[name] = pair
    return found


def _programs(request: Mapping[str, Any], tasks: int) -> List[List[str]]:
    if request.get("programs"):
        return [list(argv) for argv, count in request["programs"] for _ in range(count)]
    if request.get("multi_prog") is None:
        return [list(request["argv"])] * tasks
    return multiple(str(request["multi_prog"]), tasks, "".join(request["argv"][:1]))


def multiple(text: str, tasks: int, name: str) -> List[List[str]]:
    """The programs that a --multi-prog file gives to the tasks; ``%t`` is the task, ``%o`` its number in its line's range.
    Raises Misconfigured."""
    found: Dict[int, List[str]] = {}
    rest = ""
    for number, line in _records(text):
        ranks, program = [*line.split(None, 1), ""][:2]
        try:
            if not program:
                raise Misconfigured()
            if ranks == "*":
                rest = rest or program
                continue
            if rest:
                raise Misconfigured("Task range specification with asterisk must be last")
            for offset, rank in enumerate(_ranks(ranks, tasks)):
                if rank in found:
                    raise Misconfigured("Duplicate record for task %d" % rank)
                found[rank] = _words(program, rank, offset)
        except Misconfigured as error:
            raise Misconfigured(*error.lines, "Line %d of configuration file %s invalid" % (number, name)) from None
    programs = []
    for rank in range(tasks):
        if rank not in found and not rest:
            raise Misconfigured("Configuration file %s invalid, no record for task id %d" % (name, rank))
        programs.append(found[rank] if rank in found else _words(rest, rank, rank))
    return programs


def _records(text: str) -> Iterator[Tuple[int, str]]:
    """Each record of a --multi-prog file, and the number of its last line: a backslash goes on with the next."""
    record = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\\"):
            record += line[:-1] + " "
            continue
        record = (record + line).strip()
        if record and not record.startswith("#"):
            yield number, record
        record = ""


def _words(program: str, rank: int, offset: int) -> List[str]:
    """The words of a record's program for one task; none where a quote is never closed. Only ``'`` quotes, a backslash outside
    of quotes takes away the meaning of what follows, and ``%`` with any other letter than t and o stands for nothing."""
    words: List[str] = []
    quoted = begun = False
    letters = iter(program)
    for letter in letters:
        if not begun and (quoted or not letter.isspace()):
            words.append("")
            begun = True
        if letter == "'":
            quoted = not quoted
        elif quoted:
            words[-1] += letter
        elif letter.isspace():
            begun = False
        elif letter == "%":
            words[-1] += {"t": str(rank), "o": str(offset)}.get(next(letters, ""), "")
        else:
            words[-1] += next(letters, "") if letter == "\\" else letter
    return [] if quoted else words


_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


def _ranks(text: str, tasks: int) -> List[int]:
    """Tasks that a record names, such as ``0,2-3``; a comma too many means nothing. Raises Misconfigured."""
    ranks: List[int] = []
    for item in filter(None, text.split(",")):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise Misconfigured(_no_range(item))
        low, high = int(match.group(1)), int(match.group(2) or match.group(1))
        if high >= tasks:
            raise Misconfigured("Invalid task id, %d >= ntasks" % high)
        if low > high:
            raise Misconfigured("Invalid task range, %d-%d" % (low, high))
        ranks += range(low, high + 1)
    return ranks


def _no_range(item: str) -> str:
    if re.fullmatch("-[0-9]+", item):
        return "Invalid task id, %s < 0" % item
    return "Invalid task range specification" + ("" if item[:1].isdigit() else " (%s)" % item)


def _files(job: Mapping[str, Any], step: Step, opening: Mapping[str, Any], index: int, rank: int) -> Message:
    """Where the standard streams of one task lead. What is not a file of the task's own goes through srun."""
    request = step.request
    values = output.pattern_values(job, step.name, step.nodes[index], index, rank)
    directory = request.get("cwd") or job["directory"]
    append = output.appends(request, job["request"])
    if request.get("asynchronous"):
        return _unattended(step, directory, values, append)

    def sink(pattern: Any) -> Any:
        if pattern is None or pattern == "all" or not output.differs_by_task(pattern):
            return "stream"
        return {"path": os.path.join(directory, output.fill(pattern, values)), "append": append}

    def source(pattern: Any) -> Any:
        if pattern is None or pattern == "all":
            return "stream"
        if pattern == "none":
            return None
        if str(pattern).isdigit():
            chosen = int(pattern)
            return "stream" if chosen == rank or chosen >= sum(step.layout.counts) else None
        if output.differs_by_task(pattern):
            return os.path.join(directory, output.fill(pattern, values))
        return "stream"

    out = sink(request.get("output"))
    error = sink(request.get("error"))
    if request.get("error") is None:
        error = "stdout" if out != "stream" else "stream"
    if opening.get("pty") and rank:
        return {"stdin": None, "stdout": "null", "stderr": "null"}
    return {"stdin": source(request.get("input")), "stdout": out, "stderr": error}


def _unattended(step: Step, directory: str, values: Mapping[str, str], append: bool) -> Message:
    """The same where no srun stays: all that is no file of its own is nowhere."""
    request = step.request
    files = asynchronous.patterns(request)
    width = len(str(max(1, sum(step.layout.counts)) - 1)) if request.get("label") else 0

    def sink(pattern: str) -> Any:
        if pattern == "none":
            return "null"
        begun = len(step.nodes) > 1 and not output.differs_by_task(pattern)
        path = os.path.join(directory, output.fill(pattern, dict(values)))
        return {"path": path, "append": append or begun, "label": width, "unbuffered": bool(request.get("unbuffered"))}

    source = request.get("input")
    named = source is not None and source not in ("none", "all") and not str(source).isdigit()
    return {
        "stdin": os.path.join(directory, output.fill(str(source), dict(values))) if named else None,
        "stdout": sink(str(files["output"])),
        "stderr": "stdout" if files["error"] is None else sink(files["error"]),
    }
