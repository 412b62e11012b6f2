"""Mails leave by the site's program: what it is called with, and that it can neither hold up nor be misled."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk.core.effects import Mail
from slurmk.core.machine import Machine
from slurmk.daemon.mail import Mailer, is_address
from slurmk.model.job import Allocation, Credentials, Job, JobRequest, NodeShare
from slurmk.model.node import Node, Partition
from slurmk.model.site import Site
from slurmk.model.states import JobState

SITE = Site("reference", (Node("n1", cpus=8, memory=16000),), (Partition("debug", ("n1",), default=True),))

JOB = Job(
    7,
    JobRequest(comment="c c", current_working_directory="/w", standard_error="/w/e%j"),
    Credentials(1000, 1000, "alice", "users"),
    submit_time=100,
    name="x",
    account="phys",
    partitions=("debug",),
    sluid="s0000000000000",
    start_time=110,
    end_time=120,
    exit_code=768,
    state=JobState.FAILED,
    allocation=Allocation("debug", (NodeShare("n1", 2, 100, 1),)),
)


@dataclass
class Post:
    """A mail program that writes down what it is told, one file a call."""

    folder: Path
    body: str = 'f=$(mktemp "$OUT/mail.XXXXXX"); { printf "%s\\n" "$#" "$@"; pwd; id -u; env -0 | tr "\\0" "\\n"; } >"$f"'
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        program = self.folder / "mailprog"
        program.write_text("#!/bin/bash\n" + self.body.replace("$OUT", str(self.folder)))
        program.chmod(0o755)
        self.machine = Machine(replace(SITE, parameters={"MailProg": str(program)}))

    def send(self, *mails: Mail, seconds: float = 5.0) -> float:
        """Send them all; how long ``send`` itself took."""

        async def sending() -> float:
            mailer = Mailer(lambda: self.machine, lambda: 200.0, seconds)
            began = time.monotonic()
            for mail in mails:
                mailer.send(mail)
            took = time.monotonic() - began
            await mailer.all_sent()
            return took

        return asyncio.run(sending())

    def calls(self) -> list[list[str]]:
        return [path.read_text().splitlines() for path in sorted(self.folder.glob("mail.*"))]


def mail(address: str = "alice@example.org", subject: str = "Slurm Job_id=7 Name=x Failed", job: Job = JOB) -> Mail:
    return Mail(job, "FAIL", address, subject, (("SLURM_JOB_MAIL_TYPE", "Failed"), ("SLURM_JOB_RUN_TIME", "00:00:10")))


def test_what_the_program_is_told(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.send(mail())
    [call] = post.calls()
    assert call[:6] == ["3", "-s", "Slurm Job_id=7 Name=x Failed", "alice@example.org", "/", str(os.getuid())]
    told = dict(line.split("=", 1) for line in call[6:] if line.startswith("SLURM"))
    assert told == {
        "SLURM_CLUSTER_NAME": "reference",
        "SLURM_JOBID": "7",
        "SLURM_JOB_ACCOUNT": "phys",
        "SLURM_JOB_COMMENT": "c c",
        "SLURM_JOB_CPUS_PER_NODE": "2",
        "SLURM_JOB_DERIVED_EC": "0",
        "SLURM_JOB_END_TIME": "120",
        "SLURM_JOB_EXCLUSIVE": "NO",
        "SLURM_JOB_EXIT_CODE": "768",
        "SLURM_JOB_EXIT_CODE2": "3:0",
        "SLURM_JOB_GID": "1000",
        "SLURM_JOB_GROUP": "users",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_MAIL_TYPE": "Failed",
        "SLURM_JOB_NAME": "x",
        "SLURM_JOB_NODELIST": "n1",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_OVERSUBSCRIBE": "NO",
        "SLURM_JOB_PARTITION": "debug",
        "SLURM_JOB_QOS": "normal",
        "SLURM_JOB_RESTART_COUNT": "0",
        "SLURM_JOB_RUN_TIME": "00:00:10",
        "SLURM_JOB_SLUID": "s0000000000000",
        "SLURM_JOB_START_TIME": "110",
        "SLURM_JOB_STATE": "FAILED",
        "SLURM_JOB_STDERR": "/w/e%j",
        "SLURM_JOB_STDIN": "/dev/null",
        "SLURM_JOB_STDOUT": "slurm-%j.out",
        "SLURM_JOB_UID": "1000",
        "SLURM_JOB_USER": "alice",
        "SLURM_JOB_WORK_DIR": "/w",
    }


def test_a_waiting_element_of_an_array(tmp_path: Path) -> None:
    post = Post(tmp_path)
    waiting = replace(JOB, state=JobState.PENDING, allocation=None, array_job_id=7, array_tasks=(range(1, 4),))
    element = replace(JOB, array_job_id=7, array_task_id=5, request=replace(JOB.request, array="1-9:4"))
    post.send(mail(job=waiting))
    [call] = post.calls()
    assert [
        line for line in call if line.startswith(("SLURM_ARRAY", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM", "SLURM_JOB_EXIT_"))
    ] == [line for line in call if line in ("SLURM_ARRAY_JOB_ID=7", "SLURM_JOB_NODELIST=(null)")]
    post.send(mail(job=element))
    told = {line for call in post.calls() for line in call}
    assert {"SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_MAX=9", "SLURM_ARRAY_TASK_STEP=4"} <= told


def test_many_go_a_few_at_a_time_and_nobody_waits(tmp_path: Path) -> None:
    post = Post(tmp_path, 'mkdir "$OUT/$$.now"; ls -d "$OUT"/*.now | wc -l >"$OUT/mail.$$"; sleep 0.05; rmdir "$OUT/$$.now"')
    assert post.send(*[mail()] * 12) < 1.0
    calls = post.calls()
    assert len(calls) == 12
    assert max(int(line) for [line] in calls) <= 4


def test_a_program_that_hangs_is_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    post = Post(tmp_path, 'sleep 60 & echo $! >"$OUT/mail.pid"; wait')
    began = time.monotonic()
    post.send(mail(), seconds=0.3)
    assert time.monotonic() - began < 10
    [[number]] = post.calls()
    while _alive(number):
        assert time.monotonic() - began < 20
        time.sleep(0.02)
    assert "was ended" in caplog.text


def _alive(number: str) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_missing_program_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    post = Post(tmp_path)
    (tmp_path / "mailprog").unlink()
    post.send(mail(), mail())
    assert caplog.text.count("cannot be run") == 1


def test_a_subject_is_one_line(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.send(mail(subject="Slurm Name=a\nBcc: all@example.org\x00 Began"))
    assert post.calls()[0][2] == "Slurm Name=a Bcc: all@example.org  Began"


GOOD = ("alice", "a@b.c", "a.b+c@d-e.f", "alice,bob", "a b", '"A B" a@b', "_x", "ä@ö.de", "me@[::1]", "a;b")


@pytest.mark.parametrize("address", GOOD)
def test_addresses(address: str) -> None:
    assert is_address(address)


BAD = ("", "-Sx", "|sh", "/etc/passwd", "a,|sh", "a -x", "+folder", "~x", "a`id`", "x/y", "a\n-x", ",", "&", "!ls", "a\\b")


@pytest.mark.parametrize("address", BAD)
def test_what_is_no_address_is_not_sent(address: str, tmp_path: Path) -> None:
    assert not is_address(address)
    post = Post(tmp_path)
    post.send(mail(address=address))
    assert post.calls() == []


@given(st.text(max_size=40))
def test_no_address_starts_a_word_that_a_program_acts_on(text: str) -> None:
    if is_address(text):
        assert not any(word[:1] in "-|/+~!&" for word in text.replace(",", " ").replace(";", " ").split())
