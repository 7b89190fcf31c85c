"""The schema of what the views keep about themselves, one file for each step; forward only."""
