"""The wire: frames, what stands in them, and how a connection begins. Bytes in, typed values out; no sockets here."""
