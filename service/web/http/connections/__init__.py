"""Connections of an open network, their addresses and their limits."""
