"""A program that strigger set is run, as who set it, also when the controller was killed in between."""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path

from embedded import Cluster, wait_for


def test_a_program_is_run_when_a_job_ends(own_cluster: Cluster) -> None:
    program = own_cluster.work / "told"
    program.write_text(f'#!/bin/sh\necho "$(id -un) $*" >>{own_cluster.work}/told.log\n')
    program.chmod(0o755)
    job = own_cluster.submit("-o /dev/null --wrap 'sleep 300'")
    own_cluster.wait_state(job, "RUNNING")
    own_cluster.ok(f"strigger --set -j {job} --fini -p '{program} word'")
    own_cluster.ok(f"strigger --set -n n8 --drained -p {program}")
    kill_controller(own_cluster)
    own_cluster.up()
    assert [line.split()[3] for line in own_cluster.ok("strigger --get -N").splitlines()] == ["fini", "drained"]
    own_cluster.ok("scontrol update nodename=n8 state=drain reason=x")
    own_cluster.ok(f"scancel {job}")
    log = own_cluster.work / "told.log"
    wait_for(lambda: log.exists() and len(log.read_text().splitlines()) == 2)
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert sorted(log.read_text().splitlines()) == sorted([f"{user} word {job}", f"{user} n8"])
    assert own_cluster.ok("strigger --get") == ""


def kill_controller(cluster: Cluster) -> None:
    """As a crash would."""
    process = int(Path(cluster.directory / "controller.lock").read_text())
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{process}").exists() or "Z" in Path(f"/proc/{process}/stat").read_text().split()[2])
