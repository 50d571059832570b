"""A participant: what its program sees, and its way to a server."""
