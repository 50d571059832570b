"""Draws: every random number of a run has a name, a distribution and a value, which a table may replace."""
