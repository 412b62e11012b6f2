"""What scontrol leaves behind for a shell inside of a job whose size was changed: files that set its variables anew."""

from __future__ import annotations

import os

from grammar.hostlist import compress
from slurmk.commands.allocation_environment import counts
from slurmk.commands.scontrol_session import Session
from slurmk.model.job import Allocation

_STALE = ("SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE")
"""What a new size leaves open: taken away where the last of them is there."""

_WRITER = """\
name=$1; csh=$2; sh=$3; said=$4
for kind in csh sh; do
  target=${name}_resize.$kind; text=$csh; [ "$kind" = csh ] || text=$sh
  if [ -d "$target" ]; then why="Is a directory"
  elif { printf %s "$text" > "$target"; } 2>/dev/null; then chmod u=rwx,go= "$target"; continue
  elif [ -e "$target" ] || { [ -d . ] && [ ! -w . ]; }; then why="Permission denied"
  else why="No such file or directory"
  fi
  printf 'Could not create file %s: %s\\n' "$target" "$why" >&2
  exit 0
done
printf %s "$said"
"""
"""Run by the caller's own process: the controller never writes where a user says."""


def variables(allocation: Allocation) -> dict[str, str]:
    """The job's variables that say its size."""
    nodes = compress(allocation.nodes)
    number = str(len(allocation.shares))
    return {
        "SLURM_NODELIST": f'"{nodes}"',
        "SLURM_JOB_NODELIST": f'"{nodes}"',
        "SLURM_NNODES": number,
        "SLURM_JOB_NUM_NODES": number,
        "SLURM_JOB_CPUS_PER_NODE": f'"{counts(share.usable_cpus for share in allocation.shares)}"',
    }


def leave_files(session: Session, job_id: str, allocation: Allocation) -> None:
    """Have the caller's process write them into its directory, and say so; outside of jobs nobody needs them."""
    environment = session.call.environment
    if "SLURM_JOBID" not in environment:
        return
    stale = _STALE if _STALE[-1] in environment else ()
    told = {name: value for name, value in variables(allocation).items() if name in environment}
    csh = "".join(f"setenv {name} {value}\n" for name, value in told.items()) + "".join(f"unsetenv {name}\n" for name in stale)
    sh = "".join(f"export {name}={value}\n" for name, value in told.items()) + "".join(f"unset {name}\n" for name in stale)
    name = f"slurm_job_{job_id}"
    said = (
        "To reset Slurm environment variables, execute\n"
        f"  For bash or sh shells:  . ./{name}_resize.sh\n"
        f"  For csh shells:         source ./{name}_resize.csh\n"
    )
    arguments = ["/bin/sh", "-c", _WRITER, "scontrol", name, csh, sh, said]
    session.output.execute(arguments, {"PATH": environment.get("PATH", os.defpath)})
