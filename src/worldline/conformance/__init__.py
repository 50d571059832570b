"""Small models of every room, and the digests that they have on every machine."""
