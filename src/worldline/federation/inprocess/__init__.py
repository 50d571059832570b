"""A whole federation in one process, under a scheduler that decides every step."""
