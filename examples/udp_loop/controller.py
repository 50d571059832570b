"""Holds the tank's level at 2.0, by a PI controller that works with what it last heard."""

import socket
import time

TARGET = 2.0
integral = 0.0
heard = lost = 0
with socket.socket(type=socket.SOCK_DGRAM) as radio:
    radio.bind(("", 9001))
    radio.settimeout(0.15)
    while time.monotonic() < 19:
        try:
            level = float(radio.recv(100))
            heard += 1
        except TimeoutError:
            lost += 1
            continue
        error = TARGET - level
        integral += 0.1 * error
        radio.sendto(f"{1.5 * error + 0.5 * integral:.4f}".encode(), ("plant", 9000))
print(f"heard {heard}, missed {lost}, error {error:+.3f}")
