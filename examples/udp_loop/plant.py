"""A tank that fills by what its valve lets in and leaks; it reports its level over UDP, in blocking style."""

import select
import socket
import time

level, valve = 0.0, 0.0
with socket.socket(type=socket.SOCK_DGRAM) as radio:
    radio.bind(("", 9000))
    due = time.monotonic()
    while time.monotonic() < 20:
        due += 0.1
        while select.select([radio], [], [], max(0.0, due - time.monotonic()))[0]:
            valve = float(radio.recv(100))
        level += 0.1 * (valve - 0.3 * level)
        radio.sendto(f"{level:.4f}".encode(), ("controller", 9001))
print(f"level {level:.2f}")
