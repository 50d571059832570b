"""Workers: what executes a simulation besides this process, on this machine and others, and who looks after it."""
