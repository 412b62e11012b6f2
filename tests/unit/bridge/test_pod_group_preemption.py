"""A PodGroup says of preemption what its priority class says, which the API server insists on."""

from __future__ import annotations

from bridge.kubernetes.kinds.native import priority_class_of, with_preemption_policy

GROUP = {"kind": "PodGroup", "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "hpc-high"}}


def test_a_class_decides_where_the_template_does_not() -> None:
    assert priority_class_of(GROUP) == "hpc-high"
    assert priority_class_of({"spec": {}}) == ""
    decided = with_preemption_policy(GROUP, "Never")
    assert decided["spec"] == {**GROUP["spec"], "preemptionPolicy": "Never"}
    assert priority_class_of(decided) == ""
    assert "preemptionPolicy" not in GROUP["spec"]
