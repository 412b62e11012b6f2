"""Programs of the site before and after jobs: what becomes of jobs and nodes when they fail or take their time."""

from __future__ import annotations

import pytest
from core_story import ROOT, Cluster, small_site

from slurmk.core.effects import RunEpilog, Terminate
from slurmk.core.errors import Errno
from slurmk.core.events import EpilogEnded, EpilogFailed, NodeFailed, PrologFailed, PrologRuns
from slurmk.core.priority import HIGHEST
from slurmk.model.states import JobFlag, JobState, NodeFlag, Reason


def started(cluster: Cluster, **request: object) -> int:
    job_id = cluster.submit(**request)  # type: ignore[arg-type]
    cluster.plan()
    cluster.started(job_id)
    return job_id


def node_of(cluster: Cluster, job_id: int) -> str:
    allocation = cluster.job(job_id).allocation
    assert allocation is not None
    return allocation.nodes[0]


def test_a_failed_prolog_closes_its_node_and_holds_the_job() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    name = node_of(cluster, job_id)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "prolog failed status=3:0", name))
    assert cluster.machine.nodes[name].flags & NodeFlag.DRAIN
    assert cluster.machine.nodes[name].reason == "Prolog error"
    assert cluster.terminated() == [job_id]
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.priority, job.restarts) == (JobState.PENDING, 0, 1)
    assert job.state_description == "launch failed requeued held"


def test_a_failed_prolog_in_a_pod_closes_no_node() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    name = node_of(cluster, job_id)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "prolog failed status=3:0", name, drain=False))
    assert not cluster.machine.nodes[name].flags & NodeFlag.DRAIN
    assert cluster.job(job_id).flags & JobFlag.LAUNCH_FAILED


def test_a_failed_prolog_of_a_job_that_is_not_queued_again() -> None:
    cluster = Cluster()
    job_id = started(cluster, requeue=False)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "", node_of(cluster, job_id)))
    cluster.released(job_id)
    assert cluster.job(job_id).state is JobState.CANCELLED


def test_it_is_queued_again_all_the_same_where_the_site_says_so() -> None:
    cluster = Cluster(small_site(prolog_flags=("Alloc", "ForceRequeueOnFail")))
    job_id = started(cluster, requeue=False)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "", node_of(cluster, job_id)))
    cluster.released(job_id)
    assert cluster.job(job_id).state is JobState.PENDING


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("Alloc",), 54)])
def test_an_allocation_whose_prolog_failed_is_over(flags: tuple[str, ...], code: int) -> None:
    cluster = Cluster(small_site(prolog_flags=flags))
    job_id = started(cluster, batch=False)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "", node_of(cluster, job_id)))
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert (job.state, job.exit_code, job.cancelled_by) == (JobState.CANCELLED, code, 0)
    assert job.system_comment == f"Prolog failure on node {node_of(cluster, job_id)}"


def test_accounting_has_the_exit_code_of_an_attempt_whose_prolog_failed() -> None:
    cluster = Cluster(small_site(prolog_flags=("Alloc",)))
    job_id = started(cluster)
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "", node_of(cluster, job_id)))
    assert (cluster.job(job_id).state, cluster.job(job_id).exit_code) == (JobState.PENDING, 54)
    cluster.released(job_id)
    assert cluster.job(job_id).exit_code == 0


def test_the_controllers_failed_prolog_has_the_job_wait_again() -> None:
    cluster = Cluster()
    job_id = cluster.submit()
    cluster.plan()
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "PrologSlurmctld failed"))
    job = cluster.job(job_id)
    assert (job.state, job.restarts, job.reason) == (JobState.PENDING, 1, Reason.BEGIN_TIME)
    assert job.priority
    assert not cluster.terminated()
    assert not any(node.flags & NodeFlag.DRAIN for node in cluster.machine.nodes.values())


def test_the_controllers_failed_prolog_ends_an_allocation() -> None:
    cluster = Cluster()
    job_id = cluster.submit(batch=False)
    cluster.plan()
    cluster.tell(PrologFailed(cluster.now, job_id, 0, "PrologSlurmctld failed"))
    job = cluster.job(job_id)
    assert (job.state, job.system_comment) == (JobState.CANCELLED, "PrologSlurmctld failed, job killed")


def test_a_running_job_says_that_its_prolog_runs() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    cluster.tell(PrologRuns(cluster.now, job_id, 0))
    assert (cluster.job(job_id).state, cluster.job(job_id).reason) == (JobState.RUNNING, Reason.PROLOG)
    cluster.tell(PrologRuns(cluster.now, job_id, 0, over=True))
    assert cluster.job(job_id).reason is Reason.NONE


def test_what_is_said_of_an_earlier_attempt_is_passed_over() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    before = cluster.job(job_id)
    cluster.tell(PrologRuns(cluster.now, job_id, 7))
    cluster.tell(PrologFailed(cluster.now, job_id, 7, ""))
    assert cluster.job(job_id) == before


def test_a_failed_epilog_closes_its_node_alone() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    name = node_of(cluster, job_id)
    cluster.ended(job_id)
    cluster.tell(EpilogFailed(cluster.now, job_id, 0, name))
    cluster.released(job_id)
    assert cluster.job(job_id).state is JobState.COMPLETED
    assert cluster.machine.nodes[name].reason == "Epilog error"


EXPEDITES = {"SlurmctldParameters": "enable_expedited_requeue"}


