"""A blocking client of the server, which also listens for datagrams."""

import select
import socket
import threading
import time

heard: list[bytes] = []


def listen(datagrams: socket.socket) -> None:
    while len(heard) < 5:
        heard.append(datagrams.recv(100))


with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
    datagrams.bind(("", 99))
    thread = threading.Thread(target=listen, args=(datagrams,))
    thread.start()
    with socket.create_connection(("server", 8080), timeout=5) as connection, connection.makefile("rwb") as lines:
        for number in range(3):
            lines.write(b"line %d\n" % number)
            lines.flush()
            print(select.select([connection], [], [], 1)[0] == [connection], lines.readline(), time.monotonic())
            time.sleep(0.25)
    thread.join()
print(len(heard), time.time())
