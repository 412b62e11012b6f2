"""srun --pty, Ctrl-C, and programs before and after steps."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from embedded import SITE, Cluster, end_cluster, make_cluster
from on_kubernetes import embedded_only
from terminals import Terminal


def test_a_shell_in_a_terminal(cluster: Cluster) -> None:
    shell = Terminal("srun --pty bash --norc -i", cluster.environment, cluster.work, (33, 77))
    shell.press("stty size; tty; echo $SLURM_PTY_WIN_ROW-$SLURM_PTY_WIN_COL-$SLURM_PROCID\n")
    shell.wait_for("33 77\n")
    shell.wait_for("/dev/pts/")
    shell.wait_for("33-77-0\n")
    shell.resize(20, 40)
    shell.press("sleep 0.3; stty size\n")
    shell.wait_for("20 40\n")
    shell.press("echo be''gun; sleep 60; echo went on\n")
    shell.wait_for("begun")
    time.sleep(0.5)  # until the sleep is what the terminal belongs to
    shell.press("\x03")
    shell.press("exit 7\n")
    assert shell.end() == 7
    assert "task 0: Exited with exit code 7" in shell.shown


def test_only_the_first_task_has_the_terminal(cluster: Cluster) -> None:
    shell = Terminal("srun -n3 --pty bash -c 'tty >&2; exit $SLURM_PROCID'; echo code $?", cluster.environment, cluster.work)
    shell.wait_for("code 2")
    assert shell.shown.count("not a tty") == 0
    assert shell.end() == 0


@pytest.mark.parametrize("options", ["-n2", "-N2"])
def test_a_shell_ends_though_other_tasks_would_read(cluster: Cluster, options: str) -> None:
    shell = Terminal(f"srun {options} --pty bash --norc -i; echo code $?", cluster.environment, cluster.work)
    shell.press("echo task $SLURM_PROCID of $SLURM_NTASKS\n")
    shell.wait_for("task 0 of 2\n")
    shell.press("exit 3\n")
    shell.wait_for("code 3", 10)
    assert shell.end() == 0


def test_without_a_terminal_there_is_none_to_give(cluster: Cluster) -> None:
    done = cluster.run("srun --pty cat", stdin="hi\n")
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert done.stderr == (
        "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n"
        "srun: error: Not using a pseudo-terminal, disregarding --pty option\n"
    )


def test_terminals_that_cannot_be_given(cluster: Cluster) -> None:
    together = "srun: error: --error/--input/--output are incompatible with --pty\n"
    for options, code, errors in (
        ("--pty -o x", 1, together),
        ("--pty -i none", 1, together),
        ("--pty=x", 1, "srun: fatal: --pty=x must be numeric file descriptor\n"),
    ):
        done = cluster.run(f"srun {options} true")
        assert (done.returncode, done.stderr) == (code, errors), options


def test_two_interrupts_within_a_second_end_the_step(cluster: Cluster) -> None:
    shell = Terminal("srun bash -c 'echo ready; exec sleep 300'; echo code $?", cluster.environment, cluster.work)
    shell.wait_for("ready\n")
    shell.press("\x03")
    shell.wait_for("srun: interrupt (one more within 1 sec to abort)\n")
    shell.wait_for("task 0: running\n")
    shell.press("\x03")
    shell.wait_for("srun: sending Ctrl-C to StepId=")
    shell.wait_for("srun: forcing job termination\n")
    shell.wait_for("code 137", 60)
    assert shell.end() == 0


def test_signals_that_are_ignored(cluster: Cluster) -> None:
    command = "srun --ignore-signals=INT bash -c 'echo ready; sleep 2; echo unharmed'"
    shell = Terminal(command, cluster.environment, cluster.work)
    shell.wait_for("ready\n")
    shell.press("\x03\x03")
    shell.wait_for("unharmed")
    assert shell.end() == 0


def program(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)
    return path


def test_prologs_and_epilogs_of_tasks(cluster: Cluster) -> None:
    before = program(cluster.work / "before", 'echo "print before $SLURM_PROCID"; echo "export SET=by-prolog"; exit ${CODE:-0}')
    after = program(cluster.work / "after", 'echo "after $SLURM_PROCID $SLURM_SCRIPT_CONTEXT" >&2')
    options = f"--task-prolog={before} --task-epilog={after}"
    done = cluster.run(f"srun -n2 {options} bash -c 'echo $SET'")
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", "before 0", "before 1", "by-prolog", "by-prolog"])
    assert sorted(done.stderr.splitlines()) == ["after 0 epilog_task", "after 1 epilog_task"]
    done = cluster.run(f"srun {options} echo never", environment={"CODE": "4"})
    assert done.returncode == 4
    assert "never" not in done.stdout
    assert "error: --task-prolog failed status=4\n" in done.stderr


def test_an_epilog_of_a_task_has_five_seconds(cluster: Cluster) -> None:
    after = program(cluster.work / "late_epilog", "sleep 60")
    done = cluster.run(f"srun -n2 -O --task-epilog={after} true", timeout=30)
    assert done.returncode == 0
    assert [line.partition("] ")[2] for line in done.stderr.splitlines()] == ["error: TaskEpilog failed status=9"] * 2


def test_prolog_and_epilog_of_srun(cluster: Cluster) -> None:
    hook = program(cluster.work / "hook", 'echo "$SLURM_SCRIPT_CONTEXT $SLURM_STEP_ID $SLURM_NTASKS $*"; exit ${CODE:-0}')
    command = f"srun -n1 --prolog={hook} --epilog={hook} echo ran"
    assert cluster.ok(command) == "prolog_srun 0 1 echo ran\nran\nepilog_srun 0 1 echo ran"
    done = cluster.run(command, environment={"CODE": "3"})
    assert done.returncode != 0
    assert "srun: error: srun prolog failed rc = 3. Aborting step.\n" in done.stderr
    assert done.stderr.endswith("srun: error: srun epilog failed status=3\n")


@pytest.fixture
def with_affinity(tmp_path: Path) -> Cluster:
    (tmp_path / "slurm.conf").write_text((SITE / "slurm.conf").read_text() + "TaskPlugin=task/affinity\n")
    (tmp_path / "gres.conf").write_text((SITE / "gres.conf").read_text())
    tmp_path.chmod(0o755)
    cluster = make_cluster("--conf", str(tmp_path))
    yield cluster
    end_cluster(cluster)


@embedded_only("the nodes' slurm.conf there is another, without task/affinity")
def test_tasks_are_bound_to_cpus(with_affinity: Cluster) -> None:
    show = 'bash -c \'grep -o "Cpus_allowed_list.*" /proc/self/status | tr -d "\\t"; echo $SLURM_CPU_BIND\''
    done = with_affinity.run(f"srun -n1 --cpu-bind=verbose,map_cpu:0 {show}")
    assert done.stdout == "Cpus_allowed_list:0\nverbose,map_cpu:0\n"
    assert done.stderr.startswith("cpu-bind=MAP  - n")
    assert done.stderr.endswith("]: mask 0x1 set\n")
    assert with_affinity.ok(f"srun -n1 --cpu-bind=none {show}").endswith("quiet,none")
    refused = with_affinity.run("srun -n1 --cpu-bind=map_cpu:500 true")
    assert refused.returncode == 192
    assert refused.stderr.endswith(
        "srun: error: Application launch failed: Unable to satisfy cpu bind request\nsrun: Job step aborted\n"
    )
