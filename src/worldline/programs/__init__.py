"""Programs as they are: a computer with a network for each, so that they run unmodified in a simulation."""