def expedited(exit_code: int, *, failed_epilog: bool = False) -> tuple[Cluster, int]:
    """A job of --requeue=expedite whose script came to ``exit_code`` in a place of its own on a node that it has whole."""
    cluster = Cluster(small_site(parameters=EXPEDITES))
    job_id = started(cluster, requeue=True, expedited_requeue=True, required_nodes="n1", shared="none")
    name = node_of(cluster, job_id)
    cluster.ended(job_id, exit_code)
    if failed_epilog:
        cluster.tell(EpilogFailed(cluster.now, job_id, 0, name, drain=False))
    cluster.released(job_id)
    return cluster, job_id


def test_a_job_that_failed_of_itself_is_held_where_it_asked_to_be_expedited() -> None:
    cluster, job_id = expedited(3 << 8)
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.priority) == (JobState.PENDING, JobFlag.REQUEUE_HOLD, 0)
    assert (job.state_description, job.restarts, job.exit_code) == ("job requeued in held state", 1, 3 << 8)
    cluster.release_hold(str(job_id))
    cluster.plan()
    job = cluster.job(job_id)
    assert (job.state, job.exit_code) == (JobState.RUNNING, 0), "it does not wait, as other requeued jobs do"


def test_a_job_that_failed_with_an_epilog_is_the_first_to_start_again() -> None:
    cluster, job_id = expedited(3 << 8, failed_epilog=True)
    job = cluster.job(job_id)
    assert (job.state, job.flags, job.reason) == (JobState.PENDING, JobFlag.EXPEDITING, Reason.NONE)
    assert job.priority > 0
    other = cluster.submit(caller=ROOT, priority=HIGHEST, required_nodes="n1", shared="none")
    cluster.plan()
    assert cluster.job(other).priority > job.priority
    assert (cluster.job(job_id).state, cluster.job(other).state) == (JobState.RUNNING, JobState.PENDING)
    assert cluster.job(job_id).flags == JobFlag.CONFIGURING


@pytest.mark.parametrize(("exit_code", "state"), [(0, JobState.COMPLETED), (15, JobState.FAILED)])
def test_only_a_script_that_exits_with_a_code_is_expedited(exit_code: int, state: JobState) -> None:
    cluster, job_id = expedited(exit_code, failed_epilog=True)
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (state, JobFlag.NONE)


@pytest.mark.parametrize("completing", [False, True])
def test_a_job_that_lost_a_node_is_expedited(completing: bool) -> None:
    cluster = Cluster(small_site(parameters=EXPEDITES))
    job_id = started(cluster, requeue=True, expedited_requeue=True)
    if completing:
        cluster.ended(job_id, 3 << 8)
    cluster.tell(NodeFailed(cluster.now, job_id, 0, (node_of(cluster, job_id),)))
    assert (cluster.job(job_id).state, cluster.job(job_id).flags) == (JobState.PENDING, JobFlag.EXPEDITING)


def test_jobs_are_expedited_only_where_the_site_lets_them() -> None:
    cluster = Cluster()
    cluster.try_submit(requeue=True, expedited_requeue=True)
    assert cluster.refusal() is Errno.NOT_SUPPORTED


def test_a_reason_that_an_administrator_gave_stays() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    name = node_of(cluster, job_id)
    cluster.update_node(name, state="DRAIN", reason="bad fan")
    cluster.tell(EpilogFailed(cluster.now, job_id, 0, name))
    assert cluster.machine.nodes[name].reason == "bad fan"


def test_a_job_is_completing_until_the_controllers_epilog_is_over_and_holds_no_nodes() -> None:
    cluster = Cluster(small_site(epilog_slurmctld=("/etc/epilog",)))
    job_id = started(cluster, shared="none")
    cluster.ended(job_id, 3 << 8)
    [epilog] = [effect for effect in cluster.effects if isinstance(effect, RunEpilog)]
    assert (epilog.job.job_id, epilog.job.exit_code) == (job_id, 3 << 8)
    cluster.released(job_id)
    job = cluster.job(job_id)
    assert job.flags & JobFlag.COMPLETING
    assert job not in cluster.machine.holding()
    assert cluster.machine.node_state(node_of(cluster, job_id)) == "idle"
    cluster.released(job_id)
    assert cluster.job(job_id).flags & JobFlag.COMPLETING
    cluster.tell(EpilogEnded(cluster.now, job_id, 0))
    assert cluster.job(job_id).flags is JobFlag.NONE
    assert cluster.job(job_id).state is JobState.FAILED


def test_the_controllers_epilog_may_be_over_first() -> None:
    cluster = Cluster(small_site(epilog_slurmctld=("/etc/epilog",)))
    job_id = started(cluster)
    cluster.ended(job_id)
    cluster.tell(EpilogEnded(cluster.now, job_id, 0))
    assert cluster.job(job_id) in cluster.machine.holding()
    cluster.released(job_id)
    assert cluster.job(job_id).flags is JobFlag.NONE


def test_after_a_restart_it_is_run_again() -> None:
    cluster = Cluster(small_site(epilog_slurmctld=("/etc/epilog",)))
    job_id = started(cluster)
    cluster.ended(job_id)
    cluster.released(job_id)
    cluster.machine = cluster.restarted()
    assert cluster.job(job_id).flags & JobFlag.COMPLETING
    cluster.tell(EpilogEnded(cluster.now, job_id, 0))
    assert cluster.job(job_id).flags is JobFlag.NONE


def test_what_stepd_is_told_of_the_end_is_the_job_as_it_ended() -> None:
    cluster = Cluster()
    job_id = started(cluster)
    cluster.ended(job_id, 2 << 8)
    [order] = [effect for effect in cluster.effects if isinstance(effect, Terminate)]
    assert order.job is not None
    assert order.job.exit_code == 2 << 8
