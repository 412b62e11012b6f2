"""scontrol: records, changes, messages and exit codes, as recorded from Slurm 26.05."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_fakes import ALICE, BOB, NOBODY, ROOT, SCRIPT, FakeController, reference_site, run_command

from slurmk.model.states import JobState, NodeFlag


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


HELD = """\
JobId=1 JobName=wrap
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=0 Nice=0 Account=phys QOS=normal
   JobState=PENDING Reason=JobHeldUser Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=00:10:00 TimeMin=N/A
   SubmitTime=2026-11-30T12:00:00 EligibleTime=Unknown
   AccrueTime=Unknown
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-30T12:00:00 Scheduler=Main
   Partition=debug AllocNode:Sid=localhost:77
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=
   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=1,mem=100M,node=1,billing=1
   AllocTRES=(null)
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)
   Command=(null)
   SubmitLine=sbatch x
   WorkDir=/w
   StdErr=
   StdIn=/dev/null
   StdOut=/w/slurm-1.out

"""

RUNNING = """\
JobId=1 JobName=hhscript
   SLUID=-
   UserId=root(0) GroupId=root(0) MCS_label=N/A
   Priority=- Nice=0 Account=phys QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:02 TimeLimit=00:05:00 TimeMin=N/A
   SubmitTime=2026-11-30T12:00:00 EligibleTime=2026-11-30T12:00:00
   AccrueTime=2026-11-30T12:00:00
   StartTime=2026-11-30T12:00:00 EndTime=2026-11-30T12:05:00 Deadline=N/A
   PreemptEligibleTime=2026-11-30T12:00:00 PreemptTime=None
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-30T12:00:00 Scheduler=Main
   Partition=debug AllocNode:Sid=localhost:77
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[1-2]
   BatchHost=n1
   NumNodes=2 NumCPUs=4 NumTasks=4 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=4,mem=400M,node=2,billing=4,gres/gpu=2
   AllocTRES=cpu=4,mem=400M,node=2,billing=4,gres/gpu=2
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:a100:2
     Nodes=n1 CPU_IDs=0-2 Mem=300 GRES=gpu:a100:1(IDX:0)
     Nodes=n2 CPU_IDs=0 Mem=100 GRES=gpu:a100:1(IDX:0)
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)
   Command=/tmp/h/hello.sh
   SubmitLine=sbatch x
   WorkDir=/w
   Comment=a b
   StdErr=
   StdIn=/dev/null
   StdOut=/w/1.out
   TresPerNode=gres/gpu:1
   MailUser=bob MailType=END,FAIL

