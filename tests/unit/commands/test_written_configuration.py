"""scontrol write config: the file is read back as the site that it was written of."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from command_fakes import FakeController, run_command

from slurmk.commands.written_configuration import written_configuration
from slurmk.core.machine import Machine
from slurmk.model.configuration import load_site
from slurmk.model.site import Site

SITE = Path(__file__).parents[2] / "reference" / "site"

CONF = """ClusterName=c
KillWait=7
MinJobAge=60
SchedulerParameters=bf_interval=2
SlurmUser=root
MailProg=/opt/mail
Licenses=matlab:4
NodeName=n[1-3] CPUs=4 Sockets=2 CoresPerSocket=2 RealMemory=1000 TmpDisk=10 Weight=3 Feature=a,b Port=[7001-7003]
NodeName=m1 CPUs=2 RealMemory=10
PartitionName=p Nodes=n[1-3] Default=YES MaxTime=1-00:00:00 DefaultTime=5 OverSubscribe=FORCE:2 PriorityTier=4 AllowGroups=x,y
PartitionName=q Nodes=ALL DenyAccounts=z MaxNodes=1 RootOnly=YES State=DRAIN LLN=YES DefMemPerCPU=5
"""


def read(text: str) -> Site:
    return load_site(lambda name: text if name.endswith("/slurm.conf") else None, "/etc/c")


def again(site: Site) -> Site:
    return read(written_configuration(Machine(site), 1_796_000_000.0))


def same(first: Site, second: Site) -> None:
    for partition, other in zip(first.partitions, second.partitions, strict=True):
        assert replace(partition, node_spec="") == replace(other, node_spec="")
    assert first.nodes == second.nodes
    assert dict(first.parameters) == dict(second.parameters)
    plain = {"nodes": (), "partitions": (), "parameters": {}, "unused_keys": ()}
    assert replace(first, **plain) == replace(second, **plain)  # type: ignore[arg-type]


def test_it_says_the_same() -> None:
    site = read(CONF)
    same(site, again(site))


def test_a_whole_site() -> None:
    site = load_site(lambda name: Path(name).read_text() if Path(name).exists() else None, str(SITE))
    found = replace(again(site), switches=site.switches, blocks=site.blocks)
    found = replace(found, parameters={**found.parameters, "SLURM_CONF": site.parameters["SLURM_CONF"]})
    without_files = tuple(replace(node, gres=tuple(replace(gres, files=()) for gres in node.gres)) for node in site.nodes)
    same(replace(site, nodes=without_files), replace(found, warnings=()))


def test_the_caller_writes_it(tmp_path: Path) -> None:
    said = run_command(FakeController(), "scontrol", "write", "config", f"{tmp_path}/out")
    assert said.output.executed is not None
    words, environment = said.output.executed
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    [path] = tmp_path.iterdir()
    assert (done.returncode, done.stdout) == (0, f"Slurm config saved to {path}\n")
    assert path.name.startswith("out.2")
    assert path.stat().st_mode & 0o777 == 0o644
    assert "\nPartitionName=debug Default=YES " in path.read_text()
    nowhere = run_command(FakeController(), "scontrol", "write", "config", "/nonexistent/x").output.executed
    assert nowhere is not None
    failed = subprocess.run(nowhere[0], env=nowhere[1], capture_output=True, text=True, check=False)
    assert failed.stderr.startswith("Could not create file /nonexistent/x.2")
    assert failed.stderr.endswith(": No such file or directory\n")
