"""Targets: whatever can be run, found by what a user calls it, and made ready to run in one way.

A target is a federation's file, a world's, a user's Python file that defines `model`, or the name of an algorithm or an
example that comes with Worldline. What it is decides which room runs it; what can be said of a run is the same for all
of them.
"""

from worldline.targets.finding import look_again, prepare
from worldline.targets.ready import FederationOptions, Ready, RunOptions

__all__ = ["FederationOptions", "Ready", "RunOptions", "look_again", "prepare"]
