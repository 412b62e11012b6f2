"""Whether the site has the licences that a job asks for (Licenses)."""

from __future__ import annotations

import re

from slurmk.model.site import Site


def are_licenses(site: Site, text: str | None) -> bool:
    """Whether the site has each licence of ``matlab:2,ansys`` (or ``|`` and ``;`` between them), and as many of it."""
    for item in filter(None, re.split("[,;|]", text or "")):
        name, _, count = item.strip().replace("=", ":").partition(":")
        count = count.strip()
        if (count and not (count.isascii() and count.isdigit())) or name not in site.licenses:
            return False
        if int(count or 1) > site.licenses[name] and "allow_zero_lic" not in site.scheduler_parameters:
            return False
    return True


def no_longer_valid(text: str | None) -> str:
    """What is said of a job that cannot start again for that."""
    return f"License request '{text}' is no longer valid, holding job"
