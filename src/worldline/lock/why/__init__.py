"""Who waits for whom, for how long, and what would help: made from what the lock says and what was noted of it."""
