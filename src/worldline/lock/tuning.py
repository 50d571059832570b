"""How much the lock looks at, and keeps, before it tidies up. None of these shows in any result: tests turn them.

What goes by one of them reads it when it is made, or when it tidies up.
"""

SLEEPERS_MAX = 8
"""Sleepers that a search looks at for a better horizon once the goal is reached: it bounds the cost of granting far
ahead in large networks."""

FAN_IN_SMALL = 16
"""Up to so many senders, looking at all of them for the slowest is cheaper than being held by one after the other."""

RIDERS_KEPT = 32
"""Riders of a clock that may be void before they are cleared away."""

GONE_KEPT = 8
"""Edges from those who have left, likewise."""

FORGET_EVERY = 64
"""Messages of a publication after which those that have arrived everywhere are forgotten."""

TOPICS_KEPT = 64
"""Topics of a sender up to which it isn't looked whether they are in use."""

GHOSTS_KEPT = 256
"""Losses at a receiver up to which it isn't looked whether they are final."""

TELL_EVERY = 512
"""Events after which the observer is told what is settled, if that wasn't told sooner."""
