"""docs/slurmk-yaml.md and docs/slurmk-yaml.schema.json, made from the schema and the defaults.

python -m bridge.kubernetes.settings_page docs
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from bridge.kubernetes.settings import ClientLimits, Features, GresSource, PartitionSettings, PodSettings, Settings
from bridge.kubernetes.settings_schema import (
    CLIENT_KEYS,
    FEATURE_KEYS,
    FORMAT_WORDS,
    GRES_KEYS,
    MOUNT,
    PARTITION_KEYS,
    POD_KEYS,
    ROOT_KEYS,
    SCHEMA,
    VOLUME_SOURCES,
    Schema,
    attribute,
)

HEAD = """# slurmk.yaml

What slurmk needs to know about running on Kubernetes and slurm.conf has no words for. The file is named with
`slurmk up --kubernetes FILE`, or lies beside slurm.conf. `slurmk config check` checks it, and whether the cluster has what it
names. This page is made from the schema that files are checked with, which editors can use too:
[slurmk-yaml.schema.json](slurmk-yaml.schema.json). [examples/slurmk.yaml](examples/slurmk.yaml) is a minimal file,
[examples/slurmk-full.yaml](examples/slurmk-full.yaml) has every key once.

Times are seconds, quantities are Kubernetes' (`500m`, `4Gi`). A mistake is told as `FILE:LINE: KEY: what is wrong`.
"""

PODS_NOTE = """
The same keys are in `pods` of a partition, which says what is different there. Its single values take the place of the
site's; its mappings (`labels`, `annotations`, `environment`, `nodeSelector`) are merged into the site's key by key, null takes
a key away; `pod` is merged as described; its `tolerations` and `imagePullSecrets` are added; its `volumes` are added, one of
the same name takes the other's place.
"""


def page() -> str:
    """The page in Markdown."""
    sources = ", ".join(f"`{source}`" for source in VOLUME_SOURCES)
    parts = [
        HEAD,
        *_table("The file", ROOT_KEYS, Settings()),
        *_table("`partitions.NAME`", PARTITION_KEYS, PartitionSettings("")),
        *_table("`pods`, `partitions.NAME.pods`", POD_KEYS, PodSettings()),
        PODS_NOTE,
        *_table("`pods.volumes[]`", {"name": _VOLUME_NAME, **MOUNT, "mounts": _MOUNTS}, None),
        f"\nBeside these, one of a pod's kinds of volume, as in Kubernetes: {sources}.\n",
        *_table("`gres[]`", GRES_KEYS, GresSource("")),
        f"\nWithout `gres`, these are known:\n\n{_default_gres()}",
        *_table("`features`", FEATURE_KEYS, Features()),
        *_table("`client`", CLIENT_KEYS, ClientLimits()),
    ]
    return "".join(parts)


_VOLUME_NAME: Schema = {"type": "string", "description": "The volume's name."}
_MOUNTS: Schema = {
    "type": "array",
    "items": {"type": "object"},
    "description": "Several mounts of one volume, each with the keys above.",
}


def schema() -> str:
    """The schema as JSON."""
    return json.dumps(SCHEMA, indent=2) + "\n"


def _table(title: str, keys: Mapping[str, Schema], defaults: Any) -> Iterator[str]:
    yield f"\n## {title}\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
    for key, row in keys.items():
        meaning = row["description"]
        yield f"| `{key}` | {_value(row)} | {_default(key, defaults)} | {meaning[0].upper()}{meaning[1:]} |\n"


def _value(row: Schema) -> str:
    """What a key takes, in a few words."""
    if "enum" in row:
        return " ".join(f"`{word}`" for word in row["enum"])
    kind = row["type"] if isinstance(row["type"], str) else "string"
    if kind == "array":
        return f"list: {_value(row['items'])}"
    if kind == "object":
        return "keys"
    if kind == "boolean":
        return "`true` `false`"
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'}, {_number(row['minimum'])} to {_number(row['maximum'])}"
    return FORMAT_WORDS.get(row.get("format", ""), "name" if "format" in row else "text")


def _number(value: float) -> str:
    return f"{value:g}" if value < 1_000_000 else f"{value:,}"


def _default(key: str, defaults: Any) -> str:
    if defaults is None:
        return ""
    value = getattr(defaults, attribute(key))
    if isinstance(value, Enum):
        value = value.value
    if value in ("", (), {}, None) or dataclasses.is_dataclass(value) or (isinstance(value, tuple) and key == "gres"):
        return '`""`' if key == "nodes" and value == "" else ""
    return f"`{json.dumps(value).strip(chr(34))}`"


def _default_gres() -> str:
    lines = ["| name | resource | type |", "| --- | --- | --- |"]
    for source in Settings().gres:
        kind = f"by the label `{source.type_label}`" if source.type_label else "what `*` stands for"
        lines.append(f"| `{source.name}` | `{source.resource}` | {kind} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "slurmk-yaml.md").write_text(page())
    (folder / "slurmk-yaml.schema.json").write_text(schema())
