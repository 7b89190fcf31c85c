"""An event store in PostgreSQL, its vault in another database."""
