"""Launching: from a file that describes a federation to its participants as running processes."""
