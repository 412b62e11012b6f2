"""Prologs, epilogs and the turns of gang scheduling, where jobs are pods on real nodes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "e2e"))

from embedded import Cluster, end_cluster, make_cluster, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs of several users")

PROGRAMS = """
Prolog=ROOT/work/prolog
Epilog=ROOT/work/epilog
PrologSlurmctld=ROOT/work/prolog_slurmctld
EpilogSlurmctld=ROOT/work/epilog_slurmctld
SchedulerParameters=requeue_delay=1
"""

BODY = """#!/bin/sh
umask 0
echo "$SLURM_SCRIPT_CONTEXT $SLURMD_NODENAME $(id -un)" >>{work}/ran.$SLURM_JOB_ID
echo "print in $SLURM_SCRIPT_CONTEXT"
test ! -e {work}/{name}.fails
"""

GANG = """
PreemptMode=GANG
SchedulerTimeSlice=5
PartitionName=shared Nodes=n1 OverSubscribe=FORCE:2 MaxTime=1:00:00 State=UP
"""


@pytest.fixture(scope="module")
def prepared(real_nodes: list[str]) -> Iterator[Cluster]:
    """A cluster whose four programs, in a volume of its pods, write down that they ran."""
    made = make_cluster(kubernetes={"slurm": PROGRAMS})
    for name in ("prolog", "epilog", "prolog_slurmctld", "epilog_slurmctld"):
        program = made.work / name
        program.write_text(BODY.format(work=made.work, name=name))
        program.chmod(0o755)
    yield made
    end_cluster(made)


@pytest.fixture(scope="module")
def gang(real_nodes: list[str]) -> Iterator[Cluster]:
    made = make_cluster(kubernetes={"slurm": GANG})
    yield made
    end_cluster(made)


def ran(cluster: Cluster, job: int) -> list[str]:
    return (cluster.work / f"ran.{job}").read_text().splitlines()


def test_programs_of_a_job_of_two_pods(prepared: Cluster) -> None:
    script = "#!/bin/bash\necho batch none none >>ran.$SLURM_JOB_ID\nsrun -l true\n"
    job = int(prepared.ok("sbatch --parsable -N 2 -n 2 -w n[1-2]", stdin=script, user="nobody"))
    assert prepared.wait_end(job, seconds=60) == "COMPLETED"
    wait_for(lambda: len(ran(prepared, job)) == 7, tell=lambda: str(ran(prepared, job)))
    lines = ran(prepared, job)
    assert lines[0].startswith("prolog_slurmctld ")
    assert lines[1] == "prolog_slurmd n1 nobody"
    assert lines.index("prolog_slurmd n1 nobody") < lines.index("batch none none") < lines.index("epilog_slurmd n1 nobody")
    assert lines.index("prolog_slurmd n2 nobody") < lines.index("epilog_slurmd n2 nobody")
    assert [line.split()[0] for line in lines].count("epilog_slurmctld") == 1


def test_a_prolog_that_fails_has_the_job_wait_held(prepared: Cluster) -> None:
    (prepared.work / "prolog.fails").touch()
    try:
        job = prepared.submit("-w n3 --wrap 'echo never'")
        wait_for(lambda: prepared.ok(f"squeue -h -j {job} -o '%T %r'") == "PENDING launch failed requeued held", seconds=60)
    finally:
        (prepared.work / "prolog.fails").unlink()
    assert prepared.ok("sinfo -h -n n3 -o %T") != "drained", "what runs in a pod is the user's to say"
    prepared.ok(f"scontrol release {job}")
    assert prepared.wait_end(job, seconds=60) == "COMPLETED"


def test_jobs_of_one_node_take_turns(gang: Cluster) -> None:
    """Each stands still while the other one has its turn, and both come to their end."""
    body = "for i in $(seq 120); do echo $(date +%s); sleep 0.2; done"
    jobs = [gang.submit(f"-p shared --exclusive=user --mem=100 -n 8 --wrap '{body}'") for _ in range(2)]
    states = set()
    end = time.monotonic() + 25
    while time.monotonic() < end:
        states.add(tuple(gang.ok(f"squeue -h -j {job} -o %T") for job in jobs))
        time.sleep(0.5)
    assert {("RUNNING", "SUSPENDED"), ("SUSPENDED", "RUNNING")} <= states
    for job in jobs:
        assert gang.wait_end(job, seconds=90) == "COMPLETED"
        seconds = [int(line) for line in gang.output(job).split()]
        assert max(later - earlier for earlier, later in pairwise(seconds)) >= 4, "it stood still"
