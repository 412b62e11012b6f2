"""The demo, as ``make demo`` runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from embedded import SLURMK, wait_for
from on_kubernetes import embedded_only

DEMO = Path(__file__).parents[2] / "docs" / "examples" / "demo.sh"


def _processes_of(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(directory) in command:
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


@embedded_only("the demo brings an embedded cluster of its own")
def test_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    top = SLURMK.parents[2]
    environment = {**os.environ, "SLURMK": str(SLURMK.relative_to(top)), "TMPDIR": str(tmp_path)}
    done = subprocess.run([str(DEMO)], cwd=top, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a second step, 1.1, with one task" in done.stdout
    wait_for(lambda: not _processes_of(tmp_path))
    assert list(tmp_path.iterdir()) == []
