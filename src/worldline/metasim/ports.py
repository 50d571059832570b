"""How an LCM program is reached: over multicast, through a broker, or through a broker of one's own.

A port is used by one thread. What the program publishes is kept until it is received here.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, Self

from worldline.launch.file.startable import check_command
from worldline.launch.processes import describe_exit
from worldline.metasim.public.broker import TcpqBroker
from worldline.metasim.public.tcpq import (
    SCHEME,
    SERVER_MAGIC,
    TcpqDecoder,
    TcpqFrame,
    TcpqKind,
    dial_broker,
    greeting,
    open_lcm,
)
from worldline.model.errors import LossError, UsageError, shortened
from worldline.processes.lifeline import Lifeline

# An LCM program as a process: started with the LCM to use in its environment, ended together with its bridge.

_GRACE_S = 2.0


class LcmProgram:
    """A process that runs a command, with LCM_DEFAULT_URL set."""

    def __init__(self, command: Sequence[str], url: str) -> None:
        self._name = shortened(shlex.join(command))
        check_command(command[0], Path.cwd(), os.environ.get("PATH"))
        self._lifeline = Lifeline()
        try:
            self._process = subprocess.Popen(
                self._lifeline.tied(command),
                env={**os.environ, "LCM_DEFAULT_URL": url},
                stdin=subprocess.DEVNULL,
                pass_fds=[self._lifeline.end],
            )
        except (OSError, ValueError) as error:
            self._lifeline.let_go()
            raise UsageError(f"{self._name} can't be started: {error}") from error
        finally:
            self._lifeline.hand_over()

    def has_ended(self) -> str | None:
        """Say how it has ended, if it has."""
        code = self._process.poll()
        return None if code is None else f"{self._name} {describe_exit(code)}"

    def end(self) -> None:
        """Ask it to end, and don't wait for long."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lifeline.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


UNTAKEN_BYTES_MAX = 2**26
"""Bytes that a program may publish before they are received here."""

_MESSAGE_COST = 200  # Bytes that a message takes besides its data; about.
_LIBRARY_QUEUE_MAX = 10_000
_PATIENCE_S = 10.0
_READ_SIZE = 2**16
Received = tuple[str, bytes]
"""A channel, and what was published on it."""


