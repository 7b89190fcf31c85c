"""Proof that the log was not changed: signed checkpoints, witnesses of its end, erasures that are repeated."""
