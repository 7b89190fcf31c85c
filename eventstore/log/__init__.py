"""The log as it is stored: its rows, their chain, what a check finds, and their copying."""
