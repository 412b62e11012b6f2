"""Recorded workloads as text: both forms, the rules of what is replayed, and what is wrong with a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk.planner.simulator.trace import YEAR, Machine, Record, Trace, TraceError, records_of, trace_of

SWF = """\
; Version: 2.2
; MaxNodes: 25
; MaxProcs: 100
; UnixStartTime: 843480031

1 50 7 90 10 -1 -1 20 60 -1 1 4 1 -1 -1 -1 -1 -1
2 0 0 30 5 -1 -1 -1 60 -1 1 4 1 -1 -1 -1 -1 -1
3 10 0 0 5 -1 -1 5 60 -1 0 5 1 -1 -1 -1 -1 -1
4 20 0 30 5 -1 -1 101 60 -1 1 5 1 -1 -1 -1 -1 -1
5 30 0 30 5 -1 -1 5 -1 -1 1 5 1 -1 -1 -1 -1 -1
6 -1 0 30 5 -1 -1 5 60 -1 1 5 1 -1 -1 -1 -1 -1
7 50 0 30 -1 -1 -1 -1 60 -1 1 5 1 -1 -1 -1 -1 -1
8 50 0 61.4 1 -1 -1 1 600 -1 1 5 1 -1 -1 -1 -1 -1
"""

SACCT = """\
JobID|User|Submit|Start|End|Elapsed|Timelimit|ReqCPUS|NNodes|State
11|alice|2026-11-30T07:00:00|2026-11-30T07:00:10|2026-11-30T08:00:10|01:00:00|1-00:00:00|48K|2|COMPLETED
11.batch||2026-11-30T07:00:10|2026-11-30T07:00:10|2026-11-30T08:00:10|01:00:00||8|1|COMPLETED
12|bob|2026-11-30T07:00:05|2026-11-30T07:00:10|2026-11-30T07:10:10|00:10:00|UNLIMITED|4|1|FAILED
13_4|bob|2026-11-30T07:00:06|Unknown|Unknown|00:00:00|00:05:00|4|1|CANCELLED by 0
"""


def trace(text: str, **options: int) -> Trace:
    return trace_of(*records_of(text.splitlines(keepends=True)), **options)


def test_swf_by_the_rules() -> None:
    found = trace(SWF)
    assert found.numbers == ("2", "1", "8")
    assert found.procs == 100
    assert found.submit.tolist() == [0, 50, 50]
    assert found.size.tolist() == [5, 20, 1]
    assert found.run.tolist() == [30, 60, 61]
    assert found.limit.tolist() == [60, 60, 600]
    assert found.user[0] == found.user[1] != found.user[2]


def test_size_of_the_machine_and_number_of_jobs() -> None:
    assert trace(SWF, jobs=1).numbers == ("2",)
    assert trace(SWF, procs=200).numbers == ("2", "4", "1", "8")
    by_nodes = trace(SWF, nodes=25)
    assert by_nodes.procs == 25
    assert by_nodes.size.tolist() == [2, 5, 1]


def test_sacct_without_steps_and_jobs_that_never_ran() -> None:
    found = trace(SACCT)
    assert found.numbers == ("11", "12")
    assert found.submit.tolist() == [0, 5]
    assert found.size.tolist() == [48 * 1024, 4]
    assert found.run.tolist() == [3600, 600]
    assert found.limit.tolist() == [86400, YEAR]
    assert found.procs == 48 * 1024 + 4
    assert trace(SACCT, nodes=3).size.tolist() == [2, 1]


def test_sacct_raw_fields() -> None:
    text = "JobID|Submit|ElapsedRaw|TimelimitRaw|AllocCPUS|\n5|1000|60|2|3|\n"
    found = trace(text, procs=8)
    assert (found.run.tolist(), found.limit.tolist(), found.size.tolist()) == ([60], [120], [3])


def test_sacct_as_sites_print_it() -> None:
    """Without a header line; a name with the mark in it; sizes among the TRES; times with zones, days, none; array tasks."""
    fields = "JobIDRaw,JobName%20,Submit,Elapsed,Timelimit,ReqTRES,AllocTRES"
    text = """\
