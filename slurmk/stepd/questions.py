"""What the controller may ask a stepd of its node while the job runs: its processes, and to write a file for the user.

A question has ``what`` and the fields that its row needs; the answer is a JSON object, ``error`` in it says why there is
nothing else.
"""

from __future__ import annotations

import base64
import os

from slurmk.stepd import processes, texts, usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

    from slurmk.stepd.node import Node

    Answer = Dict[str, Any]


LONGEST_NOTICE = 4096
"""Characters of a message to a job's user."""


def answer(node: Node, question: Mapping[str, Any]) -> Answer:
    """The answer to one question."""
    asked = {
        "processes": _processes,
        "write": _write,
        "folder": _folder,
        "notify": _notify,
        "limit": _limit,
    }.get(str(question.get("what")))
    if asked is None:
        return {"error": "this is not known here"}
    try:
        return asked(node, question)
    except OSError as error:
        return {"error": error.strerror or "I/O error", "errno": error.errno}
    except (KeyError, TypeError, ValueError):
        return {"error": "the question is not understood"}


def of_file(message: Mapping[str, Any]) -> Answer:
    """What sbcast asks in a message: to write, or to make a folder, and nothing else."""
    return dict(message, what="folder" if message.get("what") == "folder" else "write")


def _processes(node: Node, question: Mapping[str, Any]) -> Answer:
    """Tasks of every step, each with its measures and with what runs below it."""
    found: List[Answer] = []
    for keeper, each in list(node.keepers.items()):
        for process in processes.children(keeper) or []:
            variables = _variables(process)
            rank = variables.get(b"SLURM_PROCID", b"0")
            if b"SLURM_PROCID" not in variables:
                continue
            measures = usage.empty()
            usage.sample(process, measures)
            found.append(
                {
                    "step": each.step,
                    "pid": process,
                    "rank": int(rank),
                    "local": int(variables.get(b"SLURM_LOCALID", b"0")),
                    "below": processes.descendants(process),
                    "measures": measures,
                }
            )
    return {"tasks": found}


def _variables(process: int) -> Dict[bytes, bytes]:
    """The environment that a process started with."""
    try:
        with open("/proc/%d/environ" % process, "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return {}
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def _notify(node: Node, question: Mapping[str, Any]) -> Answer:
    """A message for the job's user: to who holds the allocation, or else among the batch script's errors."""
    text = str(question["text"])[:LONGEST_NOTICE]
    if node.manager is not None and node.manager.notify(text):
        return {}
    if node.batch is not None:
        node.batch.tell({"kind": "say", "text": texts.stepd_error(text).decode("utf-8", "surrogateescape")})
    return {}


def _limit(node: Node, question: Mapping[str, Any]) -> Answer:
    """Another time limit for a step, in minutes, or for all steps."""
    number = question["step"]
    if node.manager is not None:
        node.manager.limit(None if number is None else int(number), int(question["minutes"]))
    return {}


LARGEST_PIECE = 8 * 1024 * 1024
"""Bytes of a file that are written at once."""


def _decompressed(data: bytes) -> bytes:
    import zlib

    unpacker = zlib.decompressobj()
    found = unpacker.decompress(data, LARGEST_PIECE)
    if unpacker.unconsumed_tail:
        raise ValueError("a piece is too large")
    return found


def _path(node: Node, question: Mapping[str, Any]) -> str:
    """Where the file is on this node: ``by_node`` when its name ends in the node's, ``in_folder`` its name below that."""
    path = os.path.join(node.job["directory"], str(question["path"]))
    if question.get("by_node"):
        folder = str(question.get("in_folder") or "")
        end = "_libs/" + folder if folder else "_libs" if question.get("what") == "folder" else ""
        path = path[: len(path) - len(end)] + "_" + node.name + end
    return path


def _folder(node: Node, question: Mapping[str, Any]) -> Answer:
    """A folder of the user's, which may be there already."""
    job = node.job
    with processes.Identity(job["uid"], job["gid"], job["groups"]).borrowed():
        os.makedirs(_path(node, question), 0o700, exist_ok=True)
    return {}


def _write(node: Node, question: Mapping[str, Any]) -> Answer:
    """A piece of a file, written as the job's user: ``path``, ``offset``, ``data`` (base64), ``mode``, ``force``, and at the
    last piece ``times`` (access and modification, seconds) or None."""
    job = node.job
    data = base64.b64decode(question["data"], validate=True)
    if question.get("compressed"):
        data = _decompressed(data)
    offset = int(question["offset"])
    path = _path(node, question)
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    if not offset:
        flags |= os.O_CREAT | (os.O_TRUNC if question.get("force") else os.O_EXCL)
    with processes.Identity(job["uid"], job["gid"], job["groups"]).borrowed():
        descriptor = os.open(path, flags, 0o700)
        try:
            view = memoryview(data)
            while view:
                written = os.pwrite(descriptor, view, offset)
                offset += written
                view = view[written:]
            if question.get("last"):
                os.fchmod(descriptor, int(question["mode"]) & 0o777)
                if question.get("times"):
                    os.utime(descriptor, (int(question["times"][0]), int(question["times"][1])))
        finally:
            os.close(descriptor)
    return {"written": len(data)}
