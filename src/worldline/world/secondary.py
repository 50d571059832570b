"""A secondary: a client of the primary's federation that does what its orders say."""

from __future__ import annotations

from pathlib import Path

from worldline.federation.address import Address
from worldline.federation.client import connect
from worldline.model.errors import BrokenOff, LossError, UsageError
from worldline.wire.handshake import DISAGREES
from worldline.world.engine import PhysicsEngine, agreement
from worldline.world.hosting import Hosting
from worldline.world.orders import decode_order, encode

ACKS = "ack"
"""The topic on which all secondaries answer."""

PRIMARY = "primary"
"""The name of the participant that a primary is."""

SILENCE_S = 10.0
"""How long either end may say nothing, not even a heartbeat, before the other gives it up."""


def orders_for(secondary: str) -> str:
    """Return the topic of a secondary's orders: it gets no others."""
    return f"step/{secondary}"


def ended_in(step: int, error: LossError) -> LossError:
    """Return why a run has ended before its time, for whoever knows it by its steps."""
    cause = in_world_terms(error.facts.get("cause", error.problem))
    if isinstance(error, BrokenOff) and error.participant is not None:
        who = error.participant if error.participant == PRIMARY else f"secondary {error.participant}"
        cause = f"{who} was lost: {cause}"
    return LossError(f"the run ended in step {step}: {cause}", advice=error.advice, step=step)


def in_world_terms(text: str) -> str:
    """Return what a federation says for whoever thinks of primaries: the server is one."""
    return text.replace("the server", "the primary")


class Secondary:
    """One secondary of a run. Making it connects; it is admitted if it fits the primary's world.

    `iteration` and `step` are how far it has come.
    """

    def __init__(
        self,
        address: str | Address,
        name: str,
        engine: PhysicsEngine,
        *,
        federation: str = "",
        token: str | None = None,
        authority: Path | str | None = None,
        patience_s: float = 10.0,
        silence_s: float | None = SILENCE_S,
    ) -> None:
        self.name = name
        self.iteration = self.step = 0
        self._step_size = 1
        self._hosting = Hosting(name, engine)
        try:
            self._client = connect(
                address,
                name,
                patience_s=patience_s,
                silence_s=silence_s,
                federation=federation,
                token=token,
                authority=authority,
                agreement=agreement(engine),
                publishes=[ACKS],
                subscribes=[orders_for(name)],
            )
        except (LossError, UsageError) as error:
            differs = error.facts.get("code") == DISAGREES
            advice = "run all with the same world file, engine and versions" if differs else error.advice
            told = None if advice is None else in_world_terms(advice)
            raise type(error)(in_world_terms(error.problem), advice=told, **error.facts) from error

    def run(self) -> None:
        """Do what the primary says until the run is over; raise if it doesn't end well."""
        try:
            with self._client as me:
                while messages := me.next():
                    for message in messages:
                        order = decode_order(message.payload)
                        self.iteration, self.step, self._step_size = order.iteration, order.step, order.step_size
                        ack = self._hosting.carry_out(order)
                        self.iteration, self.step = ack.iteration, order.step + ack.iteration - order.iteration
                        me.publish(ACKS, encode(ack), at_once=False)
        except LossError as error:
            raise ended_in(max(self.step, self._step_at(error.at)), error) from error

    def _step_at(self, at: int | None) -> int:
        """Return the step of a time at which somebody else was lost: who has had nothing to do knows no later one."""
        return 0 if at is None else at // self._step_size - (self.iteration - self.step)

    def give_up(self, problem: str) -> None:
        """Have `run` raise a `LossError`: the primary is gone. From any thread."""
        self._client.give_up(problem)
