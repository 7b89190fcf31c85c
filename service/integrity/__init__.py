"""What keeps the log true to what it was: signed checkpoints, witnesses of its end, erasures that are repeated."""
