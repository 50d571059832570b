"""Files that are left for the user: written whole or not at all, and nothing else is harmed by it."""
