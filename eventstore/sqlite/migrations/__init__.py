"""The log's schema, one file for each step; forward only."""
