"""Turns templates into Kubernetes objects: Jinja2 gives YAML, YAML gives values.

A site's folder replaces the templates that come with slurmk file by file. A template names values with ``json``, which
writes any value so that YAML reads exactly that value again, whatever a user put into it. A name that does not exist is
an error, not an empty text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import yaml

from bridge.kubernetes.resources import Manifest
from grammar.errors import GrammarError

FOLDER = Path(__file__).parent / "templates"
"""The templates that come with slurmk."""

SUFFIX = ".yaml.j2"

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]")
"""What YAML does not take as it is, not even between quotation marks."""


class TemplateError(GrammarError):
    """A template that cannot be used. The text names file and line where they are known."""


class Templates:
    """The templates of a site. ``folder`` has its own ones, or is empty."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        folders = [Path(folder)] if folder else []
        if folder and not Path(folder).is_dir():
            raise TemplateError(f"templates: {folder} is no folder")
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader([*folders, FOLDER]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.filters["json"] = self._environment.filters["tojson"] = as_json
        self._environment.policies["json.dumps_function"] = None

    def unknown(self) -> Sequence[str]:
        """Files in the site's folder that replace nothing."""
        if not self.folder:
            return ()
        ours = {path.name for path in FOLDER.iterdir()}
        return sorted(path.name for path in Path(self.folder).iterdir() if path.name.endswith(".j2") and path.name not in ours)

    def render(self, name: str, /, **values: Any) -> list[Manifest]:
        """The objects that the template ``name`` (without suffix) gives, in their order. Raises TemplateError."""
        try:
            template = self._environment.get_template(name + SUFFIX)
            text = template.render(values)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.filename or name + SUFFIX}:{error.lineno}: {error.message}") from None
        except jinja2.TemplateNotFound as error:
            raise TemplateError(f"there is no template {error.name}") from None
        except Exception as error:  # whatever an expression of a site's template does
            raise TemplateError(f"{_place(error, name)}: {error}") from None
        return [document for document in _documents(text, template.filename or name) if document is not None]


def as_json(value: Any) -> str:
    """``value`` as JSON that YAML reads as the same value. What is no Unicode text becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    text = _SURROGATE.sub("\ufffd", text)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(value: Any) -> Any:
    """Mappings and sequences that json does not know."""
    if hasattr(value, "items"):
        return dict(value.items())
    return list(value)


def _documents(text: str, name: str) -> list[Any]:
    try:
        found = list(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        written = (text.splitlines() or [""])[min(line, text.count("\n") + 1) - 1].strip()
        raise TemplateError(
            f"{name}: it gives no YAML: line {line} of what it gives: {error.problem}: {written[:120]}"
        ) from None
    except yaml.YAMLError as error:
        raise TemplateError(f"{name}: it gives no YAML: {error}") from None
    for document in found:
        if document is not None and not isinstance(document, dict):
            raise TemplateError(f"{name}: it gives a document that is no mapping: {str(document)[:120]}")
    return found


def _place(error: Exception, name: str) -> str:
    """File and line of the template where an expression failed."""
    place = name + SUFFIX
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename.endswith(SUFFIX):
            place = f"{filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
