"""A participant's socket whose traffic is written down, for its twin."""

from __future__ import annotations

import socket
from typing import Any

from worldline.launch.script_files import HEARD, SAID, ScriptWriter


class OverheardSocket(socket.socket):
    """A socket that takes the place of another one. Only the calls that a client makes are overheard."""

    def __init__(self, connection: socket.socket, script: ScriptWriter) -> None:
        super().__init__(fileno=connection.detach())
        self._script = script

    def send(self, data: Any, flags: int = 0, /) -> int:
        sent = super().send(data, flags)
        self._script.note(SAID, data if sent == len(data) else memoryview(data)[:sent])
        return sent

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(size, flags)
        self._script.note(HEARD, data)
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        received = super().recv_into(buffer, size, flags)
        self._script.note(HEARD, memoryview(buffer)[:received])
        return received
