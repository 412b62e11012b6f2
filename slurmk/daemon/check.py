"""``python -m slurmk.daemon.check``: says what is wrong with configuration files, and starts nothing. ``slurmk config check``
runs it.

Errors go to standard error and make the exit code 1, warnings go there too. What is good is told on standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grammar.errors import GrammarError
from slurmk.daemon.configured import find_configured, find_site, read
from slurmk.model.site import Site

if TYPE_CHECKING:
    from bridge.kubernetes.settings_file import SettingsFile

SETTINGS = "slurmk.yaml"


@dataclass
class Report:
    """What was found so far."""

    errors: int = 0

    def error(self, text: str) -> None:
        """Something that keeps the controller or jobs from running; each line is one."""
        for line in text.splitlines():
            self.errors += 1
            print(f"slurmk: error: {line}", file=sys.stderr)

    def warning(self, text: str) -> None:
        """Something that may be meant otherwise."""
        print(f"slurmk: warning: {text}", file=sys.stderr)

    def good(self, text: str) -> None:
        """Something that is as it should be."""
        print(text)


def main() -> int:
    """Check what the command line names; gives the exit code."""
    parser = argparse.ArgumentParser(prog="slurmk config check", allow_abbrev=False)
    parser.add_argument("--conf", type=Path)
    parser.add_argument("--kubernetes")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    parser.add_argument("--offline", action="store_true")
    options = parser.parse_args()
    report = Report()
    settings = _settings_path(options)
    if options.conf is None and settings is None:
        report.error("name what to check: --conf DIR, or --kubernetes FILE")
        return 1
    site = None
    if options.conf is not None and (settings is None or (options.conf / "slurm.conf").exists()):
        site = check_slurm(report, options.conf, on_kubernetes=settings is not None)
    if settings is not None:
        check_kubernetes(report, settings, options, site)
    return 1 if report.errors else 0


def _settings_path(options: argparse.Namespace) -> Path | None:
    """The slurmk.yaml to check: the one named, else that beside slurm.conf."""
    if options.kubernetes:
        return Path(options.kubernetes)
    beside: Path | None = options.conf and options.conf / SETTINGS
    if beside is not None and (
        beside.is_file() or (options.kubernetes is not None and not (options.conf / "slurm.conf").exists())
    ):
        return beside
    return None


def check_slurm(report: Report, folder: Path, on_kubernetes: bool) -> Site | None:
    """Check slurm.conf with its gres.conf and topology.conf; the site that they are, if they are."""
    folder = Path(os.path.abspath(folder))
    try:
        site = find_configured(folder) if on_kubernetes else find_site(folder, None)
    except GrammarError as error:
        report.error(str(error))
        return None
    except OSError as error:
        report.error(f"{error.filename or folder}: {error.strerror}")
        return None
    if site is None:
        return None
    for text in site.warnings:
        report.warning(text)
    if site.unused_keys:
        report.warning(f"{folder}/slurm.conf: accepted without effect: {', '.join(site.unused_keys)}")
    report.good(f"{folder}/slurm.conf: {_count(len(site.nodes), 'node')}, {_count(len(site.partitions), 'partition')}")
    return site


def check_kubernetes(report: Report, path: Path, options: argparse.Namespace, site: Site | None) -> None:
    """Check slurmk.yaml, the site's templates, and with a cluster that answers that it has what is named."""
    from bridge.kubernetes.samples import check_templates
    from bridge.kubernetes.settings_file import SettingsFile
    from bridge.kubernetes.templating import TemplateError, Templates

    try:
        text = read(str(path))
        if text is None:
            report.error(f"{path}: there is no such file")
            return
        file = SettingsFile(text, str(path))
    except GrammarError as error:
        report.error(str(error))
        return
    except OSError as error:
        report.error(f"{error.filename or path}: {error.strerror}")
        return
    settings = file.settings
    report.good(f"{path}: {_count(len(settings.partitions), 'partition')}")
    try:
        for name in Templates(settings.templates).unknown():
            report.warning(f"{settings.templates}/{name}: it takes the place of no template")
        check_templates(settings)
    except TemplateError as error:
        report.error(file.place("templates") + str(error).removeprefix("templates: "))
    _check_default(report, file, site)
    if not options.offline:
        kubeconfig = os.path.abspath(options.kubeconfig) if options.kubeconfig else settings.kubeconfig
        file.settings = replace(settings, kubeconfig=kubeconfig, context=options.context or settings.context)
        asyncio.run(_check_cluster(report, file))


def _check_default(report: Report, file: SettingsFile, site: Site | None) -> None:
    """Two files that name different default partitions are a mistake of one of them."""
    said = [partition.name for partition in site.partitions if partition.default] if site is not None else []
    ours = [partition.name for partition in file.settings.partitions if partition.default]
    if said and ours and said[0] != ours[0]:
        report.error(f"{file.place('partitions', ours[0], 'default')}slurm.conf says that {said[0]} is the default")


async def _check_cluster(report: Report, file: SettingsFile) -> None:
    from bridge.kubernetes.api import Api, ApiError, Unavailable
    from bridge.kubernetes.checks import Severity, check_cluster
    from bridge.kubernetes.errors import AccessError

    try:
        api = await Api.connect(file.settings)
    except AccessError as error:
        report.error(f"{_access_place(file)}{error}; --offline checks the files alone")
        return
    except (ApiError, Unavailable) as error:
        report.warning(f"the cluster was not asked: {error}")
        return
    try:
        version = await api.version()
        for finding in await check_cluster(api, file):
            (report.error if finding.severity is Severity.ERROR else report.warning)(finding.text)
        report.good(f"{api.server}: Kubernetes {version}")
    except (ApiError, Unavailable) as error:
        report.error(f"{api.server}: {error}")
    finally:
        await api.close()


def _access_place(file: SettingsFile) -> str:
    """File, line and key of what says how the cluster is reached, where slurmk.yaml does."""
    named = [key for key in ("kubeconfig", "context") if getattr(file.settings, key)]
    return file.place(named[-1]) if named else ""


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


if __name__ == "__main__":
    sys.exit(main())
