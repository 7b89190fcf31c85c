"""Docsmith: a documentation agent and assistant."""

__version__ = "0.1.0"
