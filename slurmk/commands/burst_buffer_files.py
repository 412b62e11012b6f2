"""The file of ``--bbf``: directives for burst buffers, which sbatch puts into the script that it submits (sbatch(1)).

There are no burst buffers here. What else such a file holds is run with the script all the same, as in Slurm; of an
allocation, its text is shown.
"""

from __future__ import annotations

from grammar.options import OptionError
from slurmk.commands.call import Output, Unreadable
from slurmk.commands.submission import Options

LARGEST = 1 << 20
"""Bytes of such a file."""


async def read_burst_buffer_file(command: str, options: Options, output: Output) -> bytes:
    """What the file of ``--bbf`` holds; nothing where none is named. Raises OptionError."""
    path = options.get("burst_buffer_file")
    if path is None:
        return b""
    if options.get("burst_buffer") is not None:
        option = "--bb" if command == "salloc" else "--burst-buffer"
        raise OptionError(f"{command}: error: Cannot specify both {option} and --bbf", code=1)
    try:
        content = await output.read(path, LARGEST)
    except Unreadable:
        content = b""
    if not content:
        raise OptionError(f"{command}: error: Invalid --bbf specification", code=1)
    return content


async def show_burst_buffer_file(command: str, options: Options, output: Output) -> None:
    """Where there is no script, the file's text is what is asked of burst buffers. Raises OptionError."""
    content = await read_burst_buffer_file(command, options, output)
    if content:
        options.values["burst_buffer"] = content.decode("utf-8", "surrogateescape")


def with_directives(script: bytes, directives: bytes) -> bytes:
    """The script with the directives as whole lines behind its first one, or before it where that is no comment."""
    if not directives:
        return script
    if not directives.endswith(b"\n"):
        directives += b"\n"
    if not script.startswith(b"#"):
        return directives + script
    first, _, rest = script.partition(b"\n")
    return first + b"\n" + directives + rest
