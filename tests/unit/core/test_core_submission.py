"""Submissions: what is refused in which words, what is filled in, what waits and why. Checked against Slurm 26.05."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_story import ALICE, ROOT, Cluster, small_site

from grammar.hostlist import compress
from slurmk.core.effects import Accepted, Refused, SaveCounter, SaveJob, WakePlanner
from slurmk.core.errors import MESSAGES, Errno
from slurmk.core.events import JobSelection, NodeFailed, Requeue, Submit, Suspend
from slurmk.core.machine import Machine
from slurmk.core.priority import Directory
from slurmk.model.node import Partition
from slurmk.model.states import INFINITE, JobState, Reason


def test_a_submission_is_saved_answered_and_planned(cluster: Cluster) -> None:
    cluster.submit(name="train")
    assert [type(effect) for effect in cluster.effects] == [SaveJob, SaveCounter, Accepted, WakePlanner]
    assert isinstance(cluster.effects[0], SaveJob)
    assert cluster.effects[0].new
    job = cluster.job(1)
    assert (job.state, job.name, job.partitions, job.time_limit) == (JobState.PENDING, "train", ("debug",), 10)
    assert job.submit_time == job.eligible_time == 1000
    assert job.priority == 4294901760


def test_ids_are_consecutive_and_priorities_fall(cluster: Cluster) -> None:
    ids = [cluster.submit() for _ in range(3)]
    assert ids == [1, 2, 3]
    assert [cluster.job(each).priority for each in ids] == [4294901760, 4294901759, 4294901758]


def test_sluids_look_like_slurms_and_differ(cluster: Cluster) -> None:
    names = {cluster.job(cluster.submit()).sluid for _ in range(50)}
    assert len(names) == 50
    assert all(len(name) == 14 and name[0] == "s" and name[1:].isalnum() and name[1:].isupper() for name in names)


REFUSED = [
    ({"partition": "nope"}, Errno.INVALID_PARTITION_NAME),
    ({"partition": "debug,nope"}, Errno.INVALID_PARTITION_NAME),
    ({"cpus_per_task": 64}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"memory_per_node": 100 * 1024}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"memory_per_cpu": 100 * 1024}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"partition": "cpu", "required_nodes": "n1"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tres_per_node": "gres/gpu:9"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tres_per_node": "gres/gpu:h100:1"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tres_per_job": "gres/gpu:17"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"temporary_disk_per_node": 5120}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"minimum_cpus_per_node": 99}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"constraints": "a100&cpu"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"excluded_nodes": "n[1-8]"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"minimum_nodes": 8, "maximum_nodes": 8, "excluded_nodes": "n1"}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"minimum_nodes": 5, "maximum_nodes": 5, "tasks_per_node": 10}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tasks": 2, "tasks_per_node": 99}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tasks": 1, "tasks_per_node": 99}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    ({"tasks": 2, "tasks_per_node": 99, "overcommit": True}, Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE),
    (
        {"constraints": "[a100*1&cpu*1]", "nodes": "1", "minimum_nodes": 1, "maximum_nodes": 1},
        Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE,
    ),
    (
        {"tasks": 5, "ntasks_per_tres": 1, "tres_per_job": "gres/gpu:5", "nodes": "2", "minimum_nodes": 2, "maximum_nodes": 2},
        Errno.REQUESTED_NODE_CONFIG_UNAVAILABLE,
    ),
    ({"constraints": "nope"}, Errno.INVALID_FEATURE),
    ({"required_nodes": "n99"}, Errno.INVALID_NODE_NAME),
    ({"required_nodes": "n1", "excluded_nodes": "n1"}, Errno.INVALID_NODE_NAME),
    ({"tres_per_node": "gres/foo:1"}, Errno.INVALID_GRES),
    ({"licenses": "foo"}, Errno.INVALID_LICENSES),
    ({"licenses": "matlab:9"}, Errno.INVALID_LICENSES),
    ({"qos": "nope"}, Errno.INVALID_QOS),
    ({"dependency": "afterok:999999"}, Errno.DEPENDENCY),
    ({"dependency": "garbage:1"}, Errno.DEPENDENCY),
    ({"dependency": "afterok:0"}, Errno.DEPENDENCY),
    ({"array": "0-5000"}, Errno.INVALID_ARRAY),
    ({"array": "5-1"}, Errno.INVALID_ARRAY),
    ({"nice": -5}, Errno.INVALID_NICE),
    ({"reservation": "x"}, Errno.RESERVATION_INVALID),
    ({"deadline": 1010, "time_limit": 5}, Errno.INVALID_TIME_LIMIT),
    ({"time_minimum": 20, "time_limit": 10}, Errno.INVALID_TIME_MIN_LIMIT),
    ({"minimum_nodes": 0, "maximum_nodes": 0}, Errno.INVALID_NODE_COUNT),
]


@pytest.mark.parametrize(("request_fields", "errno"), REFUSED)
def test_refused(cluster: Cluster, request_fields: dict[str, object], errno: Errno) -> None:
    cluster.try_submit(**request_fields)
    assert cluster.refusal() is errno
    assert not cluster.machine.jobs
    assert cluster.machine.next_job_id == 1


def test_no_nodes_are_taken_of_a_job_that_waits_held_or_says_its_tasks(cluster: Cluster) -> None:
    assert cluster.submit(minimum_nodes=0, maximum_nodes=0, hold=True)
    assert cluster.submit(minimum_nodes=0, maximum_nodes=0, tasks=2)


NOTICES = [
    ({"cpus_per_task": 64}, "CPU count per node can not be satisfied"),
    ({"tasks_per_node": 20, "minimum_nodes": 1, "maximum_nodes": 1}, "CPU count per node can not be satisfied"),
    ({"tasks": 2, "tasks_per_node": 99}, "CPU count per node can not be satisfied"),
    ({"memory_per_cpu": 100 * 1024}, "Memory specification can not be satisfied"),
    ({"temporary_disk_per_node": 5120}, "Temporary disk specification can not be satisfied"),
    ({"partition": "nope"}, "invalid partition specified: nope"),
]


@pytest.mark.parametrize(("request_fields", "notice"), NOTICES)
def test_refusals_say_what_is_lacking(cluster: Cluster, request_fields: dict[str, object], notice: str) -> None:
    answer = cluster.try_submit(**request_fields)
    assert isinstance(answer, Refused)
    assert answer.notices == (notice,)


WAITING = [
    {"minimum_nodes": 20, "maximum_nodes": 20},
    {"tasks": 1000},
    {"tasks": 97},
    {"time_limit": 300},
    {"partition": "gpu", "minimum_nodes": 6, "maximum_nodes": 6},
    {"required_nodes": "n1,n2", "partition": "debug,cpu"},
    {"dependency": "afterany:999999"},
    {"dependency": "after:999999"},
]


@pytest.mark.parametrize("request_fields", WAITING)
def test_kept_although_it_can_not_start_now(cluster: Cluster, request_fields: dict[str, object]) -> None:
    assert isinstance(cluster.try_submit(**request_fields), Accepted)


def test_held_jobs_are_not_sized_up(cluster: Cluster) -> None:
    job = cluster.job(cluster.submit(hold=True, cpus_per_task=64))
    assert (job.priority, job.reason) == (0, Reason.JOB_HELD_USER)
    cluster.plan()
    assert cluster.launched() == []


def test_time_limits(cluster: Cluster) -> None:
    assert cluster.job(cluster.submit(time_limit=0)).time_limit == INFINITE
    assert cluster.job(cluster.submit(partition="gpu")).time_limit == 2880
    assert cluster.job(cluster.submit(partition="cpu")).time_limit == INFINITE


def test_enforced_partition_limits_refuse() -> None:
    cluster = Cluster(small_site(enforce_partition_limits="ALL"))
    cluster.try_submit(time_limit=300)
    assert cluster.refusal() is Errno.INVALID_TIME_LIMIT
    cluster.try_submit(partition="debug,gpu", time_limit=300)
    assert cluster.refusal() is Errno.INVALID_TIME_LIMIT
    cluster.try_submit(minimum_nodes=20, maximum_nodes=20, time_limit=300)
    assert cluster.refusal() is Errno.INVALID_NODE_COUNT
    cluster.try_submit(tasks=97, time_limit=300, hold=True)
    assert cluster.refusal() is Errno.TOO_MANY_REQUESTED_CPUS
    cluster.try_submit(partition="debug,gpu", tasks=33)
    assert cluster.refusal() is Errno.TOO_MANY_REQUESTED_CPUS
    cluster = Cluster(small_site(enforce_partition_limits="ANY"))
    assert isinstance(cluster.try_submit(partition="debug,gpu", time_limit=300), Accepted)


def test_partition_access() -> None:
    names = tuple(node.name for node in small_site().nodes)
    site = small_site(
        partitions=(
            Partition("admin", names, root_only=True),
            Partition("closed", names, state="DRAIN"),
            Partition("down", names, state="DOWN"),
            Partition("staff", names, allow_groups=("staff",)),
        )
    )
    cluster = Cluster(site)
    for partition, errno in (
        ("admin", Errno.ACCESS_DENIED),
        ("closed", Errno.PARTITION_NOT_AVAIL),
        ("staff", Errno.JOB_MISSING_REQUIRED_PARTITION_GROUP),
        (None, Errno.DEFAULT_PARTITION_NOT_SET),
    ):
        cluster.try_submit(partition=partition)
        assert cluster.refusal() is errno
    assert isinstance(cluster.try_submit(partition="down"), Accepted)
    assert isinstance(cluster.try_submit(ROOT, partition="admin"), Accepted)
    cluster.machine.users = Directory(groups={"staff": 1000})
    assert isinstance(cluster.try_submit(partition="staff"), Accepted)


def test_accounts_are_checked_when_they_are_known(cluster: Cluster) -> None:
    cluster.machine.users = Directory(accounts={"alice": ("phys", "chem")})
    assert cluster.job(cluster.submit()).account == "phys"
    assert cluster.job(cluster.submit(account="chem")).account == "chem"
    for account in ("nope", ""):
        cluster.try_submit(account=account)
        assert cluster.refusal() is Errno.INVALID_ACCOUNT


def test_priority_asked_for_counts_for_operators_alone(cluster: Cluster) -> None:
    assert cluster.job(cluster.submit(priority=5)).priority == 4294901760
    assert cluster.job(cluster.submit(ROOT, priority=50)).priority == 50


@pytest.mark.parametrize(
    ("request_fields", "priority"),
    [
        ({}, 5067),
        ({"minimum_nodes": 2, "maximum_nodes": 2}, 5135),
        ({"minimum_nodes": 20, "maximum_nodes": 20}, 6000),
        ({"tasks": 97}, 5567),
        ({"minimum_nodes": 6, "maximum_nodes": 6, "partition": "gpu"}, 5406),
        ({"nice": 100}, 4967),
    ],
)
def test_multifactor_priorities_are_those_of_the_reference(request_fields: dict[str, object], priority: int) -> None:
    weights = {"age": 1000, "fairshare": 10000, "job_size": 1000, "partition": 1000, "qos": 2000}
    cluster = Cluster(small_site(priority_type="priority/multifactor", priority_weights=weights))
    cluster.machine.users = Directory(other_fair_share=0.4)
    assert cluster.job(cluster.submit(**request_fields)).priority == priority


def test_age_raises_the_priority() -> None:
    cluster = Cluster(small_site(priority_type="priority/multifactor", priority_weights={"age": 1000}))
    job_id = cluster.submit(minimum_nodes=20, maximum_nodes=20)
    before = cluster.job(job_id).priority
    cluster.tick(86400)
    assert cluster.job(job_id).priority == before - 1 + 142
    assert cluster.machine.priority_factors(cluster.job(job_id), cluster.now).age == 143  # shown rounded, added exactly


def test_het_components_start_together_or_not_at_all(cluster: Cluster) -> None:
    parts = tuple(cluster.submission(tasks=count, partition="cpu") for count in (16, 32))
    cluster.tell(Submit(cluster.now, ALICE, parts))
    assert cluster.answer() == Accepted((1, 2))
    assert [(cluster.job(each).het_job_id, cluster.job(each).het_job_offset) for each in (1, 2)] == [(1, 0), (1, 1)]
    assert cluster.job(1).het_components == (1, 2)
    cluster.plan()
    assert cluster.launched() == [1, 2]


def test_het_components_wait_for_each_other(cluster: Cluster) -> None:
    cluster.submit(tasks=50, partition="cpu")
    cluster.plan()
    assert cluster.launched() == [1]
    cluster.tell(Submit(cluster.now, ALICE, tuple(cluster.submission(tasks=count, partition="cpu") for count in (4, 32))))
    cluster.plan()
    assert cluster.launched() == []
    assert cluster.machine.outlooks[2].start_time == cluster.machine.outlooks[3].start_time
    cluster.run_to_end(1)
    cluster.plan()
    assert cluster.launched() == [2, 3]


def het_job(cluster: Cluster) -> None:
    cluster.tell(Submit(cluster.now, ALICE, tuple(cluster.submission(tasks=count, partition="cpu") for count in (2, 4))))
    cluster.plan()
    assert cluster.launched() == [1, 2]


def test_het_components_end_with_the_script(cluster: Cluster) -> None:
    het_job(cluster)
    cluster.ended(1, 3 << 8)
    assert cluster.terminated() == [1, 2]
    for job_id in (1, 2):
        allocation = cluster.job(job_id).allocation
        assert allocation is not None
        cluster.released(job_id, *allocation.nodes)
        assert (cluster.job(job_id).state, cluster.job(job_id).exit_code) == (JobState.FAILED, 3 << 8)


def test_het_components_go_back_to_the_queue_together(cluster: Cluster) -> None:
    het_job(cluster)
    allocation = cluster.job(2).allocation
    assert allocation is not None
    cluster.tell(NodeFailed(cluster.now, 2, 0, allocation.nodes[:1], "lost"))
    assert [cluster.job(job_id).state for job_id in (1, 2)] == [JobState.PENDING, JobState.PENDING]


def test_a_name_said_to_be_empty_stays_so(cluster: Cluster) -> None:
    assert cluster.job(cluster.submit(name="")).name == ""


def test_het_job_is_refused_whole(cluster: Cluster) -> None:
    parts = (cluster.submission(), cluster.submission(partition="nope"))
    cluster.tell(Submit(cluster.now, ALICE, parts))
    assert cluster.refusal() is Errno.INVALID_PARTITION_NAME
    assert not cluster.machine.jobs


def test_too_many_jobs() -> None:
    cluster = Cluster(small_site(maximum_job_count=5))
    cluster.submit(array="0-3")
    cluster.submit()
    cluster.try_submit()
    assert cluster.refusal() is Errno.MAX_JOB_COUNT


def test_a_trial_leaves_no_trace(cluster: Cluster) -> None:
    event = Submit(cluster.now, ALICE, (cluster.submission(tasks=4),), will_run_only=True)
    assert [type(effect) for effect in cluster.tell(event)] == [Accepted]
    found = cluster.machine.trial(event)
    assert not isinstance(found, Refused)
    assert found[1].job_id == 1
    assert not cluster.machine.jobs
    assert cluster.submit() == 1
    assert cluster.job(1).priority == 4294901760


def test_every_error_has_words() -> None:
    assert set(MESSAGES) == set(Errno)
    assert len(MESSAGES) == len(set(MESSAGES.values()))


def test_job_ids_start_again_and_pass_over_those_in_use() -> None:
    cluster = Cluster(small_site(maximum_job_id=3))
    assert [cluster.submit() for _ in range(3)] == [1, 2, 3]
    cluster.kill("2")
    cluster.tick(400)
    assert 2 not in cluster.machine.jobs
    assert cluster.submit() == 2


def test_restored_machine_goes_on_counting(cluster: Cluster) -> None:
    cluster.submit()
    cluster.submit()
    machine: Machine = cluster.restarted()
    cluster.machine = machine
    assert cluster.submit() == 3
    assert cluster.job(3).priority == 4294901758


def test_components_of_a_het_job_are_ended_and_changed_with_it(cluster: Cluster) -> None:
    cluster.tell(Submit(cluster.now, ALICE, tuple(cluster.submission(hold=True) for _ in range(2))))
    for alone in ("1+1", "2"):
        cluster.kill(alone)
        assert cluster.refusal() is Errno.NOT_WHOLE_HET_JOB
    cluster.tell(Suspend(cluster.now, ALICE, (JobSelection(1, het_offset=0),)))
    assert cluster.refusal() is Errno.NOT_WHOLE_HET_JOB
    cluster.tell(Requeue(cluster.now, ALICE, (JobSelection(2),)))
    assert cluster.refusal() is Errno.NOT_HET_JOB_LEADER
    cluster.kill("1+0")
    assert {cluster.job(each).state for each in (1, 2)} == {JobState.CANCELLED}


def test_nodes_that_a_component_names_are_kept_from_the_others(cluster: Cluster) -> None:
    names = [node.name for node in cluster.machine.site.nodes][:3]
    requests = ({"required_nodes": names[0]}, {"excluded_nodes": names[1]}, {})
    cluster.tell(Submit(cluster.now, ALICE, tuple(cluster.submission(**request) for request in requests)))
    excluded = [cluster.job(each).request.excluded_nodes for each in (1, 2, 3)]
    assert excluded == [None, compress((names[0], names[1])), names[0]]
    both = tuple(cluster.submission(required_nodes=names[2]) for _ in range(2))
    cluster.tell(Submit(cluster.now, ALICE, both))
    assert cluster.refusal() is Errno.INVALID_NODE_NAME


def test_only_the_component_that_is_held_says_so(cluster: Cluster) -> None:
    cluster.tell(Submit(cluster.now, ALICE, (cluster.submission(), cluster.submission(hold=True))))
    cluster.plan()
    assert [cluster.job(each).reason for each in (1, 2)] == [Reason.NONE, Reason.JOB_HELD_USER]
    cluster.hold("1", ROOT)
    assert cluster.job(1).reason is Reason.JOB_HELD_ADMIN


def submit_components(cluster: Cluster, *requests: dict[str, object]) -> None:
    cluster.tell(Submit(cluster.now, ALICE, tuple(cluster.submission(**request) for request in requests)))


def test_het_components_keep_off_nodes_that_another_names(cluster: Cluster) -> None:
    submit_components(cluster, {"required_nodes": "n1"}, {"excluded_nodes": "n3"}, {"required_nodes": "n2"})
    assert [cluster.job(each).request.excluded_nodes for each in (1, 2, 3)] == ["n2", "n[1-3]", "n1"]
    submit_components(cluster, {"required_nodes": "n[1-2]"}, {"required_nodes": "n2"})
    assert cluster.refusal() is Errno.INVALID_NODE_NAME


def test_only_the_first_het_component_has_licences_and_mail(cluster: Cluster) -> None:
    submit_components(cluster, {"licenses": "matlab", "mail_type": ("END",)}, {"mail_type": ("END",), "mail_user": "alice"})
    assert [(cluster.job(each).request.mail_type, cluster.job(each).request.mail_user) for each in (1, 2)][1] == ((), None)
    submit_components(cluster, {}, {"licenses": "matlab"})
    answer = cluster.answer()
    assert isinstance(answer, Refused)
    assert answer.notices == ("1: license request allowed only on leader job",)
    assert cluster.refusal() is Errno.INVALID_LICENSES


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        ({"partition": "nope", "constraints": "nope"}, Errno.INVALID_FEATURE),
        ({"partition": "nope", "required_nodes": "nope"}, Errno.INVALID_NODE_NAME),
        ({"partition": "nope", "excluded_nodes": "nope"}, Errno.INVALID_PARTITION_NAME),
        ({"licenses": "nope", "excluded_nodes": "nope"}, Errno.INVALID_LICENSES),
        ({"licenses": "nope", "time_limit": 20, "time_minimum": 30}, Errno.INVALID_TIME_MIN_LIMIT),
        ({"tres_per_node": "gres/nope:1", "constraints": "nope"}, Errno.INVALID_GRES),
        ({"constraints": "gpu:nope"}, Errno.INVALID_FEATURE),
    ],
)
def test_of_two_faults_slurms_first_is_told(cluster: Cluster, request_: dict[str, object], first: Errno) -> None:
    submit_components(cluster, request_)
    assert cluster.refusal() is first


def test_a_cancelled_array_makes_room() -> None:
    cluster = Cluster(small_site(maximum_job_count=5))
    cluster.submit(array="0-3", hold=True)
    cluster.try_submit(array="0-3", hold=True)
    assert cluster.refusal() is Errno.MAX_JOB_COUNT
    cluster.kill("1")
    cluster.submit(array="0-3", hold=True)


@pytest.mark.parametrize("consumable", [True, False])
@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"memory_per_node": 100}, False),
        ({"memory_per_node": 101}, True),
        ({"memory_per_node": 0}, True),
        ({"memory_per_cpu": 60, "tasks": 2, "minimum_nodes": 1, "maximum_nodes": 1}, True),
        ({"memory_per_cpu": 60, "tasks": 2, "minimum_nodes": 2, "maximum_nodes": 2}, False),
        ({"memory_per_cpu": 101}, True),
    ],
)
def test_memory_beyond_a_partition_is_refused_where_limits_are_enforced(
    asked: dict[str, int], refused: bool, consumable: bool
) -> None:
    for policy, partition in (("ALL", "small,debug"), ("ANY", "small"), ("ANY", "small,debug"), ("NO", "small")):
        site = small_site(enforce_partition_limits=policy, memory_is_consumable=consumable)
        small = replace(site.partitions[0], name="small", default=False, maximum_memory_per_node=100)
        cluster = Cluster(replace(site, partitions=(*site.partitions, small)))
        answer = cluster.try_submit(ALICE, partition=partition, **asked)
        expected = refused and policy != "NO" and (policy == "ALL" or partition == "small")
        assert isinstance(answer, Refused) is expected
        if isinstance(answer, Refused):
            assert answer.error.errno is Errno.INVALID_TASK_MEMORY


def test_a_job_without_a_word_of_memory_is_refused_where_a_partition_lets_none_have_all_of_a_node() -> None:
    site = small_site(enforce_partition_limits="ALL", default_memory_per_cpu=None, default_memory_per_node=None)
    for most, refused in ((site.nodes[0].memory - 1, True), (site.nodes[0].memory, False)):
        small = replace(site.partitions[0], name="small", default=False, maximum_memory_per_node=most)
        answer = Cluster(replace(site, partitions=(*site.partitions, small))).try_submit(ALICE, partition="small")
        assert isinstance(answer, Refused) is refused
        if isinstance(answer, Refused):
            assert answer.error.errno is Errno.REQUESTED_PART_CONFIG_UNAVAILABLE
