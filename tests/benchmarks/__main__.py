"""All benchmarks, one after another; what ``make bench`` runs."""

from __future__ import annotations

import subprocess
import sys

for name in ("sbatch", "squeue", "starts", "plan", "events", "busy"):
    subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}", *sys.argv[1:]], check=True)
