"""A secondary: a client of the primary's federation that does what its orders say."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from worldline.federation.address import Address
from worldline.federation.environment import TOKEN
from worldline.federation.participant.client import connect
from worldline.model.errors import BrokenOff, ConfigurationError, LossError, UsageError, WorldlineError, nearest, shown
from worldline.processes.tied import module_command
from worldline.wire.handshake import DISAGREES
from worldline.world.engines import open_engine
from worldline.world.engines.engine import PhysicsEngine, agreement
from worldline.world.hosting import Hosting
from worldline.world.orders import decode_order, encode
from worldline.world.peers import PeerRole
from worldline.world.sdf import read_world

# Roles: what a process is in the network of a run, as options or the environment say.

ROLE_VARIABLE = "WORLDLINE_NETWORK_ROLE"
SECONDARIES_VARIABLE = "WORLDLINE_NETWORK_SECONDARIES"


NetworkPart = tuple[PeerRole | None, int, tuple[str, ...]]
"""What a process is in the network, how many secondaries a primary has, and warnings. Without a role, it is alone."""


def network_part(role: str | None, secondaries: int | None, environment: Mapping[str, str]) -> NetworkPart:
    """Judge what was said: options come first; the variables are deprecated, and say so."""
    warnings = []
    if role is None and (said := environment.get(ROLE_VARIABLE)):
        role = said
        warnings.append(f"{ROLE_VARIABLE} is deprecated: use --network-role={said.lower()}")
    found = None if role is None else _parse_role(role)
    if secondaries is None and found is PeerRole.PRIMARY and (said := environment.get(SECONDARIES_VARIABLE)):
        warnings.append(f"{SECONDARIES_VARIABLE} is deprecated: use --network-secondaries={said}")
        if not said.isdecimal():
            raise ConfigurationError(f"{SECONDARIES_VARIABLE} is {shown(said)}", advice="it is a number of secondaries")
        secondaries = int(said)
    if found is not PeerRole.PRIMARY and secondaries is not None:
        who = "a secondary doesn't decide" if found is PeerRole.SECONDARY else "only a primary decides"
        raise ConfigurationError(
            f"{who} how many secondaries there are", advice="leave --network-secondaries to --network-role=primary"
        )
    if found is PeerRole.PRIMARY:
        if secondaries is None:
            raise ConfigurationError("a primary has to know how many secondaries to wait for", advice=_COUNT)
        if secondaries < 1:
            raise ConfigurationError(f"a primary can't do with {secondaries} secondaries", advice=_COUNT)
    return found, secondaries or 0, tuple(warnings)


_COUNT = "--network-secondaries=N, from 1 on: a primary simulates nothing itself"


def _parse_role(text: str) -> PeerRole:
    try:
        return PeerRole(text.strip().lower())
    except ValueError:
        roles = [role.value for role in PeerRole]
        raise ConfigurationError(
            f"there is no network role {shown(text)}",
            advice=nearest(text.lower(), roles) or f"use {' or '.join(roles)}",
        ) from None


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
    """Return why a run has ended before its time, by its steps."""
    cause = in_world_terms(error.facts.get("cause", error.problem))
    if isinstance(error, BrokenOff) and error.participant is not None:
        who = error.participant if error.participant == PRIMARY else f"secondary {error.participant}"
        cause = f"{who} was lost: {cause}"
    return LossError(f"the run ended in step {step}: {cause}", advice=error.advice, step=step)


def in_world_terms(text: str) -> str:
    """Return what a federation says in the words of a world, where the server is the primary."""
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

    def __repr__(self) -> str:
        return f"<Secondary {shown(self.name)}: at step {self.step}>"

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
        """Return the step of a time at which another was lost: one that has had nothing to do knows no later step."""
        return 0 if at is None else at // self._step_size - (self.iteration - self.step)

    def give_up(self, problem: str) -> None:
        """Have `run` raise a `LossError`: the primary is gone. From any thread."""
        self._client.give_up(problem)


# A secondary as a process of its own: `distributed` starts it.


def secondary_command(
    file: Path | str, engine: str, address: Address | str, name: str, silence_s: float = 0
) -> list[str]:
    """Return the command of a secondary's process; its token comes in the environment. It waits forever, if 0 s."""
    return [*module_command(__name__), str(file), engine, str(address), name, str(silence_s)]


def main() -> int:
    file, engine, address, name, silence_s = sys.argv[1:]
    token = os.environ.get(TOKEN) or None
    try:
        opened = open_engine(engine, read_world(Path(file)))
        Secondary(address, name, opened, token=token, silence_s=float(silence_s) or None).run()
    except WorldlineError as error:
        print(f"worldline: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
