"""Documents of the data parser: the members and types that the reference printed, in each version, and how they are written.

``documents_reference/members.json`` is what Slurm 26.05 had in its documents: every member of each kind of thing by its
path, with the type of its value, in order.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_fakes import ALICE, BOB, FakeController, reference_site, run_command
from hypothesis import given
from hypothesis import strategies as st

from slurmk.commands.documents.configuration import configuration_document
from slurmk.commands.documents.envelope import Unsupported, wanted
from slurmk.commands.documents.others import PING, PingView
from slurmk.commands.documents.records import tres_ids, tres_list
from slurmk.commands.documents.reservations import RESERVATION
from slurmk.commands.documents.shape import VERSIONS, Member, Shape, constant, nested
from slurmk.commands.documents.text import compact_text, complexly, json_pieces, json_text, plainly, yaml_text
from slurmk.commands.documents.values import (
    INFINITY,
    UNSET,
    Placeholder,
    Retired,
    RetiredNumber,
    exit_code,
    job_state,
    limit,
    number,
)
from slurmk.model.reservation import Access, Reservation, ReservationFlag
from slurmk.model.states import INFINITE, NO_VALUE

MEMBERS: dict[str, list[str]] = json.loads((Path(__file__).parent / "documents_reference" / "members.json").read_text())
_TYPES = {str: "text", int: "number", float: "decimal", bool: "flag", type(None): "nothing"}


def members(value: object, path: str = "") -> dict[str, str]:
    """Paths and types of a value's members."""
    found: dict[str, str] = {}
    if isinstance(value, dict):
        for name, member in value.items():
            found |= members(member, f"{path}.{name}")
        return found or {path: "object"}
    if isinstance(value, list):
        found[path] = "list"
        for member in value:
            if isinstance(member, dict | list):
                found |= members(member, f"{path}[]")
        return found
    return {path: _TYPES[type(value)]}


def agree(kind: str, version: int, rows: list[dict[str, Any]]) -> None:
    """Every member that the reference has is there with its type, and no other. A list's own members may be missing: it
    may be empty."""
    expected = dict(line.rsplit(": ", 1) for line in MEMBERS[f"{kind} v0.0.{version}"])
    found: dict[str, str] = {}
    for row in rows:
        for path, type_ in members(row).items():
            if found.get(path) in (None, "nothing"):
                found[path] = type_
    found = {path.removeprefix("."): type_ for path, type_ in found.items()}
    assert {path: type_ for path, type_ in found.items() if expected.get(path) != type_} == {}
    assert [path for path in expected if path not in found and "[]" not in path] == []
    plain = [path for path in expected if "[]" not in path]
    assert [path for path in found if path in plain] == plain


def ask(controller: FakeController, *words: str) -> dict[str, Any]:
    answer = run_command(controller, *words)
    assert (answer.err, answer.code) == ("", 0)
    loaded = json.loads(answer.out)
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture
def controller() -> FakeController:
    """A cluster with a job that runs, one that ended, and an array and a het job that wait."""
    made = FakeController()
    run_command(made, "sbatch", "-J", "runs", "-N", "2", "-n", "4", "--gres=gpu:1", "-t", "5", "--wrap", "true")
    run_command(made, "sbatch", "-H", "-J", "list", "-a", "1-7:2%2", "--mem=2G", "-p", "debug,cpu", "--wrap", "true")
    run_command(made, "sbatch", "-H", "-J", "both", "-n", "1", ":", "-n", "2", "--wrap", "true")
    for job_id in made.start_all():
        made.add_step(job_id)
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_have_the_members_of_the_reference(controller: FakeController, version: int) -> None:
    agree("job", version, ask(controller, "squeue", f"--json=v0.0.{version}")["jobs"])
    agree("job", version, ask(controller, "scontrol", f"--json=v0.0.{version}", "show", "job")["jobs"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("kind", "words", "name"),
    [
        ("row", ("sinfo",), "sinfo"),
        ("node", ("scontrol", "show", "nodes"), "nodes"),
        ("partition", ("scontrol", "show", "partitions"), "partitions"),
        ("step", ("scontrol", "show", "steps"), "steps"),
        ("step", ("squeue", "-s"), "steps"),
        ("license", ("scontrol", "show", "licenses"), "licenses"),
        ("ping", ("scontrol", "ping"), "pings"),
    ],
)
def test_things_have_the_members_of_the_reference(
    controller: FakeController, version: int, kind: str, words: tuple[str, ...], name: str
) -> None:
    rows = ask(controller, *words, f"--json=v0.0.{version}")[name]
    assert rows
    agree(kind, version, rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_reservations_have_the_members_of_the_reference(version: int) -> None:
    flags = ReservationFlag.SPEC_NODES | ReservationFlag.MAINT
    kept = Reservation("upkeep", 1, 100, 700, ("n8", "n7"), flags, 32, 32, users=Access(("root",)))
    document = RESERVATION.document(kept, version)
    agree("reservation", version, [plainly(document)])  # type: ignore[list-item]
    assert (document["flags"], document["node_list"], document["tres"]) == (["MAINT", "SPEC_NODES"], "n[7-8]", "cpu=32")


UNKNOWN = """scontrol: error: load_plugins: unable to find plugin: data_parser/v9
scontrol: error: data_parser_g_new: failure loading plugins: Plugin has invalid format or unable to be loaded
scontrol: error: application/json output not supported by data_parser/v0.0.45
"""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("ping", 253),
        ("show config", 253),
        ("show partitions", 255),
        ("show partition nope", 255),
        ("show steps", 0),
        ("show step 99999999", 1),
        ("show jobs", 1),
        ("show nodes", 1),
        ("show licenses", 1),
        ("show reservations", 1),
    ],
)
def test_a_data_parser_that_there_is_not(words: str, code: int, controller: FakeController) -> None:
    """As the reference answers."""
    said = run_command(controller, "scontrol", "--json=v9", *words.split())
    assert (said.out, said.err, said.code) == ("", UNKNOWN, code)


