"""The server: the arbiter of a run, behind sockets, with a journal, and open to an operator."""
