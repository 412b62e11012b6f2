"""Turns templates into Kubernetes objects: Jinja2 gives YAML, YAML gives values.

A site's folder replaces the templates that come with slurmk file by file. A template names values with ``json``, which
writes any value so that YAML reads exactly that value again, whatever a user put into it. A name that does not exist is
an error, not an empty text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
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
        self._environment.filters["json"] = self._environment.filters["tojson"] = self._filter()
        self._environment.policies["json.dumps_function"] = None
        self._marked: list[str] | None = None  # values, as JSON, that stand as marks in the text now being made
        self._unmarkable: set[str] = set()

    def unknown(self) -> Sequence[str]:
        """Files in the site's folder that replace nothing."""
        if not self.folder:
            return ()
        ours = {path.name for path in FOLDER.iterdir()}
        return sorted(path.name for path in Path(self.folder).iterdir() if path.name.endswith(".j2") and path.name not in ours)

    def place(self, name: str) -> str:
        """The file that the template ``name`` (without suffix) is read from."""
        own = Path(self.folder) / (name + SUFFIX)
        return str(own if self.folder and own.is_file() else FOLDER / (name + SUFFIX))

    def one(self, name: str, /, **values: Any) -> Manifest:
        """The only object that a template gives. Raises TemplateError."""
        found = self.render(name, **values)
        if len(found) != 1:
            raise TemplateError(f"{self.place(name)}: it gives {len(found)} documents, not one")
        return found[0]

    def render(self, name: str, /, **values: Any) -> list[Manifest]:
        """The objects that the template ``name`` (without suffix) gives, in their order. Raises TemplateError.

        Reading YAML is slow. So values first stand as marks in the text, which is then the same for most jobs, is read
        once, and gets the values put in afterwards. Where a template does more with a value's text than to write it as
        one whole value, that is noticed, and its text is made and read in full.
        """
        if name not in self._unmarkable:
            marked: list[str] = []
            self._marked = marked
            try:
                text, source = self._text(name, values)
            finally:
                self._marked = None
            put = _Marks(marked)
            found = [put.into(document) for document in _remembered(text, source)] if _is_yaml(text, source) else []
            if put.complete:
                return found
            self._unmarkable.add(name)
        return [document for document in _documents(*self._text(name, values)) if document is not None]

    def _filter(self) -> Callable[[jinja2.runtime.Context, Any], str]:
        @jinja2.pass_context  # else it would be called once for all where its value is constant
        def write(context: jinja2.runtime.Context, value: Any) -> str:
            return self._json(value)

        return write

    def _json(self, value: Any) -> str:
        written = as_json(value)
        if self._marked is None:
            return written
        self._marked.append(written)
        return f'"{MARK}{len(self._marked) - 1}{MARK}"'

    def _text(self, name: str, values: dict[str, Any]) -> tuple[str, str]:
        """What the template gives, and which file it is."""
        try:
            template = self._environment.get_template(name + SUFFIX)
            return template.render(values), template.filename or name
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(f"{error.filename or name + SUFFIX}:{error.lineno}: {error.message}") from None
        except jinja2.TemplateNotFound as error:
            raise TemplateError(f"there is no template {error.name}") from None
        except Exception as error:  # whatever an expression of a site's template does
            raise TemplateError(f"{_place(error, name)}: {error}") from None


class _Marks:
    """Puts values, given as JSON, in the places of their marks."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = values
        self._used: set[int] = set()

    @property
    def complete(self) -> bool:
        """True when every mark was found where a value can be."""
        return len(self._used) == len(self._values)

    def into(self, document: Any) -> Any:
        """A copy of the document with its values."""
        if isinstance(document, dict):
            return {key: self.into(value) for key, value in document.items()}
        if isinstance(document, list):
            return [self.into(value) for value in document]
        if isinstance(document, str) and document.startswith(MARK) and document.endswith(MARK):
            number = document.removeprefix(MARK).removesuffix(MARK)
            if number.isdecimal() and int(number) < len(self._values):
                self._used.add(int(number))
                return json.loads(self._values[int(number)])
        return document


MARK = "\ue000vAlue"
"""Stands on both sides of the number of a value that comes later: a character of no language, and letters that no change of
case leaves as they are."""


def _is_yaml(text: str, name: str) -> bool:
    """False for what only its values make YAML, if anything does: the text in full then tells what is wrong."""
    try:
        _remembered(text, name)
    except TemplateError:
        return False
    return True


@functools.lru_cache(maxsize=512)
def _remembered(text: str, name: str) -> tuple[Any, ...]:
    """The documents of a text that often comes again; not to be changed."""
    return tuple(document for document in _documents(text, name) if document is not None)


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
