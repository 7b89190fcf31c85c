"""Find the caller of a request, and check what it may do."""
