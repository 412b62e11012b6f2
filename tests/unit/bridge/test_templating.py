"""Templates give the same objects whether their text is read anew or remembered from a job before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.kubernetes.templating import MARK, TemplateError, Templates, as_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def templates(folder: Path, text: str) -> Templates:
    (folder / "pod.yaml.j2").write_text(text)
    return Templates(str(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("templates")


@given(st.lists(VALUES, min_size=2, max_size=2))
def test_values_are_what_they_were(folder: Path, given: list[Any]) -> None:
    made = templates(folder, "a: {{ first | json }}\nb: [{{ second | json }}, 1]\n")
    assert made.render("pod", first=given[0], second=given[1]) == [{"a": _plain(given[0]), "b": [_plain(given[1]), 1]}]


def _plain(value: Any) -> Any:
    """What the API server would be sent: no half characters."""
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a: "x{{ n }}"\nb: {{ word | json }}\n', {"a": "x3", "b": "w"}),
        ("a: {{ word | json | upper }}\n", {"a": "W"}),
        ("a: {{ word | json | length }}\n", {"a": 3}),
        ("{{ word | json }}: 1\n", {"w": 1}),
        ("{% if (word | json) == '\"w\"' %}\na: 1\n{% endif %}\n", {"a": 1}),
        ("{% set unused = word | json %}\na: 1\n", {"a": 1}),
        ("a: {{ {'k': 'v'} | json }}\n", {"a": {"k": "v"}}),
        ("a: '{{ quoted }}'\n", {"a": "q"}),
    ],
)
def test_whatever_a_template_does_with_the_text(tmp_path: Path, text: str, expected: Any) -> None:
    made = templates(tmp_path, text)
    for _ in range(2):
        assert made.render("pod", n=3, word="w", quoted="q") == [expected]


def test_jobs_do_not_share_values(tmp_path: Path) -> None:
    made = templates(tmp_path, "labels: {{ labels | json }}\nfixed: {a: [1]}\n")
    shared = {"job": "1"}
    first, second = made.render("pod", labels=shared)[0], made.render("pod", labels={"job": "2"})[0]
    first["fixed"]["a"].append(2)
    first["labels"]["job"] = "3"
    assert second == {"labels": {"job": "2"}, "fixed": {"a": [1]}}
    assert shared == {"job": "1"}
    assert made.render("pod", labels={})[0]["fixed"] == {"a": [1]}


def test_a_value_that_looks_like_a_mark_is_a_value(tmp_path: Path) -> None:
    made = templates(tmp_path, "a: {{ a | json }}\nb: {{ b | json }}\n")
    assert made.render("pod", a=f"{MARK}1{MARK}", b="secret") == [{"a": f"{MARK}1{MARK}", "b": "secret"}]


def test_faults_name_their_place(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="gives no YAML: line 1"):
        templates(tmp_path, "a: {{ word | json }} }\n").render("pod", word="w")
    with pytest.raises(TemplateError, match=r"pod.yaml.j2:2: 'nothing' is undefined"):
        templates(tmp_path, "a: 1\nb: {{ nothing | json }}\n").render("pod")
    assert as_json("\ud800") == '"\ufffd"'