21|a|b|2026-11-30T07:00:00+01:00|1-00:00:10|2-00:00:00|billing=9,cpu=49.50K,mem=4G,node=3|\r
21.batch|batch|2026-11-30T07:00:00+01:00|1-00:00:10||cpu=1|cpu=1
22_[5-9%2]|c|2026-11-30T07:00:00|00:00:00|Partition_Limit||
22_4|c|2026-11-30T06:00:05|05:06.123|Partition_Limit||cpu=2,gres/gpu:a100=1,node=1
23|d|Unknown|00:01:00|INVALID|cpu=1|cpu=1
"""
    read = records_of(text.splitlines(keepends=True), fields)
    found = trace_of(*read, procs=60_000)
    assert found.numbers == ("21", "22_4")
    assert found.submit.tolist() == [0, 5]
    assert found.size.tolist() == [50_688, 2]
    assert found.run.tolist() == [86_410, 306]
    assert found.limit.tolist() == [2 * 86_400, YEAR]
    assert trace_of(*read, nodes=3).size.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("1 2 3\n", "line 1: 3 fields where a job has 18"),
        ("1 2 3 4 5 6 7 8 nine\n", "line 1: 'nine' is no number, as in Standard Workload Format all are"),
        ("1 nan 3 4 5 6 7 8 9\n", "line 1: 'nan' is no number, as in Standard Workload Format all are"),
        ("name,cpu_milli\n", "line 1: 'name,cpu_milli' is no number, as in Standard Workload Format all are"),
        ("1 1e300 3 4 5 6 7 8 9\n", "line 1: a number that is out of range"),
        (
            "; MaxProcs: 10\n1 0 0 0 1 0 0 1 9\n2 0 0 5 1 0 0 1 -1\n3 0 0 5 1 0 0 1 -1\n4 0 0 5 1 0 0 11 9\n",
            "none of its 4 jobs can be replayed: 2 without time limit, 1 without run time, 1 larger than the machine",
        ),
        ("1|wrap|debug|4\n", "line 1: it names no field; --fields LIST says which ones sacct --noheader printed"),
        ("JobID Submit\n", "line 1: no | between the names of fields, as sacct -P prints it"),
        ("; MaxProcs: 5\n", "it has no jobs"),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n", "it has no jobs"),
        (
            "; MaxProcs: 9223372036854775807\n1 0 0 5 1 0 0 1 9\n",
            "a machine of 9223372036854775807 processors: name --procs P or --nodes N",
        ),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n1|2|00:01|00:0²|1\n", "line 2: '00:0²' is no duration"),
        ("JobID|Submit|Elapsed|TimelimitRaw|NCPUS\n1|2|00:01|²|1\n", "line 2: '²' is no duration"),
        ("JobID|State\n1|COMPLETED\n", "line 1: no field for the submission; sacct -P --format must have one of Submit"),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n1|2|3\n", "line 2: 3 fields where the first line names 5"),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n1|soon|00:01|00:01|1\n", "line 2: 'soon' is no time"),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n1|2|x:01|00:01|1\n", "line 2: 'x:01' is no duration"),
        ("JobID|Submit|Elapsed|Timelimit|NCPUS\n1|2|00:01|00:01|many\n", "line 2: 'many' is no whole number"),
    ],
)
def test_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        trace(text)
    assert str(caught.value) == said


@given(st.text(alphabet="0123456789 -.;|:TKjobidsumtelaprcuUNv²٣\n", max_size=300))
def test_no_text_does_worse_than_an_error_of_its_own(text: str) -> None:
    try:
        found = trace(text)
    except TraceError:
        return
    assert len(found) > 0
    assert (found.run <= found.limit).all()


def test_outputs_one_after_another_and_what_never_started() -> None:
    later = SACCT.replace("13_4|bob|2026-11-30T07:00:06|Unknown", "14|bob|2026-11-30T07:00:06|None assigned")
    read = records_of((SACCT + later).splitlines(keepends=True))
    assert [record.number for record in read[0]] == ["11", "12", "13_4", "11", "12", "14"]
    assert [record.start for record in read[0]][2::3] == [-1, -1]


def test_header_of_a_trace_in_other_letters() -> None:
    assert trace(SWF.replace("MaxProcs: 100", "maxprocs: 100.0 (of 128)")).procs == 100


def test_size_that_nobody_says_is_what_was_in_use_at_once() -> None:
    records = [Record(str(number), 0, 100, 100, 4, start=start) for number, start in enumerate((0, 50, 100))]
    assert trace_of(records, Machine()).procs == 8
    with pytest.raises(TraceError, match="--procs P"):
        trace_of([Record("1", 0, 5, 5, 1)], Machine())
