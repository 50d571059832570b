"""The search for a failure: many seeds, properties that must hold, and the shortest schedule that still fails."""

from worldline.search.properties import Happening, Property, Story, Violation, always, at_end, eventually, leads_to

__all__ = ["Happening", "Property", "Story", "Violation", "always", "at_end", "eventually", "leads_to"]
