"""The pages of operators: the log, health, settings and organizations of the installation."""
