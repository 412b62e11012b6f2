"""How Alembic runs the migrations: always on the connection that ``accounting.schema`` hands over."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

import accounting.tables

connection = context.config.attributes["connection"]
assert accounting.tables
context.configure(connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
