"""Sign in, with its ways, and a person's own account."""
