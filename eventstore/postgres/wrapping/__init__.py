"""Vaults whose keys are encrypted ("wrapped") under a key that is in no table, so in no archive of the database."""
