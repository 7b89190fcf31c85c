"""An event store in a SQLite file, its vault in another."""
