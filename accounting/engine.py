"""Connections to the database, and its errors in our words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from accounting.errors import StoreError

BUSY_SECONDS = 5
"""How long a connection waits for a lock that another process holds on the SQLite file."""

READERS = 4
"""Connections that queries may use at the same time."""

_SQLITE_WORDS: tuple[tuple[str, str], ...] = (
    ("database or disk is full", "the disk is full"),
    ("readonly database", "the file or its directory cannot be written to"),
    ("unable to open database file", "cannot be opened: see that the directory is there and may be written to"),
    ("locked", "is locked by another process"),
    ("disk I/O error", "reading or writing failed (disk I/O error)"),
    ("file is not a database", "is not an SQLite database"),
    ("malformed", "is damaged; restore it from a backup, or save what is left by sqlite3's .recover"),
)
_LASTING = ("file is not a database", "malformed")


def parse_url(text: str) -> URL:
    """The database's URL. Raises StoreError for one that is neither SQLite's nor Postgres's."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise StoreError(
            f"not a database URL: {text!r}; write sqlite:///PATH or postgresql://HOST/NAME", passing=False
        ) from None
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise StoreError(f"{url.get_backend_name()}: not a database that slurmk knows (SQLite or Postgres)", passing=False)
    if not url.database or url.database == ":memory:":
        raise StoreError("an SQLite database needs a file: write sqlite:///PATH", passing=False)
    return url


def database_name(url: URL) -> str:
    """The database as messages name it: a file, or a URL without its password."""
    return url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def make_engine(url: URL, *, writer: bool) -> Engine:
    """An engine with one connection that writes, or some that only read."""
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url, writer)
        options: dict[str, Any] = {"pool_size": 1 if writer else READERS, "max_overflow": 0, "paramstyle": "format"}
        return create_engine(
            url, poolclass=QueuePool, pool_pre_ping=not writer, connect_args={"connect_timeout": 10}, **options
        )
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise StoreError(f"{database_name(url)}: needs psycopg; install slurmk[postgres] ({error})", passing=False) from None


def _sqlite(url: URL, writer: bool) -> Engine:
    pool: dict[str, Any] = {"poolclass": NullPool} if writer else {"poolclass": QueuePool, "pool_size": READERS}
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, **pool)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where _begin says
        connection.execute("PRAGMA journal_mode = WAL") if writer else connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")

    return engine


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Within it, what the database or its driver raises becomes a StoreError about database ``name``."""
    try:
        yield
    except DBAPIError as error:
        raise _translated(name, error.orig or error) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise _translated(name, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "psycopg":  # which may not be installed
            raise
        raise _translated(name, error) from error


def _translated(name: str, error: BaseException) -> StoreError:
    said = " ".join(str(error).split())
    for words, meaning in _SQLITE_WORDS:
        if isinstance(error, sqlite3.Error) and words in said:
            return StoreError(f"{name}: {meaning}", passing=words not in _LASTING)
    return StoreError(f"{name}: {said or type(error).__name__}")
