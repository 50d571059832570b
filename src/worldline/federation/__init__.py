"""Federations: programs with clocks of their own, and the server that lets each act when it may."""
