"""strigger's triggers: when they go off, with what, and what is left of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from core_story import Cluster, small_site

from slurmk.core.triggers import Trigger, Triggers, restored


def trigger(**fields: Any) -> Trigger:
    plain = {"number": 1, "resource": "node", "of": "*", "kinds": ("down",), "offset": 0}
    return Trigger(**{**plain, "user_id": 0, "user_name": "root", "program": "/p", **fields})


def fired(cluster: Cluster, triggers: Triggers) -> list[str]:
    return [each.argument for each in triggers.due(cluster.machine, cluster.now)]


def test_a_node_that_changes_is_told_once() -> None:
    cluster = Cluster(small_site())
    triggers = Triggers()
    triggers.add(trigger())
    assert fired(cluster, triggers) == []
    first, second = sorted(cluster.machine.nodes)[:2]
    cluster.update_node(first, second, state="DOWN", reason="x")
    assert len(fired(cluster, triggers)) == 1
    assert triggers.rows == []


def test_a_permanent_one_goes_off_again() -> None:
    cluster = Cluster(small_site())
    first = sorted(cluster.machine.nodes)[0]
    triggers = Triggers([trigger(kinds=("drained",), of=first, permanent=True)])
    for _ in range(2):
        assert fired(cluster, triggers) == []
        cluster.update_node(first, state="DRAIN", reason="x")
        assert fired(cluster, triggers) == [first]
        assert fired(cluster, triggers) == []
        cluster.update_node(first, state="RESUME")
    assert len(triggers.rows) == 1


def test_other_nodes_are_no_matter() -> None:
    cluster = Cluster(small_site())
    first, second = sorted(cluster.machine.nodes)[:2]
    triggers = Triggers([trigger(of=first)])
    fired(cluster, triggers)
    cluster.update_node(second, state="DOWN", reason="x")
    assert fired(cluster, triggers) == []


def test_the_end_of_a_job_and_its_time_limit() -> None:
    cluster = Cluster(small_site())
    job_id = cluster.submit(time_limit=10)
    cluster.plan()
    cluster.started(job_id)
    triggers = Triggers()
    triggers.add(trigger(resource="job", of=str(job_id), kinds=("fini",)))
    triggers.add(trigger(number=2, resource="job", of=str(job_id), kinds=("time",), offset=-60))
    assert fired(cluster, triggers) == []
    cluster.now += 541
    assert fired(cluster, triggers) == [str(job_id)]
    assert [each.kinds for each in triggers.rows] == [("fini",)]
    cluster.run_to_end(job_id)
    assert fired(cluster, triggers) == [str(job_id)]


def test_an_offset_delays() -> None:
    cluster = Cluster(small_site())
    triggers = Triggers([trigger(kinds=("idle",), offset=30)])
    assert fired(cluster, triggers) == []
    cluster.now += 29
    assert fired(cluster, triggers) == []
    cluster.now += 2
    assert len(fired(cluster, triggers)) == 1


def test_what_the_controller_does_itself() -> None:
    cluster = Cluster(small_site())
    triggers = Triggers([trigger(kinds=("reconfig",))])
    assert fired(cluster, triggers) == []
    triggers.tell("reconfig")
    assert fired(cluster, triggers) == [""]


def test_they_outlive_the_controller() -> None:
    triggers = Triggers()
    triggers.add(trigger(number=7, permanent=True))
    again = restored(json.loads(json.dumps(triggers.saved())))
    assert again.rows == triggers.rows
    assert again.next_number == 8
    assert again.remove(lambda each: each.number == 7) == 1
    assert again.rows == []
    assert replace(trigger(), of="n[1-3]").nodes == {"n1", "n2", "n3"}
