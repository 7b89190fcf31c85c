"""The schemas of the log and of the vault, one file for each step; forward only."""
