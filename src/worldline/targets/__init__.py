"""Targets: whatever a command is given to run, found by one convention and run in one way."""
