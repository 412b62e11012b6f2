"""The database's schema, release by release (Alembic). ``Store.open`` runs what is missing."""
