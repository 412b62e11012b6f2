"""Sending a program or file to a job's nodes: what sbcast and srun --bcast have in common (sbcast(1), BcastParameters)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slurmk.model.site import Site

EXCLUDED = "/lib,/usr/lib,/lib64,/usr/lib64"
"""Folders whose libraries every node has (BcastExclude)."""

Tell = Callable[[str], None]


def parameters(site: Site) -> Mapping[str, str]:
    """BcastParameters by lower-case name: destdir, compression, send_libs."""
    words = (site.parameters.get("BcastParameters") or "").split(",")
    return {name.strip().lower(): value.strip() for name, _, value in (word.partition("=") for word in words)}


def excluded(site: Site, said: str | None, tell: Tell) -> list[str]:
    """Folders whose libraries are not sent: those that were said, else the site's."""
    text = said or site.parameters.get("BcastExclude") or EXCLUDED
    if text.lower() in ("none", "(null)"):
        return []
    folders = text.split(",")
    for folder in folders:
        if not folder.startswith("/"):
            tell(f"error: Ignoring non-absolute excluded path: '{folder}'")
    return [folder for folder in folders if folder.startswith("/")]


def compressed(site: Site, said: str | None, tell: Tell) -> bool:
    """Whether files travel compressed; ``said`` is the kind, empty for the usual one, None for nothing said."""
    kind = parameters(site).get("compression", "none") if said is None else said or "lz4"
    if kind.lower() not in ("lz4", "none"):
        tell(f"error: Compression type '{kind}' unknown, disabling compression support.")
    return kind.lower() == "lz4"


def of_program(site: Site, said: str, options: Mapping[str, Any], tell: Tell) -> dict[str, object]:
    """What srun's local part is told of --bcast. ``said`` is its value; ``options`` are compress, send_libraries and
    bcast_exclude."""
    configured = parameters(site)
    where = said if said.startswith("/") else "" if said else configured.get("destdir", "")
    if not said and where:
        where = where.rstrip("/") + "/"
    libraries = options.get("send_libraries")
    if libraries is None:
        libraries = configured.get("send_libs", "no").lower() in ("yes", "y", "")
    return {
        **({"path": where} if where and not where.endswith("/") else {"folder": where.rstrip("/") or "."}),
        "compress": compressed(site, options.get("compress"), tell),
        "libraries": bool(libraries),
        "exclude": excluded(site, options.get("bcast_exclude"), tell) if libraries else [],
    }
