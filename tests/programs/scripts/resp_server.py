"""A small server that speaks Redis's protocol, in blocking style with a selector."""

import selectors
import socket

values: dict[bytes, bytes] = {}
HELLO = b"%2\r\n+server\r\n+small\r\n+proto\r\n:3\r\n"


def answer(words: list[bytes]) -> bytes:
    match [words[0].upper(), *words[1:]]:
        case [b"PING"]:
            return b"+PONG\r\n"
        case [b"SET", name, value]:
            values[name] = value
            return b"+OK\r\n"
        case [b"GET", name]:
            value = values.get(name)
            return b"_\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
        case [b"INCRBY", name, step]:
            values[name] = b"%d" % (int(values.get(name, b"0")) + int(step))
            return b":%s\r\n" % values[name]
        case [b"HELLO", *_]:
            return HELLO
        case [b"CLIENT", *_]:
            return b"+OK\r\n"
        case _:
            return b"-ERR unknown command\r\n"


def requests(buffer: bytearray) -> list[list[bytes]]:
    """Take the whole requests out of a buffer."""
    found = []
    while b"\r\n" in buffer:
        lines = bytes(buffer).split(b"\r\n")
        count = int(lines[0][1:])
        if len(lines) < 2 * count + 2:
            break
        words = [lines[2 * place + 2] for place in range(count)]
        found.append(words)
        del buffer[: sum(len(line) + 2 for line in lines[: 2 * count + 1])]
    return found


def main() -> None:
    listener = socket.create_server(("", 6379))
    listener.setblocking(False)
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ, None)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                client, _ = listener.accept()
                waiting.register(client, selectors.EVENT_READ, bytearray())
                continue
            data = key.fileobj.recv(4096)
            if not data:
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                continue
            key.data.extend(data)
            for words in requests(key.data):
                key.fileobj.sendall(answer(words))


main()
