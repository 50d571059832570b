"""A world over several processes: the primary's end of the federation, and secondaries on this machine.

The primary is a participant that lives in the server's own thread. It publishes an order to each secondary that has
something to do, and the lock hands out the acks when all have answered. The federation's time is that of the run: an
order goes out at its iteration's time, and its ack is back two nanoseconds later.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from msgspec import MsgspecError

from worldline.federation.address import Address
from worldline.federation.environment import TOKEN
from worldline.federation.server.limits import Limits
from worldline.federation.server.resident import ResidentParticipant
from worldline.federation.server.server import Server
from worldline.files.saving import ScratchFolder
from worldline.history.outcome import Status
from worldline.lock import Phase, RunEnded
from worldline.model import Message, Network, link, plan
from worldline.model.errors import (
    ConfigurationError,
    Interrupted,
    LossError,
    PeerError,
    UsageError,
    WorldlineError,
    shortened,
    shown,
)
from worldline.model.text import counted
from worldline.processes.executor import WORKERS_MAX
from worldline.processes.lifeline import Lifeline
from worldline.world.engines import open_engine
from worldline.world.engines.engine import PhysicsEngine, agreement
from worldline.world.hosting import Exchange
from worldline.world.orders import StepAck, StepOrder, decode_ack, encode
from worldline.world.sdf import read_world
from worldline.world.secondary import ACKS, PRIMARY, SILENCE_S, ended_in, orders_for, secondary_command

_LOOK_EVERY_S = 0.1


class Primary:
    """Waits for secondaries, and has them simulate a world. `address` is where they connect, once it is `open`.

    While they are `gathered`, it is the exchange that reaches them.
    """

    def __init__(
        self,
        engine: PhysicsEngine,
        secondaries: int,
        address: str | Address = "tcp://127.0.0.1:0",
        *,
        federation: str = "",
        token: str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        patience_s: float | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        if secondaries < 1:
            raise ConfigurationError(
                f"a primary needs at least 1 secondary, not {secondaries}", advice="it doesn't simulate anything itself"
            )
        self._count = secondaries
        self.secondaries: tuple[str, ...] = ()
        self.agreement = agreement(engine)
        self._resident: ResidentParticipant | None = None
        self._step = 0
        self._patience_s = patience_s
        self._server = Server(
            plan([PRIMARY], vacancies=secondaries, network=Network(default=link(1))),
            address,
            federation=federation,
            token=token,
            certificate=certificate,
            key=key,
            agreement=self.agreement,
            limits=Limits(silence_s=silence_s),
        )
        self._server.known_as = federation or "world"

    def __repr__(self) -> str:
        return (
            f"<Primary of {counted(self._count, 'secondary', 'secondaries')}: {', '.join(self.secondaries) or 'none'}>"
        )

    def open(self) -> Address:
        """Let secondaries connect; return where to."""
        return self._server.open()

    @contextmanager
    def gathered(
        self, look: Callable[[list[str]], None] = lambda _: None, check: Callable[[], None] = lambda: None
    ) -> Iterator[Self]:
        """Wait for all secondaries, and take part until the end of the block.

        `look` is told now and then which secondaries come and which are sent away. `check` is called until all are
        there, and may raise.
        """
        host = self._server.host
        begun = time.monotonic()

        def tell() -> None:
            notices = [notice for notice in host.owner.notices if notice != f"{PRIMARY} has joined"]
            host.owner.notices.clear()
            look(notices)

        def watch(_: Status) -> None:
            tell()
            if host.arbiter.phase is Phase.GATHERING:
                check()
                if self._patience_s is not None:
                    self._check_patience(time.monotonic() - begun)

        with self._server.resident(PRIMARY, watch=watch, watch_every_s=_LOOK_EVERY_S, subscribes=[ACKS]) as me:
            tell()
            self._resident = me
            self.secondaries = tuple(sorted(name for name in host.arbiter.members if name != PRIMARY))
            with self._ending():
                yield self

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Tell the secondaries why the run ends, if it isn't that one of them has gone."""
        host = self._server.host
        try:
            yield
        except WorldlineError as error:
            host.end(error)
            raise
        except KeyboardInterrupt:
            host.end(Interrupted("the primary was interrupted"))
            raise

    def give_up(self, problem: str, secondary: str) -> None:
        """Give up a secondary that is gone, though its connection doesn't say so. From any thread."""
        self._server.order(lambda: self._server.host.give_up(secondary, problem))

    # --- The exchange ---

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        me = self._resident
        assert me is not None
        try:
            for name, order in orders.items():
                at = max(me.now, order.iteration * order.step_size)
                self._step = order.step
                me.publish(orders_for(name), encode(order), at, at_once=False)
            complete = False
            while not complete:
                messages = me.next()
                if not messages:  # No secondary is left to send any.
                    raise self._left(orders)
                for message in messages:
                    ack = self._understood(message)
                    if ack.sender == message.sender:  # None answers for another.
                        complete = take(ack)
        except RunEnded as error:
            raise self._left(orders) from error
        except LossError as error:
            raise ended_in(self._step, error) from error

    def wait(self, seconds: float) -> None:
        assert self._resident is not None
        try:
            self._resident.serve_for(seconds)
        except LossError as error:
            raise ended_in(self._step, error) from error

    def _left(self, asked: Iterable[str]) -> LossError:
        cause = f"{' or '.join(asked)} has left, though it was asked to go on"
        return LossError(f"the run ended in step {self._step}: {cause}", step=self._step)

    def _understood(self, message: Message) -> StepAck:
        try:
            return decode_ack(message.payload)
        except MsgspecError as error:
            raise PeerError(
                f"secondary {shown(message.sender)} says what can't be read, in step {self._step}: {error}",
                advice="use one version of Worldline everywhere",
            ) from error

    def _check_patience(self, waited_s: float) -> None:
        assert self._patience_s is not None
        if waited_s > self._patience_s:
            seen = [name for name in self._server.host.sessions if name != PRIMARY]
            raise LossError(
                f"{len(seen)} of {counted(self._count, 'secondary', 'secondaries')} came within "
                f"{self._patience_s:g} s; seen: {', '.join(sorted(seen)) or 'none'}",
                advice=f"start the others with --network-role=secondary; they connect to {self._server.address}",
            )