@pytest.mark.parametrize("words", ["version", "show hostnames a1", "show topology"])
def test_what_has_no_document_does_not_mind_the_form(words: str, controller: FakeController) -> None:
    plain = run_command(controller, "scontrol", *words.split())
    said = run_command(controller, "scontrol", "--json=v9", *words.split())
    assert (said.out, said.err, said.code) == (plain.out, plain.err, 0)


def test_the_configuration_has_the_members_of_the_reference(controller: FakeController) -> None:
    document = plainly(configuration_document(controller.machine, 5))
    assert isinstance(document, dict)
    agree("configuration", 45, [document])
    said = run_command(controller, "scontrol", "--json=v0.0.44", "show", "config")
    assert (said.out, said.code) == ("\n", 244)


def test_what_a_document_tells_of_jobs(controller: FakeController) -> None:
    jobs = {job["name"]: job for job in ask(controller, "squeue", "--json")["jobs"]}
    runs, waits = jobs["runs"], jobs["list"]
    assert (runs["job_state"], runs["node_count"]["number"], runs["cpus"]["number"]) == (["RUNNING"], 2, 4)
    assert runs["job_resources"]["nodes"]["count"] == 2
    assert runs["gres_detail"] == ["gpu:a100:1(IDX:0)", "gpu:a100:1(IDX:0)"]
    assert (waits["array_task_string"], waits["array_max_tasks"]["number"]) == ("1,3,5,7%2", 2)
    assert waits["job_resources"] is None
    assert waits["memory_per_node"] == {"set": True, "infinite": False, "number": 2048}
    assert "EXACT_MEMORY_REQUESTED" in waits["flags"]
    assert jobs["both"]["het_job_id_set"] == f"{jobs['both']['het_job_id']['number']}-{jobs['both']['job_id']}"


def test_memory_for_each_gpu_counts_as_that_of_a_node() -> None:
    controller = FakeController()
    run_command(controller, "sbatch", "-p", "gpu", "-G", "2", "--mem-per-gpu=100", "--wrap", "true")
    (job,) = ask(controller, "squeue", "--json")["jobs"]
    assert job["memory_per_node"] == {"set": True, "infinite": False, "number": 100}
    assert (job["memory_per_cpu"]["set"], job["memory_per_tres"]) == (False, "gres/gpu:100")


def test_a_job_that_waits_in_several_partitions_tells_its_priority_in_each() -> None:
    controller = FakeController()
    run_command(controller, "sbatch", "-p", "debug,cpu", "--begin=now+1hour", "--wrap", "true")
    (job,) = ask(controller, "squeue", "--json")["jobs"]
    priority = job["priority"]["number"]
    assert job["priority_by_partition"] == [
        {"partition": "debug", "priority": priority},
        {"partition": "cpu", "priority": priority},
    ]


