"""A participant written from docs/protocol.md alone, as somebody would in another language.

It imports nothing of Worldline: sockets, HMAC and BLAKE2b of the standard library, and MessagePack, of which it uses
plain lists only. It does what the page says and nothing cleverer; if this and the page disagree, the page is wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import threading
from typing import Any

from msgspec import msgpack

FOREVER = 2**61
TIME_MAX = 2**60 - 1


class Foreign:
    """One participant on a TCP connection."""

    def __init__(
        self, host: str, port: int, name: str, token: str, *, publishes: list[str] | None, subscribes: list[Any]
    ) -> None:
        self.name = name
        self._socket = socket.create_connection((host, port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read_so_far = b""
        self._writing = threading.Lock()
        self._quiet = threading.Event()
        try:
            self._greet(name, token)
        except BaseException:
            self._socket.close()
            raise
        self._pulse = threading.Thread(target=self._beat, daemon=True)
        self._pulse.start()
        self.kept = {subscription[0]: (subscription[1:] or [{}])[0] for subscription in subscribes}
        self.dropped: dict[str, int] = {}
        self.now = self.horizon = 0
        self.final = self.ended = False
        self.complete_at = -1
        self.held: list[list[Any]] = []
        self.requests = 0
        self._told = 0
        self._sent = 0
        self._log = hashlib.blake2b(digest_size=16)
        self._said: list[list[Any]] = [["join", publishes, subscribes]]
        kind, _, self.now, self.seed, self.control_latency, self.reach = self._ask()
        assert kind == "start"
        self.horizon = self._told = self.now

    # --- Frames and handshake ---

    def _send(self, value: object) -> None:
        body = msgpack.encode(value)
        with self._writing:
            self._socket.sendall(len(body).to_bytes(4, "big") + body)

    def _exactly(self, size: int) -> bytes:
        while len(self._read_so_far) < size:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._read_so_far += data
        data, self._read_so_far = self._read_so_far[:size], self._read_so_far[size:]
        return data

    def _read(self) -> list[Any]:
        while not (length := int.from_bytes(self._exactly(4), "big")):
            continue  # A heartbeat.
        answer: list[Any] = msgpack.decode(self._exactly(length))
        if answer[0] in ("refused", "abort"):
            raise ConnectionError(f"{answer}")
        return answer

    def _greet(self, name: str, token: str) -> None:
        kind, protocol, version, theirs = self._read()
        assert (kind, protocol, version) == ("challenge", "worldline", 1)
        mine = os.urandom(16)

        def proof(side: str) -> bytes:
            content = msgpack.encode(["worldline", 1, side, theirs, mine, "", name])
            return hmac.new(token.encode(), content, hashlib.sha256).digest()

        self._send(["hello", 1, "", name, mine, proof("client")])
        kind, their_proof, self.heartbeat, self.frame_max = self._read()
        assert kind == "welcome"
        assert hmac.compare_digest(their_proof, proof("server"))

    def _beat(self) -> None:
        while not self._quiet.wait(self.heartbeat / 2e9):
            with self._writing:
                self._socket.sendall(b"\x00\x00\x00\x00")

    # --- Requests and answers ---

    def _say(self) -> None:
        said, self._said = self._said, []
        self._send(said)

    def _ask(self) -> list[Any]:
        self._say()
        self.requests += 1
        while (answer := self._read())[0] == "deliver":
            self.held += answer[1]
        return answer

    def _request(self, *request: object) -> None:
        self._said.append([*request])
        kind, _, self.horizon, messages, self.final = self._ask()
        assert kind == "grant"
        self.held = sorted(self.held + messages)

    def _go(self, to: int) -> None:
        """Go to a time, or to where the run ends."""
        if to > self.horizon or to == FOREVER:
            to = self.now if self.horizon == FOREVER else self.horizon
            self.ended = True
        self.now = to

    def _give(self, batch: list[list[Any]]) -> list[list[Any]]:
        self.held = self.held[len(batch) :]
        given = self._sifted(batch)
        for message in given:
            self._log.update(msgpack.encode([1, self.now, *message]))
        return given

    def _sifted(self, batch: list[list[Any]]) -> list[list[Any]]:
        given = batch
        for topic, buffer in self.kept.items():
            if (limit := buffer.get("limit")) is not None:
                mine = [message for message in batch if message[5] == topic]
                stays = (
                    mine[:limit] if buffer.get("oldest") else mine[len(mine) - limit :] if limit < len(mine) else mine
                )
                given = [message for message in given if message[5] != topic or message in stays]
                if len(stays) < len(mine):
                    self.dropped[topic] = self.dropped.get(topic, 0) + len(mine) - len(stays)
        return given

    # --- For its program ---

    def publish(self, topic: str, payload: bytes, at: int | None = None) -> None:
        sent = self.now if at is None else at
        self._said.append(["publish", topic, payload, sent])
        self._log.update(msgpack.encode([0, self._sent, sent, topic, payload]))
        self._sent += 1

    def advance(self, to: int) -> list[list[Any]]:
        if to > self.horizon and not self.final:
            self._request("advance", to)
        self._go(to)
        return self._give([message for message in self.held if message[0] < self.now])

    def next(self, until: int = FOREVER) -> list[list[Any]]:
        first = self.held[0][0] if self.held else FOREVER
        if first >= min(self.horizon, until) and until > self.horizon and not self.final:
            self._request("next", until, first)
            first = self.held[0][0] if self.held else FOREVER
        if first < min(self.horizon, until):
            self.now = self.complete_at = first
            return self._give([message for message in self.held if message[0] == first])
        self._go(until)
        return []

    def peek(self, until: int = TIME_MAX) -> int:
        sight = min(until, self.now + self.reach, TIME_MAX)
        first = self.held[0][0] if self.held else FOREVER
        if first >= min(self.horizon, sight) and sight > self.horizon and not self.final:
            self._said.append(["reached", self.now])
            self._request("peek", sight, first)
            first = self.held[0][0] if self.held else FOREVER
        self.ended = self.final and self.now == self.horizon < sight
        return min(first, sight, self.horizon)

    def subscribe(self, topic: str) -> None:
        self.kept[topic] = {}
        self.horizon, self.final, self.reach = self.now, False, 0
        self._said.append(["subscribe", [topic], self.now, self.now])

    def unsubscribe(self, topic: str) -> None:
        del self.kept[topic]
        self.held = [message for message in self.held if message[5] != topic]
        self._said.append(["unsubscribe", topic, self.now, self.now + (self.complete_at == self.now)])

    def tell(self) -> None:
        """Say at once what would otherwise wait for the next request."""
        self._said.append(["reached", self.now])
        self._say()

    def digest(self) -> bytes:
        return self._log.digest()

    def leave(self) -> None:
        self._said.append(["leave", self.now, self.digest(), self.complete_at == self.now, self.dropped])
        self._say()
        self.close()

    def fail(self, cause: str) -> None:
        self._said.append(["fail", cause])
        self._say()
        self.close()

    def close(self) -> None:
        self._quiet.set()
        self._pulse.join()
        self._socket.close()
