"""Lets an LCM program that knows nothing of simulated time take part in a run, at a stated period.

At every multiple of the period, the bridge sends into the run what the program has published since the last one, and
gives the program what has arrived for it. There are two ways to decide which of the program's messages belong to which
period:

Paced
    Whatever the program has published by the time the bridge gets there. The wall clock decides: two runs differ.
    All others remain deterministic: given the same messages of the program at the same times, a run is the same.

Answering
    The program only answers: for each message on some channels, it publishes one on another. The bridge gives it one
    message and waits for the answer, while simulated time stands still. If the program itself is a function of the
    messages that it was given, the run is deterministic, however long the program takes.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worldline.federation.participant.client import connect
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Program
from worldline.launch.file.startable import check_command
from worldline.launch.processes import describe_exit
from worldline.metasim.driving import Seconds, as_nanoseconds
from worldline.metasim.public.broker import TcpqBroker
from worldline.metasim.public.tcpq import LcmLibraryPort, Received, TcpqPort, check_channel, open_port
from worldline.model.errors import ConfigurationError, LossError, NonDeterminism, UsageError, shortened, shown
from worldline.model.message import Message
from worldline.model.time import SECOND
from worldline.processes.lifeline import Lifeline

if TYPE_CHECKING:
    from worldline.federation.address import Address
    from worldline.federation.server.server import Server


UNTAKEN_BYTES_MAX = 2**26
"""Bytes that a program may publish before they are received here."""

_MESSAGE_COST = 200  # Bytes that a message takes besides its data; about.
_LOOK_S = 0.1
_TAKING_S = 0.05  # How long what has been published is taken, at each period: a program that never pauses is cut short.


_GRACE_S = 2.0


@contextmanager
def lcm_program(command: Sequence[str], url: str) -> Iterator[Callable[[], str | None]]:
    """Run a command with LCM_DEFAULT_URL set, and end it together with the bridge; yield what says how it has ended."""
    if not command:
        yield lambda: None
        return
    name = shortened(shlex.join(command))
    check_command(command[0], Path.cwd(), os.environ.get("PATH"))
    lifeline = Lifeline()
    try:
        process = subprocess.Popen(
            lifeline.tied(command),
            env={**os.environ, "LCM_DEFAULT_URL": url},
            stdin=subprocess.DEVNULL,
            pass_fds=[lifeline.end],
        )
    except (OSError, ValueError) as error:
        lifeline.let_go()
        raise UsageError(f"{name} can't be started: {error}") from error
    finally:
        lifeline.hand_over()
    try:
        yield lambda: None if (code := process.poll()) is None else f"{name} {describe_exit(code)}"
    finally:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        lifeline.let_go()


class ServedPort:
    """A broker of its own, which programs connect to. It alone knows what they subscribe to."""

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
        """How many messages programs haven't read in time."""
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


@dataclass(frozen=True)
class LcmBridge:
    """A participant that stands for an LCM program. It is a program of a federation itself: call it with a participant.

    `url` is the LCM that the LCM program uses, ``udpm://…`` or ``tcpq://HOST:PORT``; or `serve`, ``127.0.0.1:7700`` for
    instance, makes the bridge the broker that the LCM program connects to. `to_program` are the channels that it is
    given, `from_program` those that it publishes on.

    With `answers`, ``{"STATE": "COMMAND"}``, it is waited for after each message on the channels that are named first,
    until it has published on the channel that goes with it. With `rate`, simulated time goes no faster than that many
    seconds per second of the wall clock. `patience_s` is how long the LCM program may take, to be there (which only
    `serve` knows) and to answer, and a broker to read a message.

    With a `command`, the bridge starts the LCM program, with LCM_DEFAULT_URL set, and ends it. `opened` is told the
    address at which the LCM program can be started by others.
    """

    url: str | None = None
    _: KW_ONLY
    serve: str | None = None
    period: Seconds
    to_program: Iterable[str] = ()
    from_program: Iterable[str] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    rate: float | None = None
    patience_s: float = 10.0
    command: Sequence[str] = ()
    opened: Callable[[str], object] = lambda _: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if (self.url is None) == (self.serve is None):
            raise UsageError("a bridge has either a url or an address to serve")
        for name in ("to_program", "from_program"):
            object.__setattr__(self, name, tuple(map(check_channel, getattr(self, name))))
        if as_nanoseconds(self.period, "a period") <= 0:
            raise ConfigurationError(f"a period of {shown(self.period)} isn't possible")
        if self.rate is not None and self.answers:
            raise ConfigurationError("a bridge that waits for answers has no rate", advice="give the run one")
        if self.rate is not None and not 0 < self.rate < 1e9:
            raise ConfigurationError(f"a rate of {shown(self.rate)} isn't possible", advice="1.0 is real time")
        for channel in self.to_program:
            if channel in self.from_program:
                raise ConfigurationError(
                    f"{shown(channel)} leads both to the program and from it",
                    advice="it would hear itself: use a channel for each direction",
                )
        for question, answer in self.answers.items():
            for channel, channels, way in (
                (question, self.to_program, "to_program"),
                (answer, self.from_program, "from_program"),
            ):
                if channel not in channels:
                    raise ConfigurationError(f"answers names {shown(channel)}, which isn't in {way}")

    # --- How it takes part ---

    def program(self) -> Program:
        """Return it as a program of a federation, with what it declares."""
        return Program(self, **self._declared())

    def take_part(self, address: str | Address | Server | None = None, name: str | None = None, **given: Any) -> None:
        """Take part in the run of a server, from the start to the end."""
        with connect(address, name, **self._declared(), **given) as me:
            self(me)

    def __call__(self, me: Participant) -> None:
        channels = tuple(self.from_program)
        own = None if self.serve is None else ServedPort(self.serve, channels)
        with closing(own or open_port(self.url or "", channels, self.patience_s)) as port:
            self.opened(port.url)
            with lcm_program(self.command, port.url) as has_ended:
                crossing = _Crossing(self, me, port, has_ended)
                if isinstance(port, ServedPort):
                    crossing.await_program(port)
                crossing.run()
            if isinstance(port, ServedPort) and port.lost:
                print(
                    f"worldline: {me.name}: LCM programs at {port.url} lost {port.lost:,} messages,"
                    " because they didn't read them in time",
                    file=sys.stderr,
                )

    def _declared(self) -> dict[str, Any]:
        return {
            "publishes": tuple(self.from_program),
            "subscribes": tuple(self.to_program),
            "period": as_nanoseconds(self.period, "a period"),
        }