def test_private_jobs_are_in_nobody_elses_document() -> None:
    controller = FakeController(reference_site(private_data=("jobs",)))
    run_command(controller, "sbatch", "-H", "--wrap", "true", caller=ALICE)
    for words in (("squeue", "--json"), ("scontrol", "--json", "show", "job")):
        assert len(json.loads(run_command(controller, *words, caller=ALICE).out)["jobs"]) == 1
        assert json.loads(run_command(controller, *words, caller=BOB).out)["jobs"] == []


def test_a_name_that_is_no_text_does_not_spoil_the_document(controller: FakeController) -> None:
    run_command(controller, "sbatch", "-H", "-J", "bad\udcff/\x01", "--wrap", "true")
    for words in (("--json",), ("--yaml",)):
        said = run_command(controller, "squeue", *words, "-t", "all").out
        said.encode("utf-8")
    names = [job["name"] for job in ask(controller, "squeue", "--json")["jobs"]]
    assert "bad\ufffd/\x01" in names


def test_the_last_form_counts_and_lists_are_answered(controller: FakeController) -> None:
    assert run_command(controller, "squeue", "--json", "--yaml").out.startswith("%YAML 1.1\n--- !!map\n")
    assert run_command(controller, "squeue", "--yaml", "--json").out.startswith("{\n")
    said = run_command(controller, "sinfo", "--json=list")
    assert (said.err, said.code) == ("Possible data_parser plugins:\n", 0)
    assert sorted(said.out.split()) == [f"data_parser/v0.0.{version}" for version in VERSIONS]


def test_compact_is_the_same_document(controller: FakeController) -> None:
    pretty = run_command(controller, "squeue", "--json").out
    compact = run_command(controller, "squeue", "--json", environment={"SLURM_JSON": "compact"}).out
    assert json.loads(pretty) == json.loads(compact)
    assert " " not in re.sub(r'"[^"]*"', "", compact)
    assert run_command(controller, "squeue", "--json", environment={"SLURM_YAML": "tight"}).err == (
        'squeue: fatal: Unable to parse serializer "tight" flags: Invalid argument\n'
    )


# ------------------------------------------------------------------------------------------------ values and forms


def test_numbers_with_flags() -> None:
    assert number(5) == {"set": True, "infinite": False, "number": 5}
    assert limit(INFINITE) is INFINITY
    assert limit(NO_VALUE) == limit(None) == UNSET
    assert number(5) is number(5)


@pytest.mark.parametrize(
    ("status", "word", "code", "signal"),
    [(0, "SUCCESS", 0, ""), (3 << 8, "ERROR", 3, ""), (9, "SIGNALED", None, "KILL"), (11 | 0x80, "CORE_DUMPED", None, "SEGV")],
)
def test_exit_codes(status: int, word: str, code: int | None, signal: str) -> None:
    found = exit_code(status)
    assert found["status"] == [word]
    assert found["return_code"] == number(code)
    assert found["signal"]["name"] == signal  # type: ignore[index]


def test_states_with_their_flags() -> None:
    assert job_state(1, 0) == ["RUNNING"]
    assert job_state(0, 0x8400) == ["PENDING", "REQUEUED", "COMPLETING"]


def test_shapes_have_members_of_their_version() -> None:
    shape: Shape[int] = Shape(
        Member("always", lambda value: value),
        constant("gone", [], until=43),
        nested("inner", Member("new", lambda value: -value, since=45), constant("old", 0, until=44)),
    )
    assert shape.document(7, 42) == {"always": 7, "gone": [], "inner": {"old": 0}}
    assert shape.document(7) == {"always": 7, "inner": {"new": -7}}


def test_tres_have_the_ids_of_accounting() -> None:
    site = reference_site(parameters={"AccountingStorageTRES": "gres/gpu,license/matlab"})
    assert tres_ids(site)["gres/gpu"] == 1001
    assert tres_ids(site)["license/matlab"] == 1002
    assert tres_list(site, {"gres/gpu": 2, "cpu": 1}) == [
        {"type": "cpu", "name": "", "id": 1, "count": 1},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
    ]