# A world over several processes of this machine, as one block of code.

PATIENCE_S = 120.0  # To start processes may take long on a busy machine; one that ends is noticed at once.


@contextmanager
def local_secondaries(
    file: Path | str,
    count: int,
    *,
    engine: str = "mujoco",
    silence_s: float = SILENCE_S,
    patience_s: float = PATIENCE_S,
) -> Iterator[Exchange]:
    """Have a world simulated by so many secondaries, each a process on this machine::

    with local_secondaries("levels.sdf", 3) as exchange, World("levels.sdf", exchange=exchange) as world:
        world.run_to("10s")
    """
    if type(count) is not int or not 1 <= count <= WORKERS_MAX:
        raise ConfigurationError(f"there can't be {shown(count)} secondaries", advice=f"use 1 to {WORKERS_MAX}")
    path = Path(file)
    token = secrets.token_hex()
    opened = open_engine(engine, read_world(path))
    with (
        ScratchFolder() as folder,
        LocalSecondaries(path, engine, count) as processes,
    ):
        address = f"unix://{folder}/world.sock"  # Faster than TCP.
        primary = Primary(opened, count, address, token=token, patience_s=patience_s, silence_s=silence_s)
        processes.start(primary.open(), token)
        with primary.gathered(check=processes.check) as exchange:
            yield exchange


# Secondaries on this machine: a process each, started for one run and ended with it.

_GRACE_S = 3.0
_SAID_MAX = 2**16


class LocalSecondaries:
    """Processes that take part in a run on this machine. Those that are left when it is over are ended.

    They wait for their primary as long as it takes, however long it computes: if it is gone, they are ended.
    """

    def __init__(self, file: Path, engine: str, count: int) -> None:
        self._file = file
        self._engine = engine
        width = len(str(count))
        self.names = tuple(f"local-{number:0{width}}" for number in range(1, count + 1))
        self._processes: list[tuple[str, subprocess.Popen[bytes], Lifeline, IO[bytes]]] = []  # And what it said.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        until = time.monotonic() + _GRACE_S  # For all of them: there may be many.
        for _, process, lifeline, said in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            lifeline.let_go()  # A process that is still there is killed.
            process.wait()
            said.close()

    def start(self, address: Address, token: str) -> None:
        """Start them all, to connect to a primary."""
        for name in self.names:
            command = secondary_command(self._file, self._engine, address, name)
            lifeline = Lifeline()
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended.
            try:
                process = subprocess.Popen(
                    lifeline.tied(command),
                    env={**os.environ, TOKEN: token},
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    pass_fds=[lifeline.end],
                    start_new_session=True,  # Ctrl-C is for the primary, which tells them.
                )
            except OSError as error:
                lifeline.let_go()
                said.close()
                raise UsageError(f"{name} can't be started: {error}") from error
            finally:
                lifeline.hand_over()
            self._processes.append((name, process, lifeline, said))

    def check(self) -> None:
        """Raise if one of them has ended: before the run is over, none is to."""
        for name, process, _, said in self._processes:
            if process.poll() is not None:
                size = os.fstat(said.fileno()).st_size
                text = os.pread(said.fileno(), _SAID_MAX, max(0, size - _SAID_MAX)).decode(errors="replace")
                last = next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
                raise LossError(f"{name} ended before the run began: {shortened(last.removeprefix('worldline: '))}")
