"""sbcast's local part: reads the file where sbcast was typed and has it written on every node of the job. srun --bcast sends
its program in the same way.

``sbcast SETTINGS``: a JSON object (source, destination, block_size, force, preserve, compress, libraries, exclude, verbose …).
Where to send it is in SLURMK_STEP_MANAGER and SLURMK_JOB_SECRET, as for srun.
"""

from __future__ import annotations

import base64
import json
import mmap
import os
import re
import socket
import stat
import subprocess
import sys
import time
import zlib

from slurmk import wire
from slurmk.stepd import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Sequence

LARGEST_BLOCK = 8 * 1024 * 1024
CANNOT_READ = 255


def say(text: str) -> None:
    """A line on standard error, as sbcast says it."""
    try:
        os.write(2, ("sbcast: %s\n" % text).encode("utf-8", "surrogateescape"))
    except OSError:
        pass


LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
"""A line of ldd(1) that names the file of a library."""


def libraries(program: str, excluded: Sequence[str]) -> List[str]:
    """The files of the shared libraries that a program needs, but for those below the excluded folders."""
    try:
        told = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    except OSError:
        return []
    found = dict.fromkeys(LIBRARY.findall(told.decode("utf-8", "replace")))
    return [path for path in found if not any(path.startswith(folder.rstrip("/") + "/") for folder in excluded)]


def send_all(settings: Mapping[str, Any], connection: socket.socket) -> int:
    """Send the file, and its libraries where that is wanted; the exit code."""
    code = send(settings, connection)
    if code or not settings.get("libraries"):
        return code
    folder = str(settings["destination"]) + "_libs"
    code = _ask(settings, connection, {"kind": "write", "what": "folder", "path": os.path.join(os.getcwd(), folder)})
    for path in libraries(str(settings["source"]), settings.get("exclude") or ()):
        name = os.path.basename(path)
        own = dict(settings, source=path, destination="%s/%s" % (folder, name), force=True, in_folder=name, verbose=0)
        code = code or send(own, connection)
    return code


def _ask(settings: Mapping[str, Any], connection: socket.socket, question: Dict[str, Any]) -> int:
    """Have all nodes do something; 0, or the errno of the first that could not, which is told."""
    question["by_node"] = bool(settings.get("by_node"))
    question["in_folder"] = settings.get("in_folder")
    if isinstance(settings.get("nodes"), list):
        question["nodes"] = settings["nodes"]
    connection.sendall(messages.pack(question))
    faults = messages.receive_message(connection)["faults"]
    tell = settings.get("say", say)
    for node, text, _ in faults:
        tell("error: REQUEST_FILE_BCAST(%s): %s" % (node, text))
    return (int(faults[0][2]) & 0xFF or 1) if faults else 0


def send(settings: Mapping[str, Any], connection: socket.socket) -> int:
    """Send the file; the exit code: 0, or the errno of the node that could not write it."""
    source = str(settings["source"])
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        say("error: Can't open `%s`: %s" % (source, error.strerror))
        return CANNOT_READ
    try:
        what = os.fstat(descriptor)
        if not stat.S_ISREG(what.st_mode):
            return _unmappable(descriptor, source)
        if settings.get("verbose"):
            _describe(settings, what)
        return _pieces(settings, descriptor, what, connection)
    finally:
        os.close(descriptor)


def _unmappable(descriptor: int, source: str) -> int:
    """What is no file cannot be sent; the system says why."""
    try:
        mmap.mmap(descriptor, 1, prot=mmap.PROT_READ)
        reason = "Invalid argument"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    say("error: Can't mmap file `%s`, %s." % (source, reason))
    return CANNOT_READ


def _pieces(settings: Mapping[str, Any], descriptor: int, what: os.stat_result, connection: socket.socket) -> int:
    size = max(1, min(int(settings.get("block_size") or LARGEST_BLOCK), LARGEST_BLOCK))
    offset = 0
    while True:
        data = os.pread(descriptor, size, offset)
        last = offset + len(data) >= what.st_size or not data
        piece: Dict[str, Any] = {
            "kind": "write",
            "path": os.path.join(os.getcwd(), str(settings["destination"])),
            "offset": offset,
            "data": base64.b64encode(zlib.compress(data, 1) if settings.get("compress") else data).decode(),
            "compressed": bool(settings.get("compress")),
            "mode": stat.S_IMODE(what.st_mode),
            "force": bool(settings.get("force")),
            "last": last,
            "times": [int(what.st_atime), int(what.st_mtime)] if settings.get("preserve") else None,
        }
        code = _ask(settings, connection, piece)
        if code:
            return code
        if last:
            return 0
        offset += len(data)


def _describe(settings: Mapping[str, Any], what: os.stat_result) -> None:
    rule = "-----------------------------"
    lines = [rule, *("%-10s = %s" % (name, value) for name, value in settings["shown"]), rule]
    lines.append("modes    = %o" % what.st_mode)
    lines += ["uid      = %d" % what.st_uid, "gid      = %d" % what.st_gid]
    for name in ("atime", "mtime", "ctime"):
        lines.append("%s    = %s" % (name, time.ctime(getattr(what, "st_" + name))))
    lines.append("size     = %d" % what.st_size)
    lines += ["jobid      = %s" % settings["job"], "node_list  = %s" % settings["nodes"]]
    for line in lines:
        say(line)


def main(arguments: List[str]) -> int:
    """``SETTINGS``."""
    if len(arguments) != 1:
        print("usage: stepd sbcast SETTINGS", file=sys.stderr)
        return 2
    settings = json.loads(arguments[0])
    address, secret = os.environ.get("SLURMK_STEP_MANAGER", ""), os.environ.get("SLURMK_JOB_SECRET", "")
    try:
        connection = messages.dial(address, "srun", {"kind": "broadcast"}, secret)
        connection.settimeout(float(settings.get("timeout") or 0) or None)
        return send_all(settings, connection)
    except (OSError, ValueError, KeyError, wire.WireError) as error:
        say("error: the job's nodes cannot be reached: %s" % error)
        return 1