def test_the_complex_manner() -> None:
    value = {
        "number": number(3),
        "unset": UNSET,
        "infinite": INFINITY,
        "empty": "",
        "stdin_expanded": "",
        "retired": Retired(),
        "count": RetiredNumber(0),
        "missing": Placeholder(NO_VALUE),
        "rows": [{"text": "x", "list": []}],
    }
    assert complexly(value) == {
        "number": 3,
        "unset": None,
        "infinite": "Infinity",
        "empty": None,
        "stdin_expanded": "",
        "retired": None,
        "count": None,
        "missing": None,
        "rows": [{"text": "x", "list": []}],
    }
    assert plainly(value)["missing"] == NO_VALUE  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "version", "complex_", "parser"),
    [
        (None, 45, False, "data_parser/v0.0.45"),
        ("latest", 45, False, "data_parser/v0.0.45"),
        ("v0.0.42", 42, False, "data_parser/v0.0.42"),
        ("data_parser/v0.0.43", 43, False, "data_parser/v0.0.43"),
        ("v0.0.44+complex", 44, True, "data_parser/v0.0.44+complex"),
        ("v0.0.44+fast+Complex", 44, True, "data_parser/v0.0.44+fast+Complex"),
    ],
)
def test_versions_that_can_be_asked_for(value: str | None, version: int, complex_: bool, parser: str) -> None:
    found = wanted(value, yaml=False)
    assert (found.version, found.complex, found.parser, found.notices) == (version, complex_, parser, ())


@pytest.mark.parametrize(
    ("value", "first"),
    [
        ("", "error: data_parser_g_new: invalid plugin "),
        ("+complex", "error: data_parser_g_new: unable to find plugin "),
        ("v0.0.41", "error: load_plugins: unable to find plugin: data_parser/v0.0.41"),
        ("45", "error: load_plugins: unable to find plugin: data_parser/45"),
        ("v0.0.45+fast,complex", "error: data_parser_g_new: rejecting ambiguous plugin v0.0.45+fast,complex"),
    ],
)
def test_versions_that_are_not_there(value: str, first: str) -> None:
    with pytest.raises(Unsupported) as refused:
        wanted(value, yaml=True)
    assert refused.value.lines[0] == first
    assert refused.value.lines[-1] == "error: application/x-yaml output not supported by data_parser/v0.0.45"


def test_flags_that_are_not_known_are_told() -> None:
    assert wanted("v0.0.45+foo", yaml=False).notices == ("warning: data_parser/v0.0.45 ignoring unknown flag foo",)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.sampled_from([number(1), UNSET, INFINITY]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_DE", max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 8))
def test_json_reads_back(value: object, depth: int) -> None:
    expected = json.loads(json.dumps(value))
    assert json.loads(json_text(value, depth)) == expected
    assert json.loads(compact_text(value)) == expected


@given(st.lists(VALUES, max_size=3), VALUES)
def test_pieces_are_one_document(rows: list[object], rest: object) -> None:
    document = json.loads("".join(json_pieces("rows", rows, {"rest": rest})))
    assert document == {"rows": json.loads(json.dumps(rows)), "rest": json.loads(json.dumps(rest))}


@given(
    st.dictionaries(
        st.text("abc_", min_size=1, max_size=5),
        st.booleans() | st.integers() | st.text(st.characters(categories=("L", "N", "P", "Zs"))) | st.just(number(2)),
        min_size=1,
        max_size=4,
    )
)
def test_yaml_reads_back(value: dict[str, object]) -> None:
    assert yaml.safe_load(yaml_text(value)) == json.loads(json.dumps(value))


def test_json_is_indented_as_the_reference_does() -> None:
    document = {"a": [], "b": {}, "c": ["x/y", 1, 2.0, True, None], "d": number(4)}
    assert json_text(document) == (
        '{\n  "a": [],\n  "b": {},\n  "c": [\n    "x\\/y",\n    1,\n    2.0,\n    true,\n    null\n  ],\n'
        '  "d": {\n    "set": true,\n    "infinite": false,\n    "number": 4\n  }\n}'
    )


def test_a_ping_in_each_version() -> None:
    assert list(PING.document(PingView("host", 7), 44)) == [
        "hostname",
        "pinged",
        "responding",
        "latency",
        "mode",
        "primary",
    ]


def test_components_of_a_het_job_are_not_billed() -> None:
    controller = FakeController()
    run_command(controller, "sbatch", "-J", "alone", "--wrap", "true")
    run_command(controller, "sbatch", "-J", "component", "-n", "1", ":", "-n", "2", "--wrap", "true")
    controller.start_all()
    jobs = {job["name"]: job for job in ask(controller, "squeue", "--json")["jobs"]}
    assert jobs["alone"]["tres_alloc_str"].endswith("node=1,billing=1")
    assert jobs["component"]["tres_alloc_str"].endswith("node=1")
    assert "billing=" in jobs["component"]["tres_req_str"]
    assert jobs["component"]["billable_tres"] == {"set": True, "infinite": False, "number": 0.0}
