"""The vault's schema, one file for each step; forward only."""