"""


def test_show_a_held_job(controller: FakeController) -> None:
    controller.submit(hold=True, account="phys")
    assert run_command(controller, "scontrol", "show", "job", "1").out == HELD
    for words in (["jobid", "1"], ["job=1"], ["JobId=1"]):
        assert run_command(controller, "scontrol", "show", *words).out == HELD
    joined = run_command(controller, "scontrol", "-o", "show", "job", "1").out
    assert joined == " ".join(line.strip() for line in HELD.strip().splitlines()) + "\n"


def test_show_a_running_job_in_detail(controller: FakeController) -> None:
    controller.submit(
        name="hhscript",
        command="/tmp/h/hello.sh",
        account="phys",
        minimum_nodes=2,
        maximum_nodes=2,
        tasks=4,
        time_limit=5,
        tres_per_node="gres/gpu:1",
        comment="a b",
        standard_output="/w/%j.out",
        mail_type=("END", "FAIL"),
        mail_user="bob",
    )
    controller.start_all()
    controller.time += 2
    job = controller.machine.jobs[1]
    said = run_command(controller, "scontrol", "-d", "show", "job", "1").out
    assert said.replace(job.sluid, "-").replace(f"Priority={job.priority}", "Priority=-") == RUNNING


def test_show_the_elements_of_an_array(controller: FakeController) -> None:
    controller.submit(array="0-99:3%7", hold=True)
    first = run_command(controller, "scontrol", "show", "job", "1").out.splitlines()[0]
    assert first == "JobId=1 ArrayJobId=1 ArrayTaskId=0-99:3%7 ArrayTaskThrottle=7 JobName=wrap"
    said = run_command(controller, "scontrol", "show", "job", "1_3").out
    assert said.startswith("JobId=1 ArrayJobId=1 ArrayTaskId=3 ArrayTaskThrottle=7 JobName=wrap\n")
    assert said.endswith("StdOut=/w/slurm-1_3.out\n\n")


INVALID = "Invalid job id specified"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("show job 999999", f"slurm_load_jobs error: {INVALID}\n"),
        ("sho jo 999999", f"slurm_load_jobs error: {INVALID}\n"),
        ("show job abc", f"scontrol_print_job error: {INVALID}\n"),
        ("show job 1.0", f"scontrol_print_job error: {INVALID}\n"),
        ("show job 1,2", f"scontrol_print_job error: {INVALID}\n"),
        ("show job 1_9", "Job 1_9 not found\n"),
        ("show job 1 2", "too many arguments for keyword:show\n"),
        ("show", "too few arguments for keyword:show\n"),
        ("show step 999999", f"scontrol: error: scontrol_print_step: slurm_get_job_steps(999999) failed: {INVALID}\n"),
        ("show step abc", "scontrol: error: scontrol_print_step: slurm_get_job_steps(abc) failed: JobID can not be zero\n"),
        ("foo", "invalid keyword: foo\n"),
        ("hol 1", "invalid keyword: hol\n"),
        ("h 1", "invalid keyword: h\n"),
        ("re 1", "invalid keyword: re\n"),
        ("hold", "too few arguments for keyword:hold\n"),
        ("hold 999999", f"{INVALID} for job 999999\nslurm_suspend error:{INVALID}\n"),
        ("release abc", f"{INVALID} for job abc\nslurm_suspend error:{INVALID}\n"),
        ("requeue", "too few arguments for keyword:requeue\n"),
        ("requeue 999999", f"{INVALID} for job 999999\n"),
        ("requeuehold abc", f"{INVALID} for job abc\n"),
        ("requeue incompletes", f"{INVALID} for job incompletes\n"),
        ("requeue Incom state=SE i 999999", f"{INVALID} for job 999999\n"),
        ("requeuehold State=Special 999999", f"{INVALID} for job State=Special\n{INVALID} for job 999999\n"),
        ("requeue State=S", f"{INVALID} for job State=S\n"),
        ("suspend 999999", "Unexpected message received for job 999999\n"),
        ("resume abc", f"{INVALID} for job abc\n"),
        ("top 999999", f"{INVALID} for job 999999\n"),
        ("update", "too few arguments for update keyword\n"),
        (
            "update foo=bar",
            'No valid entity in update command\nInput line must include "NodeName", "PartitionName", "Reservation", "JobId", '
            'or "SlurmctldDebug"\n',
        ),
        ("update jobid=1", "No changes specified\n"),
        ("update jobid=999999 name=x", f"{INVALID} for job 999999\n"),
        ("update jobid=abc name=x", f"{INVALID} for job abc\n"),
        ("update jobid=1 foo=bar", "Update of this parameter is not supported: foo=bar\nRequest aborted\n"),
        ("update jobid=1 name", "Invalid input: name\nRequest aborted\n"),
        ("update jobid=1 timelimit=foo", "scontrol: error: Invalid TimeLimit value\n"),
        ("update jobid=1 priority=foo", "scontrol: error: Invalid Priority value: foo\n"),
        ("update jobid=1 requeue=foo", "scontrol: error: Invalid Requeue value: foo\n"),
        ("update jobid=1 minmemorynode=1G", "scontrol: error: Invalid MinMemoryNode value: 1G\n"),
        ("update jobid=1 starttime=foo", "Invalid time specification (pos=0): foo\nNo changes specified\n"),
        ("update jobid=1 userid=alice", "No changes specified\n"),
        ("update jobname=nosuchx comment=z", "scontrol: error: No jobs with name 'nosuchx'\n"),
        ("update nodename=nosuch state=drain reason=x", "slurm_update error: Invalid node name specified\n"),
        ("update nodename=n1 state=drain", "You must specify a reason when DOWNING or DRAINING a node. Request denied\n"),
        ("update nodename=n1", "No changes specified\n"),
        ("update nodename=n1 foo=bar", "Update of this parameter is not supported: foo=bar\nRequest aborted\n"),
        (
            "update nodename=n1 state=foo",
            "Invalid input: state=foo\nRequest aborted\n"
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
            "Not all states are valid given a node's prior state\n",
        ),
        ("update partitionname=nosuch state=down", "slurm_update error: Invalid partition name specified\n"),
        (
            "update partitionname=debug state=foo",
            "scontrol: error: Invalid input: state=foo\n"
            "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE\n",
        ),
        (
            "update partitionname=debug foo=bar",
            "scontrol: error: Update of this parameter is not supported: foo=bar\n\nscontrol: error: Request aborted\n",
        ),
        ("update partitionname=debug", "scontrol: error: No changes specified\n"),
        ("write", "too few arguments for keyword:write\n"),
        ("write foo", "invalid write argument:foo\n"),
        ("write batch_script abc", "scontrol: fatal: Bad job/step specified: abc: JobID can not be zero\n"),
        ("wait_job 999999", "scontrol: Problem running job 999999\n"),
        ("wait_job abc", "Invalid job_id abc"),
        ("notify 999999 hi", f"job notify failure: {INVALID}\n"),
        ("notify 1", "too few arguments for keyword:notify\n"),
        ("ping foo", "too many arguments for keyword:ping\n"),
        ("create", "too few arguments for create keyword\n"),
        ("create foo", "scontrol: error: Invalid creation entity: foo\n"),
        ("delete", "too few arguments for delete keyword\n"),
        ("delete foo=x", "Invalid deletion entity: foo=x\n"),
        ("errnumstr foo", "numeric arguments required for keyword:errnumstr\n"),
        ("errnumstr", "one arguments required for keyword:errnumstr\n"),
        ("getaddrs", "one argument required for keyword:getaddrs\n"),
        ("getaddrs n1 n2", "one argument required for keyword:getaddrs\n"),
        ("getaddr n1", "invalid keyword: getaddr\n"),
        ("hostnames", "invalid keyword: hostnames\n"),
        ("-Z", "scontrol: invalid option -- 'Z'\nTry \"scontrol --help\" for more information\n"),
    ],
)
def test_refusals(controller: FakeController, words: str, error: str) -> None:
    controller.submit(hold=True, array="1-3")
    said = run_command(controller, "scontrol", *words.split())
    assert (said.out, said.err, said.code) == ("", error, 1)


@pytest.mark.parametrize(("name", "shown"), [("1.0", "1.0"), ("1", "1.")])
def test_a_step_that_is_not_there_is_no_error_message(controller: FakeController, name: str, shown: str) -> None:
    controller.submit(hold=True)
    said = run_command(controller, "scontrol", "show", "step", name)
    assert (said.out, said.err, said.code) == (f"Job step {shown} not found\n", "", 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("suspend 1", "Access/permission denied for job 1\n"),
        ("hold 1", "Invalid user id for job 1\nslurm_suspend error:Invalid user id\n"),
        ("release 1", "Invalid user id for job 1\nslurm_suspend error:Invalid user id\n"),
        ("requeue 1", "Access/permission denied for job 1\n"),
        ("requeuehold 1", "Access/permission denied for job 1\n"),
        ("update jobid=1 name=x", "Invalid user id for job 1\n"),
        ("top 1", "Access/permission denied for job 1\n"),
        ("notify 1 x", "job notify failure: Invalid user id\n"),
        ("update partitionname=debug state=up", "slurm_update error: Invalid user id\n"),
        ("update nodename=n1 state=resume", "slurm_update error: Invalid user id\n"),
        ("reconfigure", "slurm_reconfigure error:Invalid user id\n"),
        ("shutdown", "slurm_shutdown error:Invalid user id\n"),
    ],
)
def test_what_is_not_the_callers_is_refused(controller: FakeController, words: str, error: str) -> None:
    controller.submit(ROOT)
    controller.start_all()
    before = dict(controller.machine.jobs)
    said = run_command(controller, "scontrol", *words.split(), caller=ALICE)
    assert (said.out, said.err, said.code) == ("", error, 1)
    assert dict(controller.machine.jobs) == before
    assert controller.stopped is None


def test_reconfigure(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "reconfigure")
    assert (said.out, said.err, said.code) == ("", "", 0)
    controller.fault = "/etc/slurm/slurm.conf:3: NodeName: no such thing"
    said = run_command(controller, "scontrol", "reconfigure")
    assert (said.err, said.code) == (f"slurm_reconfigure error:{controller.fault}\n", 1)


@pytest.mark.parametrize(("nodes", "names"), [("n1", ["n1"]), ("n[3,1-2],nope", ["n3", "n1", "n2"]), ("nope", []), ("n[1", [])])
def test_addresses_of_nodes(controller: FakeController, nodes: str, names: list[str]) -> None:
    known = controller.machine.nodes
    expected = [f"{name}: {known[name].address or name}:{known[name].port}" for name in names]
    said = run_command(controller, "scontrol", "getaddrs", nodes)
    assert (said.out.splitlines(), said.err, said.code) == (expected, "", 0)


def test_planned_nodes_stand_beside_those_of_the_job(controller: FakeController) -> None:
    controller.submit(minimum_nodes=8, tasks=8, shared="none", time_limit=30)
    controller.start_all()
    waiting = controller.submit(minimum_nodes=2, tasks=2, partition="cpu")
    controller.start_all()
    shown = run_command(controller, "scontrol", "show", "job", str(waiting)).out.splitlines()
    assert "   NodeList= SchedNodeList=n[5-6]" in shown


def test_components_of_a_het_job(controller: FakeController) -> None:
    assert run_command(controller, "sbatch", "--hold", "--wrap=true", "-n1", ":", "-n2").code == 0
    lines = run_command(controller, "scontrol", "show", "job", "1").out.splitlines()
    assert lines[:2] == ["JobId=1 HetJobId=1 HetJobOffset=0 JobName=wrap", "   HetJobIdSet=1-2"]
    assert lines[lines.index("") + 1 :][:2] == ["JobId=2 HetJobId=1 HetJobOffset=1 JobName=wrap", "   HetJobIdSet=1-2"]


def test_update_a_component_of_a_het_job(controller: FakeController) -> None:
    assert run_command(controller, "sbatch", "--hold", "-t3", "--wrap=true", "-n1", ":", "-n2", "-t3").code == 0
    controller.submit(hold=True)

    def limits() -> list[int]:
        return [controller.machine.jobs[number].time_limit for number in (1, 2)]

    assert run_command(controller, "scontrol", "update", "job=1+1", "timelimit=2").code == 0
    assert limits() == [3, 2]
    assert run_command(controller, "scontrol", "update", "jobid=1+0,2+1", "timelimit=1").code == 0
    assert limits() == [1, 1]
    for name in ("1+7", "2+0", "3+1", "1+1.0", "1+1x"):
        said = run_command(controller, "scontrol", "update", f"jobid={name}", "timelimit=2")
        assert (said.err, said.code) == (f"Invalid job id specified for job {name}\n", 1)
    said = run_command(controller, "scontrol", "update", "jobid=1+1", "timelimit=+1")
    assert (said.err, said.code) == ("scontrol: error: Invalid job ID 1+1\n", 1)
    said = run_command(controller, "scontrol", "update", "jobid=1", "timelimit=+1")
    assert (said.err, said.code) == ("scontrol: error: TimeLimit increment/decrement not supported for job arrays\n", 1)
    said = run_command(controller, "scontrol", "update", "jobid=1+1", "numnodes=1")
    assert (said.err, said.code) == ("scontrol: error: Job resizing not supported for job arrays\n", 1)
    assert limits() == [1, 1]


def test_no_jobs(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "show", "job")
    assert (said.out, said.code) == ("No jobs in the system\n", 0)


def test_hold_and_release(controller: FakeController) -> None:
    controller.submit(ALICE, name="a")
    assert run_command(controller, "scontrol", "hold", "1").code == 0
    assert run_command(controller, "squeue", "-h", "-o", "%r").out == "JobHeldAdmin\n"
    assert run_command(controller, "scontrol", "release", "jobname=a").code == 0
    assert controller.machine.jobs[1].priority > 0
    assert run_command(controller, "scontrol", "uhold", "1", caller=ALICE).code == 0
    assert run_command(controller, "squeue", "-h", "-o", "%r").out == "JobHeldUser\n"
    assert run_command(controller, "scontrol", "hold", "jobname=nosuchx").code == 0


def test_several_jobs_and_one_error_line_behind(controller: FakeController) -> None:
    for _ in range(2):
        controller.submit()
    controller.start_all()
    controller.end(1)
    controller.end(2)
    said = run_command(controller, "scontrol", "hold", "1,2")
    assert said.err == (
        "Job has already finished for job 1\nJob has already finished for job 2\nslurm_suspend error:Job has already finished\n"
    )
    assert run_command(controller, "scontrol", "-Q", "hold", "1").err == ""


def test_update_a_waiting_job(controller: FakeController) -> None:
    controller.submit(hold=True)
    words = (
        "job=1 timelim=20 nice=5 comment=x partition=cpu numnodes=2-3 numtasks=4 dep= jobname=new startt=2026-12-01T00:00:00"
    )
    said = run_command(controller, "scontrol", "update", *words.split())
    assert (said.out, said.err, said.code) == ("", "", 0)
    job = controller.machine.jobs[1]
    assert (job.time_limit, job.request.nice, job.request.comment, job.name) == (20, 5, "x", "new")
    assert (job.partitions, job.request.minimum_nodes, job.request.maximum_nodes) == (("cpu",), 2, 3)
    run_command(controller, "scontrol", "update", "jobid=1", "timelimit=+5")
    assert controller.machine.jobs[1].time_limit == 25
    run_command(controller, "scontrol", "update", "jobid=1", "timelimit=-15")
    assert controller.machine.jobs[1].time_limit == 10


def test_what_cannot_be_changed_of_a_running_job(controller: FakeController) -> None:
    controller.submit()
    controller.start_all()
    for words in ("numcpus=4", "features=zzz", "starttime=now+1hour", "partition=cpu"):
        said = run_command(controller, "scontrol", "update", "jobid=1", words)
        assert (said.err, said.code) == ("Job is no longer pending execution for job 1\n", 1)


def test_refusals_of_arrays_name_their_elements(controller: FakeController) -> None:
    controller.submit(array="0-9:3", hold=True)
    for words in ("update jobid=1 partition=nosuch", "update jobid=1 features=zzz", "requeue 1", "suspend 1"):
        said = run_command(controller, "scontrol", *words.split())
        assert said.err.startswith("1_[0,3,6,9]: ")
        assert said.code == 1


def test_update_nodes(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "update", "nodename=n[1-2]", "state=drain", "reason=bad disk")
    assert (said.err, said.code) == ("", 0)
    assert all(controller.machine.nodes[name].flags & NodeFlag.DRAIN for name in ("n1", "n2"))
    assert controller.machine.nodes["n1"].reason == "bad disk"
    run_command(controller, "scontrol", "update", "node=n[1-2]", "state=resume")
    assert not controller.machine.nodes["n1"].flags & NodeFlag.DRAIN


def test_update_partitions(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", "update", "partition=debug", "state=down", "maxtime=2:00:00", "maxnodes=4")
    assert (said.err, said.code) == ("", 0)
    partition = controller.machine.partitions["debug"]
    assert (partition.state, partition.maximum_time, partition.maximum_nodes) == ("DOWN", 120, 4)


def test_suspend_and_resume(controller: FakeController) -> None:
    controller.submit()
    controller.start_all()
    assert run_command(controller, "scontrol", "suspend", "1").code == 0
    assert controller.machine.jobs[1].state is JobState.SUSPENDED
    assert run_command(controller, "scontrol", "resume", "1").code == 0
    said = run_command(controller, "scontrol", "resume", "1")
    assert (said.err, said.code) == ("Job is not suspended for job 1\n", 1)


def test_read_scripts(controller: FakeController) -> None:
    controller.submit(ALICE, hold=True)
    assert run_command(controller, "scontrol", "write", "batch_script", "1", "-", caller=ALICE).out == SCRIPT.decode()
    assert run_command(controller, "scontrol", "write", "batch_script", "1", "-").out == SCRIPT.decode()
    said = run_command(controller, "scontrol", "write", "batch_script", "1", "-", caller=NOBODY)
    assert (said.out, said.err, said.code) == ("", "job script retrieval failed: Invalid user id\n", 0)
    said = run_command(controller, "scontrol", "write", "batch_script", "999999")
    assert (said.err, said.code) == (f"job script retrieval failed: {INVALID}\n", 0)


def _write(controller: FakeController, target: str, directory: Path) -> subprocess.CompletedProcess[str]:
    said = run_command(controller, "scontrol", "write", "batch_script", "1", *([target] if target else []))
    assert said.output.executed is not None
    arguments, environment = said.output.executed
    return subprocess.run(arguments, env=environment, cwd=directory, capture_output=True, text=True, check=False)


def test_scripts_are_written_by_the_callers_own_process(controller: FakeController, tmp_path: Path) -> None:
    controller.submit(hold=True)
    done = _write(controller, "", tmp_path)
    assert (done.stdout, done.stderr) == ("batch script for job 1 written to slurm-1.sh\n", "")
    assert (tmp_path / "slurm-1.sh").read_bytes() == SCRIPT
    done = _write(controller, "/nosuch/x", tmp_path)
    assert (done.stdout, done.stderr) == ("", "failed to open file `/nosuch/x`: No such file or directory\n")
    _write(controller, "$(touch hacked);x", tmp_path)
    assert not (tmp_path / "hacked").exists()
    assert (tmp_path / "$(touch hacked);x").read_bytes() == SCRIPT


def test_wait_until_a_job_runs(controller: FakeController) -> None:
    controller.submit()
    said = run_command(controller, "scontrol", "wait_job", "1")
    assert (said.err, said.code) == ("scontrol: Nodes are ready for job 1\n", 0)
    controller.end(1)
    said = run_command(controller, "scontrol", "wait_job", "1")
    assert (said.err, said.code) == ("scontrol: Job 1 no longer running\n", 1)


def test_show_steps(controller: FakeController) -> None:
    controller.submit(minimum_nodes=2, tasks=2, tres_per_node="gres/gpu:a100:1")
    controller.start_all()
    controller.add_step(1, name="mystep", tasks=2, cpus=2, memory=200, gres="gres/gpu=2,gres/gpu:a100=2")
    lines = run_command(controller, "scontrol", "show", "step", "1").out.split("\n\n")
    assert lines[0] == (
        "StepId=1.batch UserId=0 StartTime=2026-11-30T12:00:00 TimeLimit=UNLIMITED\n"
        "   State=RUNNING Partition=debug NodeList=n1\n"
        "   Nodes=1 CPUs=0 Tasks=1 Name=batch Network=(null)\n"
        "   TRES=(null)\n   ResvPorts=(null)\n   CPUFreqReq=Default\n   SrunHost:Pid=(null):0"
    )
    assert "\n   TRES=cpu=2,gres/gpu=2,mem=200M,node=2\n   ResvPorts=(null)\n   CPUFreqReq=Default Dist=Cyclic\n" in lines[1]
    assert run_command(controller, "scontrol", "show", "step", "1.0").out.startswith("StepId=1.0 UserId=0")


def test_commands_from_standard_input(controller: FakeController) -> None:
    said = run_command(controller, "scontrol", stdin=b"show job 999999\n\nfoo\nquit\nping\n")
    assert said.out == "scontrol: show job 999999\nscontrol: \nscontrol: foo\nscontrol: quit\n"
    assert said.err == f"slurm_load_jobs error: {INVALID}\ninvalid keyword: foo\n"
    assert said.code == 1


def test_shutdown_is_for_operators(controller: FakeController) -> None:
    assert run_command(controller, "scontrol", "shutdown").code == 0
    assert controller.stopped is False


def test_small_answers(controller: FakeController) -> None:
    assert run_command(controller, "scontrol", "errnumstr", "2017").out == f"{INVALID}\n"
    assert run_command(controller, "scontrol", "version").out.startswith("slurm 26.05.")
    assert run_command(controller, "scontrol", "ping").out.startswith("Slurmctld(primary) at ")


def test_what_top_gives_to_some_jobs_the_others_of_their_user_lose() -> None:
    controller = FakeController()
    later = int(controller.time) + 3600
    jobs = [controller.submit(ALICE, begin_time=later, nice=9 * number) for number in range(5)]
    highest = controller.machine.jobs[jobs[0]].priority
    for named, behind in (
        ("2", [0, -10, -20, -30, -40]),
        ("4", [-5, -15, 0, -35, -45]),
        ("0,3", [-16, -26, -11, -47, 0]),
        ("1", [0, -43, -28, -11, -18]),
        ("0", [-10, 0, -39, -22, -29]),
        ("", [0, -2, -41, -25, -32]),
    ):
        assert [controller.machine.jobs[job].priority - highest for job in jobs] == behind
        if named:
            run_command(controller, "scontrol", "top", ",".join(str(jobs[int(number)]) for number in named.split(",")))


def test_users_reorder_their_own_jobs_where_the_site_lets_them() -> None:
    controller = FakeController(reference_site(scheduler_parameters={"enable_user_top": ""}))
    first, second, third = (controller.submit(ALICE, begin_time=int(controller.time) + 60) for _ in range(3))
    other = controller.submit(BOB)
    before = controller.machine.jobs[other].priority
    said = run_command(controller, "scontrol", "top", f"{third},{second}", caller=ALICE)
    assert (said.out, said.err, said.code) == ("", "", 0)
    order = sorted((first, second, third), key=lambda job: -controller.machine.jobs[job].priority)
    assert order == [third, second, first]
    assert controller.machine.jobs[other].priority == before, "nobody else's jobs are overtaken"
    said = run_command(controller, "scontrol", "top", str(other), caller=ALICE)
    assert (said.err, said.code) == (f"Access/permission denied for job {other}\n", 1)
    assert controller.machine.jobs[other].priority == before
