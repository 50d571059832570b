"""A process's part in the network of a world: a primary that waits for secondaries, or a secondary that finds it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.federation.address import parse_address
from worldline.model.counting import counted
from worldline.model.errors import UsageError
from worldline.world.engine import PhysicsEngine
from worldline.world.exchange import Exchange
from worldline.world.primary import Primary
from worldline.world.secondary import PRIMARY, Secondary

if TYPE_CHECKING:
    from worldline.world.discovery import Discovery, DiscoveryOptions

_EVERYWHERE = ("0.0.0.0", "::", "")

FEDERATION = "world"
"""The federation of those who don't say which they belong to."""


@dataclass(frozen=True, kw_only=True)
class WorldNetwork:
    """How the processes of a run reach each other. Without `discovery`, only by address."""

    federation: str
    token: str | None
    patience_s: float
    silence_s: float
    discovery: DiscoveryOptions | None
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None

    @contextmanager
    def secondaries(
        self, engine: PhysicsEngine, count: int, listen: str, say: Callable[[str], None]
    ) -> Iterator[Exchange]:
        """Be the primary, from the wait for secondaries to the end of the block."""
        primary = Primary(
            engine,
            count,
            listen,
            federation=self.federation,
            token=self.token,
            certificate=self.certificate,
            key=self.key,
            patience_s=self.patience_s,
            silence_s=self.silence_s,
        )
        if self.discovery is not None and parse_address(listen).place in _EVERYWHERE:
            raise UsageError(
                f"--listen {listen} can't be announced: nobody knows which of this machine's addresses to use",
                advice="listen on the one that the others reach, or use --no-discovery and tell them an address",
            )
        address = primary.open()
        say(f"primary on {address}, waiting for {counted(count, 'secondary', 'secondaries')}")

        with ExitStack() as stack:
            discovery = None
            if self.discovery is not None:
                discovery = stack.enter_context(self._found("primary", PRIMARY, primary.give_up, str(address)))

            def look(notices: list[str]) -> None:
                for notice in notices:
                    say(notice)

            def check() -> None:
                if discovery is not None:
                    discovery.check()

            exchange = stack.enter_context(primary.gathered(look, check))
            say(f"all are there: {', '.join(exchange.secondaries)}")
            yield exchange

    def secondary(
        self, engine: PhysicsEngine, name: str | None, primary: str | None, say: Callable[[str], None]
    ) -> int:
        """Be a secondary until the run is over; return the last step."""
        name = name or f"{platform.node() or 'secondary'}-{os.getpid()}"
        connected: list[Secondary] = []

        def give_up(problem: str, who: str) -> None:
            if who == PRIMARY and connected:
                connected[0].give_up(problem)

        with ExitStack() as stack:
            if primary is None:
                if self.discovery is None:
                    raise UsageError(
                        "a secondary has to know where its primary is",
                        advice="--network-primary=ADDRESS, or leave out --no-discovery",
                    )
                found = stack.enter_context(self._found("secondary", name, give_up)).find_primary(self.patience_s)
                primary = found.address
            secondary = Secondary(
                primary,
                name,
                engine,
                federation=self.federation,
                token=self.token,
                authority=self.authority,
                patience_s=self.patience_s,
                silence_s=self.silence_s,
            )
            connected.append(secondary)
            say(f"secondary {name}, connected to {primary}")
            secondary.run()
        return secondary.step

    def _found(self, role: str, name: str, give_up: Callable[[str, str], None], address: str = "") -> Discovery:
        """Return what finds the others; `give_up` is told of those who fall silent, with the reason."""
        from worldline.world.discovery import DepartedBy, Discovery, Peer

        def departed(peer: Peer, how: DepartedBy) -> None:
            if how is DepartedBy.SILENCE:  # Otherwise the connection knows it, and why.
                give_up(f"nothing was heard from it for {self.silence_s:g} seconds", peer.name)

        return Discovery(self.federation, role, name, address=address, options=self.discovery, on_departure=departed)
