"""Whole requests that one instance passes on to another: what needs the repositories of the embedded code host."""
