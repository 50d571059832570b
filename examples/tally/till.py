"""Adds one again and again. The total is never to be lower than it was said to be."""

import socket
import time

said = 0
while True:
    try:
        with socket.create_connection(("store", 9000), timeout=1) as connection:
            connection.sendall(b"1\n")
            answer = connection.makefile().readline()
    except OSError:  # It is down, or goes down before it answers.
        answer = ""
    if answer:
        if int(answer) <= said:
            raise SystemExit(f"the store said {said}, and now it says {int(answer)}")
        said = int(answer)
    time.sleep(0.1)
