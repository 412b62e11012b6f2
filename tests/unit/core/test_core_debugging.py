"""What scontrol setdebug and setdebugflags change, and for how long."""

from __future__ import annotations

from core_story import ALICE, ROOT, Cluster

from slurmk.core.events import Reconfigure, SetDebug


def shown(cluster: Cluster) -> tuple[str | None, str | None]:
    parameters = cluster.machine.site.parameters
    return parameters.get("SlurmctldDebug"), parameters.get("DebugFlags")


def test_flags_add_up_in_their_order() -> None:
    cluster = Cluster()
    cluster.tell(SetDebug(cluster.now, ROOT, add=("steps", "BACKFILL")))
    cluster.tell(SetDebug(cluster.now, ROOT, add=("gres",)))
    assert shown(cluster)[1] == "Backfill,Gres,Steps"
    cluster.tell(SetDebug(cluster.now, ROOT, add=("Route",), remove=("backfill",)))
    assert shown(cluster)[1] == "Gres,Route,Steps"
    cluster.tell(SetDebug(cluster.now, ROOT, remove=("gres", "route", "steps")))
    assert shown(cluster)[1] == "(null)"


def test_it_lasts_until_the_configuration_is_read_again() -> None:
    cluster = Cluster()
    before = cluster.machine.site
    cluster.tell(SetDebug(cluster.now, ROOT, "debug3", ("Gres",)))
    assert shown(cluster) == ("debug3", "Gres")
    cluster.tell(Reconfigure(cluster.now, ROOT, before))
    assert cluster.machine.site == before


def test_only_operators_may() -> None:
    cluster = Cluster()
    before = shown(cluster)
    cluster.tell(SetDebug(cluster.now, ALICE, "debug"))
    cluster.refusal()
    assert shown(cluster) == before
