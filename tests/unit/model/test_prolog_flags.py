"""PrologFlags: what each word brings with it, as the reference shows it, and what is refused."""

from __future__ import annotations

import pytest

from slurmk.model.configuration import load_site
from slurmk.model.prolog_flags import PrologFlagsError, parse_prolog_flags


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Alloc", "Alloc"),
        ("contain", "Alloc,Contain"),
        ("DeferBatch", "Alloc,DeferBatch"),
        ("ForceRequeueOnFail", "Alloc,ForceRequeueOnFail"),
        ("NoHold", "Alloc,NoHold"),
        ("Serial", "Serial"),
        ("RunInJob", "Alloc,Contain,RunInJob"),
        ("X11", "Alloc,Contain,X11"),
        ("contain,x11", "Alloc,Contain,X11"),
        ("DeferBatch,Serial", "Alloc,DeferBatch,Serial"),
    ],
)
def test_flags(said: str, shown: str) -> None:
    text = f"ClusterName=c\nPrologFlags={said}\nNodeName=n1\nPartitionName=p Nodes=n1\n"
    site = load_site({"/c/slurm.conf": text}.get, "/c")
    assert (",".join(site.prolog_flags), site.parameters["PrologFlags"]) == (shown, shown)


@pytest.mark.parametrize("said", ["ParallelProlog", "NoHold,Contain", "NoHold,X11"])
def test_refused(said: str) -> None:
    with pytest.raises(PrologFlagsError):
        parse_prolog_flags(said.split(","))


def test_programs_and_their_time() -> None:
    text = "ClusterName=c\nProlog=/a\nProlog=/b*\nEpilogSlurmctld=/e\nPrologEpilogTimeout=9\nEpilogTimeout=3\nNodeName=n1\n"
    site = load_site({"/c/slurm.conf": text + "PartitionName=p Nodes=n1\n"}.get, "/c")
    assert (site.prolog, site.epilog, site.epilog_slurmctld) == (("/a", "/b*"), (), ("/e",))
    assert (site.prolog_timeout, site.epilog_timeout) == (9, 3)
    assert not {"Prolog", "EpilogSlurmctld", "PrologEpilogTimeout"} & set(site.unused_keys)
