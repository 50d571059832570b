"""The search for a failure: many seeds, properties that must hold, and the shortest schedule that still fails."""

from worldline.search.properties import Property, Violation, always, at_end, eventually
from worldline.search.story import Happening, Story

__all__ = ["Happening", "Property", "Story", "Violation", "always", "at_end", "eventually"]
