"""The primary's end of a federation: orders to secondaries as messages, and their acks.

The primary is a participant that lives in the server's own thread. It publishes an order to each secondary that has
something to do, and the lock hands out the acks when all have answered. The federation's time is that of the run: an
order goes out at its iteration's time, and its ack is back two nanoseconds later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from msgspec import MsgspecError

from worldline.federation.address import Address
from worldline.federation.server.limits import Limits
from worldline.federation.server.resident import ResidentParticipant
from worldline.federation.server.server import Server
from worldline.history.outcome import Status
from worldline.lock import Phase, RunEnded
from worldline.model import Message, Network, link, plan
from worldline.model.errors import ConfigurationError, Interrupted, LossError, PeerError, WorldlineError, shown
from worldline.model.text import counted
from worldline.world.engines.engine import PhysicsEngine, agreement
from worldline.world.orders import StepAck, StepOrder, decode_ack, encode
from worldline.world.secondary import ACKS, PRIMARY, SILENCE_S, ended_in, orders_for

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
