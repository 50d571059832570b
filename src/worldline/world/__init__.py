"""Robots in a physics world: its description, its levels and performers, the physics, and who simulates what."""
