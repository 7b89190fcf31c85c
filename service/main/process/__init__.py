"""The process that serves: its sockets, signals and settings, and its children."""
