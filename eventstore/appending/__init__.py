"""Appends on their way into the log."""
