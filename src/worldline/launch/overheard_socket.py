"""A participant's socket whose traffic is written down, for its twin."""

from __future__ import annotations

import socket
from typing import Any

from worldline.launch.script_files import HEARD, SAID, ScriptWriter

_send, _recv = socket.socket.send, socket.socket.recv  # To look them up for each call would cost as much as the rest.


class OverheardSocket(socket.socket):
    """A socket that takes the place of another one. Only the calls that a client makes are overheard."""

    def __init__(self, connection: socket.socket, script: ScriptWriter) -> None:
        super().__init__(fileno=connection.detach())
        self._script = script
        self._note = script.note

    def send(self, data: Any, flags: int = 0, /) -> int:
        sent = _send(self, data, flags)
        self._note(SAID, data if sent == len(data) else memoryview(data)[:sent])
        return sent

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        try:
            data = _recv(self, size, flags)
        except BlockingIOError:
            self._script.rest()
            raise
        self._note(HEARD, data)
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        received = super().recv_into(buffer, size, flags)
        self._note(HEARD, bytes(memoryview(buffer)[:received]))
        return received

    def close(self) -> None:
        self._script.flush()
        super().close()
