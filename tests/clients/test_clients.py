"""Programs written for Slurm do real work through slurmk, unmodified."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import installed
from embedded import Cluster

pytestmark = pytest.mark.timeout(300)

HERE = Path(__file__).parent

OPENED = ("java.lang", "java.io", "java.nio", "java.net", "java.util", "java.util.regex", "sun.nio.ch", "sun.nio.fs")
"""Packages of Java that nextflow's own launcher opens to it."""


def work_of(cluster: Cluster, name: str) -> Path:
    """A fresh directory for one client."""
    work = cluster.work / name
    work.mkdir()
    return work


LIBRARIES = (
    "submitit",
    "dask_jobqueue",
    "psij",
    "parsl",
    "executorlib",
    "cluster_tools",
    "cfut",
    "flow",
    "maestrowf",
    "ipyparallel",
    "reportseff",
    "simple_slurm",
    "slurminade",
    "toil",
    "qtoolkit",
    "hydra",
    "easy_slurm",
    "nodetop",
    "batchspawner",
    "torchx",
    "law",
    "dpdispatcher",
    "libensemble",
    "jug",
)
"""Modules of clients; programs/with_NAME.py makes use of each."""


@pytest.mark.parametrize("name", LIBRARIES)
def test_library(cluster: Cluster, clients: Path, name: str) -> None:
    installed(clients, name)
    work = work_of(cluster, name)
    done = cluster.run(
        f"{clients}/python {HERE}/programs/with_{name}.py {work}",
        environment={"HOME": str(work)},
        directory=work,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"{name.replace('_', '-')} is content"
    assert cluster.ok("squeue -h") == ""


@pytest.mark.parametrize("status_command", ["sacct", "squeue"])
def test_snakemake(cluster: Cluster, clients: Path, status_command: str) -> None:
    installed(clients, "snakemake_executor_plugin_slurm")
    work = work_of(cluster, f"snakemake-{status_command}")
    options = f"--slurm-status-command {status_command} --slurm-init-seconds-before-status-checks 1"
    done = cluster.run(
        f"{clients}/snakemake --snakefile {HERE}/programs/Snakefile --directory {work} --executor slurm --jobs 4"
        f" --default-resources slurm_partition=debug --latency-wait 5 --seconds-between-status-checks 2 {options}",
        environment={"HOME": str(work), "XDG_CACHE_HOME": f"{work}/cache"},
        directory=work,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (work / "total.txt").read_text() == "0 2\n1 2\n2 2\n3 2\ncpu\n"
    comments = cluster.ok("sacct -X -n -P -o partition,state,alloccpus -S now-10minutes | sort | uniq -c")
    assert "cpu|COMPLETED" in comments


def test_nextflow(cluster: Cluster, clients: Path) -> None:
    classpath = clients.parent / "nextflow.classpath"
    if not classpath.exists() or shutil.which("java") is None:
        pytest.skip("nextflow is not there: `make clients` fetches it where there are Java and Maven")
    work = work_of(cluster, "nextflow")
    for name in ("main.nf", "nextflow.config"):
        shutil.copy(HERE / "nextflow" / name, work)
    opened = " ".join(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED)
    done = cluster.run(
        f"java -Xmx700m {opened} -cp {classpath.read_text()} nextflow.cli.Launcher run main.nf -ansi-log false",
        environment={"HOME": str(work), "NXF_HOME": f"{work}/home", "NXF_OFFLINE": "true"},
        directory=work,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("told: "))
    elements = [f"told: element {letter} of an array" for letter in "abc"]
    assert told == [*elements, "told: sized 1 2", "told: sized 2 2", "told: tried again"], done.stdout
    assert "exit status (3) -- Error is ignored" in done.stdout
    assert "exit status (137) -- Execution is retried" in done.stdout


def test_reframe(cluster: Cluster, clients: Path) -> None:
    installed(clients, "reframe")
    work = work_of(cluster, "reframe")
    done = cluster.run(
        f"{clients}/reframe -C {HERE}/reframe_checks/settings.py -c {HERE}/reframe_checks/tasks.py -r"
        f" --prefix {work} --report-file {work}/report.json --flex-alloc-nodes=idle",
        environment={"HOME": str(work), "RFM_ENABLE_RESULTS_STORAGE": "n"},
        directory=work,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout
    assert "Ran 3/3 test case(s)" in done.stdout
