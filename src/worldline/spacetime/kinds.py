"""What goes into an agent's chain: the kinds of what happens to it, and of what it does."""

from __future__ import annotations

# What a lambda is: a call; the end of a channel that attaches itself; or the news that somebody is dead.
CALL, ATTACH, DEATH = 0, 1, 2

TIMER, EDGE, TURN, CLOSE, LOG = 3, 4, 5, 6, 7

SENT = 8
"""And the kind of what was sent."""
