"""The page and the schema of slurmk.yaml are the code's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from bridge.kubernetes.settings_page import page, schema

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("name", "made"), [("slurmk-yaml.md", page), ("slurmk-yaml.schema.json", schema)])
def test_pages_are_up_to_date(name: str, made: object) -> None:
    assert callable(made)
    assert (DOCS / name).read_text() == made(), "run: python -m bridge.kubernetes.settings_page docs"


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(json.loads(schema()))
