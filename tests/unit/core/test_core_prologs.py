"""Programs of the site before and after jobs: what becomes of jobs and nodes when they fail or take their time."""

from __future__ import annotations

import pytest
from core_story import Cluster, small_site

from slurmk.core.effects import RunEpilog, Terminate
from slurmk.core.events import EpilogEnded, EpilogFailed, PrologFailed, PrologRuns
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
