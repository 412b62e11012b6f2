"""Prologs and epilogs of slurm.conf on a whole cluster."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import on_kubernetes
import pytest
from embedded import SITE, Cluster, end_cluster, make_cluster, wait_for

pytestmark = pytest.mark.skipif(on_kubernetes.CHOSEN, reason="programs are files of the pods there")

PROGRAMS = ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")

BODY = """#!/bin/sh
echo "$SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID $SLURMD_NODENAME $SLURM_JOB_EXIT_CODE2" >> {folder}/ran
test ! -e {folder}/{name}.waits || while [ -e {folder}/{name}.waits ]; do sleep 0.05; done
test ! -e {folder}/{name}.fails
"""


def prepare(folder: Path, *lines: str) -> Cluster:
    """A cluster with all four programs, which tell that they ran, and wait or fail while there is a file that says so."""
    shutil.copytree(SITE, folder)
    for name in PROGRAMS:
        program = folder / name
        program.write_text(BODY.format(folder=folder, name=name))
        program.chmod(0o755)
    with (folder / "slurm.conf").open("a") as file:
        file.write("".join(f"{name}={folder}/{name}\n" for name in PROGRAMS) + "".join(f"{line}\n" for line in lines))
    return make_cluster("--conf", str(folder))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Path]]:
    """One cluster for all tests; each of them takes another node."""
    folder = tmp_path_factory.mktemp("site") / "conf"
    cluster = prepare(folder)
    yield cluster, folder
    end_cluster(cluster)


@pytest.fixture
def prepared(site: tuple[Cluster, Path]) -> Iterator[tuple[Cluster, Path]]:
    """The same, with programs that neither wait nor fail."""
    yield site
    for name in PROGRAMS:
        for word in ("waits", "fails"):
            (site[1] / f"{name}.{word}").unlink(missing_ok=True)


def ran(folder: Path, job: int) -> list[str]:
    """What ran for a job, in order."""
    if not (folder / "ran").exists():
        return []
    return [line.rstrip() for line in (folder / "ran").read_text().splitlines() if line.split()[1] == str(job)]


def test_all_of_them_run_around_a_job(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    (folder / "Epilog.waits").touch()
    job = cluster.submit("-w n7 --wrap 'exit 3'")
    cluster.wait_state(job, "COMPLETING")
    assert cluster.ok("sinfo -h -n n7 -p debug -o %T") == "completing"
    (folder / "Epilog.waits").unlink()
    assert cluster.wait_end(job) == "FAILED"
    lines = ran(folder, job)
    assert lines[:2] == [f"prolog_slurmctld {job}", f"prolog_slurmd {job} n7"]
    assert sorted(lines[2:]) == [f"epilog_slurmctld {job}  3:0", f"epilog_slurmd {job} n7 3:0"]


def test_a_failed_prolog_drains_the_node_and_holds_the_job(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    (folder / "Prolog.fails").touch()
    job = cluster.submit("-w n1 --wrap true")
    wait_for(lambda: cluster.field(job, "Reason") == "launch_failed_requeued_held")
    assert cluster.ok("sinfo -h -n n1 -p debug -o '%T %E'") == "drained Prolog error"
    assert cluster.field(job, "Restarts") == "1"
    done = cluster.run("srun -w n2 hostname")
    assert done.returncode == 182
    assert re.search(r"Task launch for StepId=\d+\.0 failed on node n2: Job prolog failed", done.stderr)
    assert "srun: Prolog failure on node n2\n" in done.stderr
    done = cluster.run("salloc -w n8 srun hostname")
    assert "salloc: Prolog failure on node n8\n" in done.stderr
    assert "srun: Prolog failure" not in done.stderr
    job = re.findall(r"allocation (\d+)", done.stderr)[0]
    assert cluster.wait_end(job) == "CANCELLED"
    assert cluster.field(job, "ExitCode") == "0:0"


def test_a_failed_epilog_drains_the_node(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    (folder / "Epilog.fails").touch()
    job = cluster.submit("-w n3 --wrap true")
    assert cluster.wait_end(job) == "COMPLETED"
    assert cluster.ok("sinfo -h -n n3 -p debug -o '%T %E'") == "drained Epilog error"


@pytest.fixture
def allocating(tmp_path: Path) -> Iterator[Cluster]:
    cluster = prepare(tmp_path / "conf", "PrologFlags=Alloc")
    yield cluster
    end_cluster(cluster)


def test_a_job_waits_for_its_prologs(allocating: Cluster, tmp_path: Path) -> None:
    cluster, folder = allocating, tmp_path / "conf"
    (folder / "Prolog.waits").touch()
    job = cluster.submit("-w n[1-2] -N 2 --wrap true")
    wait_for(lambda: cluster.field(job, "Reason") == "Prolog")
    assert cluster.state(job) == "RUNNING"
    wait_for(lambda: len(ran(folder, job)) == 3)
    (folder / "Prolog.waits").unlink()
    assert cluster.wait_end(job) == "COMPLETED"


def test_accounting_tells_of_failed_prologs(allocating: Cluster, tmp_path: Path) -> None:
    (tmp_path / "conf" / "Prolog.fails").touch()
    assert allocating.run("srun -w n1 true").returncode == 1
    job = allocating.submit("-w n2 --wrap true")
    wait_for(lambda: allocating.field(job, "Restarts") == "1")
    lines = allocating.ok("sacct -n -P -X -D -o state,exitcode").splitlines()
    assert lines[:2] == ["CANCELLED by 0|0:54", "REQUEUED|0:54"]


def test_the_epilog_of_a_job_that_is_queued_again_hears_of_its_end(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    job = cluster.submit("-w n5 --wrap 'sleep 100'")
    cluster.wait_state(job, "RUNNING")
    cluster.ok(f"scontrol requeue {job}")
    wait_for(lambda: f"epilog_slurmctld {job}  0:0" in ran(folder, job))
    cluster.ok(f"scancel {job}")


def test_the_controllers_programs_hold_a_job_back_and_up(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    for name in ("PrologSlurmctld", "EpilogSlurmctld"):
        (folder / f"{name}.waits").touch()
    job = cluster.submit("-w n4 --wrap true")
    cluster.wait_state(job, "CONFIGURING")
    wait_for(lambda: ran(folder, job) == [f"prolog_slurmctld {job}"])
    (folder / "PrologSlurmctld.waits").unlink()
    cluster.wait_state(job, "COMPLETING")
    wait_for(lambda: cluster.ok("sinfo -h -n n4 -p debug -o %T") == "idle")
    assert cluster.state(job) == "COMPLETING"
    (folder / "EpilogSlurmctld.waits").unlink()
    assert cluster.wait_end(job) == "COMPLETED"


def test_the_controllers_failed_prolog(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    (folder / "PrologSlurmctld.fails").touch()
    job = cluster.submit("-w n5 --wrap true")
    wait_for(lambda: cluster.field(job, "Restarts") == "1")
    assert cluster.field(job, "Reason") == "BeginTime"
    done = cluster.run("srun -w n5 hostname")
    assert (done.returncode, done.stderr) == (1, "srun: PrologSlurmctld failed, job killed\n")


def test_a_job_that_is_cancelled_ends_its_prolog(prepared: tuple[Cluster, Path]) -> None:
    cluster, folder = prepared
    (folder / "PrologSlurmctld.waits").touch()
    job = cluster.submit("-w n6 --wrap true")
    wait_for(lambda: ran(folder, job) == [f"prolog_slurmctld {job}"])
    cluster.ok(f"scancel {job}")
    assert cluster.wait_end(job) == "CANCELLED"
    assert ran(folder, job)[1:] == [f"epilog_slurmctld {job}  0:0"]
