"""The search for a failure: many seeds, properties, and the shortest schedule that still fails."""
