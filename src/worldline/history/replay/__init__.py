"""Runs that are repeated, held against what was said the first time."""
