"""The service's own tables in PostgreSQL, beside those of the log and of the vault."""