class LcmPort(Protocol):
    """A way to LCM programs. `url` is what they have to be given, as LCM_DEFAULT_URL for instance."""

    @property
    def url(self) -> str: ...

    @property
    def lost(self) -> int:
        """How many messages programs haven't got, as far as that is known."""

    def publish(self, channel: str, data: bytes) -> None:
        """Give a message to whoever listens."""

    def receive(self, timeout_s: float) -> Received | None:
        """Return the next message on one of the port's channels; None, if none comes within that time."""

    def wait_for_listeners(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        """Wait until somebody listens to each channel; return those to which nobody does, as far as that is known."""

    def wait_for_program(self, timeout_s: float) -> bool:
        """Wait until a program has connected; return False if none has, as far as that is known."""

    def close(self) -> None: ...


class ServedPort:
    """A broker of its own, which programs connect to. It alone knows who listens."""

    def __init__(self, address: str, channels: Sequence[str]) -> None:
        self._channels = frozenset(channels)
        self._received: deque[Received] = deque()
        self._size = 0
        self._overflow = False
        self._changed = threading.Condition()
        self._broker = TcpqBroker(address, heard=self._hear).open()

    @property
    def url(self) -> str:
        return self._broker.url

    @property
    def lost(self) -> int:
        return self._broker.lost

    def publish(self, channel: str, data: bytes) -> None:
        self._broker.publish(channel, data)

    def receive(self, timeout_s: float) -> Received | None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._received or self._overflow, timeout_s):
                self._broker.check()
                return None
            if self._overflow:
                raise LossError(f"the program published more than {UNTAKEN_BYTES_MAX:,} bytes at a time")
            channel, data = self._received.popleft()
            self._size -= len(data) + _MESSAGE_COST
            return channel, data

    def wait_for_listeners(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        return self._broker.wait_for_subscribers(channels, timeout_s)

    def wait_for_program(self, timeout_s: float) -> bool:
        return self._broker.wait_for_connection(timeout_s)

    def close(self) -> None:
        self._broker.close()

    def _hear(self, channel: str, data: bytes) -> None:
        if channel in self._channels:
            with self._changed:
                size = len(data) + _MESSAGE_COST
                self._overflow = self._overflow or self._size + size > UNTAKEN_BYTES_MAX
                if not self._overflow:
                    self._received.append((channel, data))
                    self._size += size
                self._changed.notify_all()


class TcpqPort:
    """A connection to a broker that is there already. `patience_s` is how long that may take to read a message."""

    def __init__(self, url: str, channels: Sequence[str], patience_s: float = _PATIENCE_S) -> None:
        self.url = url
        self.lost = 0
        self._patience_s = patience_s
        self._socket = dial_broker(url, _PATIENCE_S)
        self._decoder = TcpqDecoder(SERVER_MAGIC)
        self._decoder.feed(greeting(SERVER_MAGIC))  # It has been taken already.
        self._received: deque[Received] = deque()
        for channel in channels:
            self._send(TcpqFrame(TcpqKind.SUBSCRIBE, re.escape(channel)))

    def publish(self, channel: str, data: bytes) -> None:
        self._send(TcpqFrame(TcpqKind.PUBLISH, channel, data))

    def receive(self, timeout_s: float) -> Received | None:
        deadline = time.monotonic() + timeout_s
        while not self._received:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.0))  # 0: what is there already.
            try:
                data = self._socket.recv(_READ_SIZE)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError as error:
                raise self._broken(error.strerror or str(error)) from error
            if not data:
                raise self._broken("it hung up")
            self._received += ((frame.channel, frame.data) for frame in self._decoder.feed(data))
        return self._received.popleft()

    def wait_for_listeners(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        return []

    def wait_for_program(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        self._socket.close()

    def _send(self, frame: TcpqFrame) -> None:
        self._socket.settimeout(self._patience_s)
        try:
            self._socket.sendall(frame.encode())
        except (BlockingIOError, TimeoutError) as error:
            raise self._broken(f"it hasn't read a message within {self._patience_s:g} s") from error
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from error

    def _broken(self, problem: str) -> LossError:
        return LossError(f"the connection to the LCM broker at {self.url} broke: {problem}")


class LcmLibraryPort:
    """An LCM of the LCM library, for ``udpm://``. A thread of the library's own keeps what has come in, up to a limit.

    The library doesn't say what it has left out, no more than what multicast has lost.
    """

    def __init__(self, url: str, channels: Sequence[str]) -> None:
        self.url = url
        self.lost = 0
        self._lcm = open_lcm(url)
        self._received = received = deque[Received]()
        for channel in channels:
            # What the library calls must not hold this port: the library would never be closed.
            subscription = self._lcm.subscribe(re.escape(channel), lambda *message: received.append(message))
            subscription.set_queue_capacity(_LIBRARY_QUEUE_MAX)  # By default it would keep 30.

    def publish(self, channel: str, data: bytes) -> None:
        try:
            self._lcm.publish(channel, data)
        except (OSError, ValueError) as error:
            raise LossError(f"LCM at {self.url} doesn't take a message on {channel}: {error}") from error

    def receive(self, timeout_s: float) -> Received | None:
        if not self._received:
            self._lcm.handle_timeout(math.ceil(timeout_s * 1000))
        return self._received.popleft() if self._received else None

    def wait_for_listeners(self, channels: Iterable[str], timeout_s: float) -> list[str]:
        return []

    def wait_for_program(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        del self._lcm  # The library closes it when nobody has it any more.


def open_port(url: str | None, serve: str | None, channels: Sequence[str], patience_s: float = _PATIENCE_S) -> LcmPort:
    """Open the way to programs at an LCM's address, or, with `serve`, to those that connect here."""
    if serve is not None:
        return ServedPort(serve, channels)
    assert url is not None
    return TcpqPort(url, channels, patience_s) if url.startswith(SCHEME) else LcmLibraryPort(url, channels)