class _Crossing:
    """One run of a bridge."""

    def __init__(
        self,
        bridge: LcmBridge,
        me: Participant,
        port: ServedPort | TcpqPort | LcmLibraryPort,
        has_ended: Callable[[], str | None],
    ) -> None:
        self._bridge = bridge
        self._me = me
        self._port = port
        self._has_ended = has_ended
        self._period = as_nanoseconds(bridge.period, "a period")
        self._begun, self._begun_at = 0.0, me.now

    def await_program(self, port: ServedPort) -> None:
        """Wait until a program has subscribed to what it is given, or is there, if it isn't given anything."""
        bridge = self._bridge
        deadline = bridge.clock() + bridge.patience_s
        while missing := self._missing(port, self._look_s(deadline)):
            if bridge.clock() >= deadline:
                raise LossError(
                    f"no LCM program has {missing} within {bridge.patience_s:g} s",
                    participant=self._me.name,
                    at=self._me.now,
                    advice=f"start it with LCM_DEFAULT_URL={self._port.url}",
                )

    def _missing(self, port: ServedPort, timeout_s: float) -> str:
        """Say what the program hasn't done yet, after that time."""
        if not self._bridge.to_program:
            return "" if port.wait_for_program(timeout_s) else "connected"
        channels = port.wait_for_listeners(self._bridge.to_program, timeout_s)
        return f"subscribed to {', '.join(channels)}" if channels else ""

    def run(self) -> None:
        """Cross at every multiple of the period, until the end. One that joins later may begin between two of them."""
        self._begun = self._bridge.clock()
        me, period = self._me, self._period
        while not me.ended:
            if not self._bridge.answers and me.now % period == 0:
                self._take_published()
            for message in me.advance(to=(me.now // period + 1) * period):
                self._give(message)

    def _look_s(self, deadline: float) -> float:
        """Return how long to wait before the next look at the program's process, up to a deadline."""
        if (end := self._has_ended()) is not None:
            raise LossError(end, participant=self._me.name, at=self._me.now)
        left = max(0.0, deadline - self._bridge.clock())
        return min(left, _LOOK_S) if self._bridge.command else left

    def _take_published(self) -> None:
        """Send into the run what the program has published, until it is time to go on."""
        bridge = self._bridge
        due = bridge.clock()
        if bridge.rate is not None:
            due = max(due, self._begun + (self._me.now - self._begun_at) / SECOND / bridge.rate)
        while (now := bridge.clock()) < due + _TAKING_S:
            wait_s = max(0.0, due - now)
            received = self._port.receive(wait_s)
            if received is not None:
                self._me.publish(*received)
            elif wait_s == 0.0:
                return

    def _give(self, message: Message) -> None:
        answer = self._bridge.answers.get(message.topic)
        if answer is not None and not self._me.ended:
            self._check_silence()
        self._port.publish(message.topic, message.payload)
        if answer is not None and not self._me.ended:
            self._await_answer(message.topic, answer)

    def _check_silence(self) -> None:
        if (unasked := self._port.receive(0.0)) is not None:
            raise NonDeterminism(
                f"the LCM program published on {unasked[0]} without being asked",
                participant=self._me.name,
                at=self._me.now,
                advice="its simulated time is unknown; use a bridge without answers, or leave the channel out",
            )

    def _await_answer(self, question: str, answer: str) -> None:
        """Send into the run what the program publishes up to its answer."""
        bridge, me = self._bridge, self._me
        deadline = bridge.clock() + bridge.patience_s
        while True:
            received = self._port.receive(self._look_s(deadline))
            if received is not None:
                me.publish(*received)
                if received[0] == answer:
                    return
            if bridge.clock() >= deadline:
                raise LossError(
                    f"the LCM program hasn't answered {question} on {answer} within {bridge.patience_s:g} s",
                    participant=me.name,
                    at=me.now,
                    advice="is it up, and does it use the same LCM?",
                )
