"""Distributed algorithms that everybody learns, each with what must hold for it."""
