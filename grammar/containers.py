"""Names of container images: as registries have them, and as enroot (and so pyxis' ``--container-image``) writes them."""

from __future__ import annotations

import re

from grammar.errors import GrammarError

_DOMAIN = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::\d{1,5})?/)?"
_PATH = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*"
_TAG = r"(?::\w[\w.-]{0,127})?"
_DIGEST = r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,})?"
_IMAGE = re.compile(_DOMAIN + _PATH + _TAG + _DIGEST, re.ASCII)
_LONGEST = 512

_SCHEME = re.compile(r"([a-z+]+)://", re.ASCII)
_USER = re.compile(r"[^@/#]*@(?![A-Za-z0-9+._-]+:[0-9A-Fa-f]{32,}\Z)")


def parse_image(text: str) -> str:
    """An image's name as it is; GrammarError for what is none, such as the path of a bundle."""
    if text.startswith(("/", ".", "~")):
        raise GrammarError("jobs run in images from a registry, not from a file or folder")
    if len(text) > _LONGEST or not _IMAGE.fullmatch(text):
        raise GrammarError("not the name of an image")
    return text


def parse_enroot_image(text: str) -> str:
    """``[docker://][USER@][REGISTRY#]IMAGE[:TAG]`` as ``REGISTRY/IMAGE:TAG``; raises GrammarError.

    The user is left out: who may pull is settled by the site's pull secrets."""
    scheme = _SCHEME.match(text)
    if scheme and scheme[1] != "docker":
        raise GrammarError(f"images come from a registry, not from {scheme[1]}")
    name = text[scheme.end() :] if scheme else text
    if name.endswith((".sqsh", ".squashfs")):
        raise GrammarError("jobs run in images from a registry, not from a file or folder")
    return parse_image(_USER.sub("", name, count=1).replace("#", "/", 1))
