"""Bringing a database to this release's schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from accounting.errors import StoreError

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"

HEAD = "0002"
"""The newest migration. Named here so that a database that has it already opens without Alembic, which takes long to load."""


def configuration(connection: Connection) -> Config:
    """Alembic's configuration, without a file."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, name: str) -> None:
    """Run the migrations that ``connection``'s database lacks, in its transaction. ``name`` is the database in messages.

    Raises StoreError when a later release of slurmk made the database (an older one must not write to it), and when
    its tables are somebody else's.
    """
    present = _revision(connection)
    if present == HEAD:
        return
    if present is None and inspect(connection).has_table("job"):
        raise StoreError(
            f"{name}: has a table 'job' that slurmk did not make; give slurmk a database of its own", passing=False
        )
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if present is not None and present not in known:
        raise StoreError(
            f"{name}: made by a newer slurmk (its schema is {present}, this release knows {HEAD}); "
            "run that release, or name another database",
            passing=False,
        )
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return None if row is None else str(row[0])
