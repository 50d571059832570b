"""Faults: what is done to participants, when, and how a seed draws it."""
