"""``scontrol show`` and ``scontrol ping`` with ``--json`` or ``--yaml``: documents of the data parser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from grammar.hostlist import HostlistError, expand
from slurmk.commands import scontrol_session
from slurmk.commands.call import Failure
from slurmk.commands.documents.configuration import configuration_document
from slurmk.commands.documents.envelope import Wanted
from slurmk.commands.documents.nodes import NODE, NodeOf
from slurmk.commands.documents.others import LICENSE, PING, LicenseView, PingView
from slurmk.commands.documents.partitions import PARTITION, PartitionView
from slurmk.commands.documents.printing import UnknownForm, list_order, print_jobs, print_object, print_rows, print_steps
from slurmk.commands.documents.reservations import RESERVATION
from slurmk.commands.documents.steps import StepView
from slurmk.commands.documents.values import number
from slurmk.commands.job_text import JobText, licenses_used
from slurmk.commands.node_text import views
from slurmk.commands.scontrol_job import named_jobs, named_steps, visible_jobs
from slurmk.commands.scontrol_show import controller_host
from slurmk.commands.sinfo import visible
from slurmk.core.errors import SlurmError

CONFIGURATION_SINCE = 45


class Session(scontrol_session.Session, Protocol):
    """What this module needs of one scontrol besides."""

    @property
    def show_all(self) -> bool: ...
    @property
    def form(self) -> Wanted | None: ...
    @property
    def unknown_form(self) -> UnknownForm | None: ...


async def show(session: Session, entity: str, name: str | None) -> int | None:
    """Write the document of what ``scontrol show ENTITY [NAME]`` shows; gives the exit code. None if Slurm has no document
    of it: then it shows text. Raises Failure where the form that was asked for is unknown."""
    if session.form is None and session.unknown_form is None:
        return None
    answer = next((answer for word, least, answer in ENTITIES if len(entity) >= least and word.startswith(entity)), None)
    if answer is None:
        return None
    if session.unknown_form is not None:
        code = 0 if answer is _steps and name is None else UNKNOWN_FORM.get(answer, session.unknown_form.code)
        raise Failure(session.unknown_form.text, code)
    assert session.form is not None
    return await answer(session, session.form, name) or 0


async def ping(session: Session) -> bool:
    """Who answers is up. Whether a document was asked for; raises Failure where its form is unknown."""
    if session.unknown_form is not None:
        raise Failure(session.unknown_form.text, UNKNOWN_FORM_OF_PING)
    asked = session.form
    if asked is None:
        return False
    view = PingView(controller_host(session.controller.machine.site), 0)
    await _rows(session, asked, "pings", [PING.document(view, asked.version)], updated=False)
    return True


async def _rows(
    session: Session,
    asked: Wanted,
    name: str,
    rows: Sequence[dict[str, object]],
    *,
    updated: bool = True,
    none: str = "",
) -> None:
    before = {"last_update": number(int(session.controller.now()))} if updated else None
    warnings = [none] if none and not rows else []
    await print_rows(session.call, session.controller, session.output, asked, name, rows, before=before, warnings=warnings)


async def _jobs(session: Session, asked: Wanted, name: str | None) -> None:
    call, controller, output = session.call, session.controller, session.output
    try:
        jobs = named_jobs(name, visible_jobs(call, controller))
    except SlurmError:
        raise Failure("scontrol_print_job error: Invalid job id specified\n") from None
    text = JobText(controller.machine, controller.now())
    await print_jobs(call, controller, output, asked, text, sorted(jobs, key=list_order), named=name is not None)


async def _steps(session: Session, asked: Wanted, name: str | None) -> None:
    call, controller = session.call, session.controller
    jobs = list(visible_jobs(call, controller))
    try:
        steps = named_steps(name, jobs)
        missed = name is not None and bool(jobs) and not named_jobs(name, jobs)
    except SlurmError:
        steps, missed = [], bool(jobs)
    cluster, now = controller.machine.site.cluster_name, int(controller.now())
    found = [StepView(step, job, cluster, now) for step, job in steps]
    await print_steps(call, controller, session.output, asked, found, missed=missed)


async def _nodes(session: Session, asked: Wanted, name: str | None) -> None:
    machine = session.controller.machine
    known = views(machine, future=bool(name))
    try:
        names = list(known) if name is None else [word for word in expand(name) if word in known]
    except HostlistError:
        names = []
    rows = [NODE.document(NodeOf(machine, known[word]), asked.version) for word in names]
    await _rows(session, asked, "nodes", rows, none="No nodes to dump")


async def _partitions(session: Session, asked: Wanted, name: str | None) -> None:
    machine = session.controller.machine
    known = views(machine, future=True)
    rows = [
        PARTITION.document(PartitionView(machine.site, partition, known), asked.version)
        for partition in machine.partitions.values()
        if (session.show_all or session.call.caller.operator or visible(session.call, partition))
        and name in (None, partition.name)
    ]
    await _rows(session, asked, "partitions", rows, none="No partitions to dump")


async def _licenses(session: Session, asked: Wanted, name: str | None) -> None:
    """All of them, whichever is named."""
    machine = session.controller.machine
    used = licenses_used(machine)
    licences = (LicenseView(word, total, used.get(word, 0)) for word, total in machine.site.licenses.items())
    await _rows(session, asked, "licenses", [LICENSE.document(view, asked.version) for view in licences])


async def _reservations(session: Session, asked: Wanted, name: str | None) -> None:
    """Under PrivateData=reservations a user sees those that name them."""
    machine, caller, now = session.controller.machine, session.call.caller, int(session.controller.now())
    everyone = caller.operator or "reservations" not in machine.site.private_data
    rows = [
        RESERVATION.document(each.at(now), asked.version)
        for each in machine.reservations.values()
        if name in (None, each.name) and (everyone or (each.users.names and each.users.allows(caller.user_name)))
    ]
    await _rows(session, asked, "reservations", rows)


async def _configuration(session: Session, asked: Wanted, name: str | None) -> int:
    """Versions before v0.0.45 have no document of it: an empty line and this code are what they give."""
    if asked.version < CONFIGURATION_SINCE:
        session.output.write("\n")
        return 244
    members = configuration_document(session.controller.machine, int(session.controller.now()))
    await print_object(session.call, session.controller, session.output, asked, members)
    return 0


Answer = Callable[[Session, Wanted, str | None], Awaitable[int | None]]

ENTITIES: tuple[tuple[str, int, Answer], ...] = (
    ("config", 1, _configuration),
    ("configuration", 1, _configuration),
    ("jobs", 1, _jobs),
    ("jobid", 1, _jobs),
    ("licenses", 2, _licenses),
    ("nodes", 1, _nodes),
    ("partitions", 2, _partitions),
    ("partitionname", 2, _partitions),
    ("reservations", 1, _reservations),
    ("reservationname", 1, _reservations),
    ("steps", 2, _steps),
)
"""What Slurm has documents of: the entity, how much of its name is enough, and what writes them."""

UNKNOWN_FORM: dict[Answer, int] = {_configuration: 253, _partitions: 255}
"""The exit codes after ``--json`` with a data parser that there is not, as they differ by what is shown."""

UNKNOWN_FORM_OF_PING = 253
