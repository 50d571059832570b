"""Runs a world from the command line: sets it up, shows how far it is, and leaves files behind."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, remark
from worldline.cli.interruption import Interruption, interrupted_by
from worldline.federation.address import parse_address
from worldline.files.saving import save
from worldline.history.outcome import Outcome, Status, Watch
from worldline.model import Interrupted, UsageError, plan
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time
from worldline.pictures.world.animation import Animation
from worldline.pictures.world.paths import PathsPicture
from worldline.recording import Recorder, RunRecording, Shelf
from worldline.recording.output import RecordingTarget
from worldline.world.console import (
    ConsoleSession,
    InteractionHistory,
    InteractionsLog,
    LineFeed,
    ScriptLine,
    ScriptSession,
    check_replay,
    check_script,
    read_interactions,
    read_script,
    replay,
)
from worldline.world.description import WorldDescription
from worldline.world.distributed import local_secondaries
from worldline.world.engines.engine import PhysicsEngine
from worldline.world.foxglove import WORLD_MEMBER, WorldTeller, world_recorder
from worldline.world.hosting import Exchange
from worldline.world.primary import Primary
from worldline.world.run import World
from worldline.world.secondary import PRIMARY, Secondary
from worldline.world.spectator import Spectator

if TYPE_CHECKING:
    from worldline.world.discovery import Discovery, DiscoveryOptions


# A process's part in the network of a world: a primary that waits for secondaries, or a secondary that finds it.

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


_LOOK_EVERY_S = 0.1
_PROMPT = "> "


class HashLines(Spectator):
    """Keeps a line for each step: iteration, step, state hash."""

    every = 0

    def __init__(self) -> None:
        self._lines: list[str] = []

    def stepped(self, iteration: int, step: int, poses: object, state_hash: bytes) -> None:
        self._lines.append(f"{iteration} {step} {state_hash.hex()}\n")

    def write(self, path: Path) -> None:
        save(path, "".join(self._lines).encode())


@dataclass(kw_only=True)
class WorldSession:
    """One run of a world, alone or as the primary of others, with all that was asked for."""

    description: WorldDescription
    file: Path
    engine: PhysicsEngine
    engine_name: str
    network: WorldNetwork
    secondaries: int
    listen: str
    local_secondaries: int | None
    run_ahead: int
    until: int | None
    pace: float | None
    script: Path | None
    is_console: bool
    replayed: Path | None
    shelf: Shelf | None
    record_every: int
    paths: Path | None
    animation: Path | None
    hashes: Path | None
    interactions: Path | None
    quiet: bool

    def __post_init__(self) -> None:
        """Refuse what can't be, before anything starts."""
        if self.replayed is not None and (self.script is not None or self.is_console):
            raise UsageError("--console and --replay-interactions both say what happens", advice="use one of them")
        self._script: list[ScriptLine] = [] if self.script is None else read_script(self.script)
        check_script(self._script, self.until)
        self._history: InteractionHistory | None = None
        if self.replayed is not None:
            self._history = read_interactions(self.replayed)
            check_replay(self.description, self._history, self.until)
        self._written: list[tuple[Callable[[Path], None], Path]] = []
        self._begun = time.monotonic()

    def run(self) -> None:
        """Run it to its end, and write what it leaves behind, also if it doesn't end well."""
        with Interruption() as interruption, interrupted_by(interruption, _interrupt), ExitStack() as stack:
            spectators = [*self._spectators(), *self._recorded(stack, interruption)]
            exchange = stack.enter_context(self._exchange())
            world = World(
                self.description,
                engine=lambda _: self.engine,  # It knows the movers already: to build each once takes seconds.
                exchange=exchange,
                spectators=spectators,
                run_ahead=self.run_ahead,
            )
            self._begun = time.monotonic()
            try:
                outcome = self._played(world)
            finally:
                self._write()
            if self._recording is not None:
                self._recording.conclude(outcome)
        self._conclude(world, outcome)

    # --- Setting up ---

    @contextmanager
    def _exchange(self) -> Iterator[Exchange | None]:
        if self.local_secondaries is not None:
            with local_secondaries(
                self.file,
                self.local_secondaries,
                engine=self.engine_name,
                silence_s=self.network.silence_s,
                patience_s=self.network.patience_s,
            ) as exchange:
                yield exchange
        elif self.secondaries:
            with self.network.secondaries(self.engine, self.secondaries, self.listen, self._say) as exchange:
                yield exchange
        else:
            yield None

    def _spectators(self) -> Iterator[Spectator]:
        if self.paths is not None:
            picture = PathsPicture(title=self.description.name)
            self._written.append((picture.write, self.paths))
            yield picture
        if self.animation is not None:
            animated = Animation(title=self.description.name)
            self._written.append((animated.write, self.animation))
            yield animated
        if self.hashes is not None:
            lines = HashLines()
            self._written.append((lines.write, self.hashes))
            yield lines
        if self.interactions is not None:
            log = InteractionsLog()
            self._written.append((lambda path: log.history.save(path), self.interactions))
            yield log

    def _recorded(self, stack: ExitStack, interruption: Interruption) -> Iterator[Spectator]:
        self._recording: RunRecording | None = None
        if self.shelf is not None:
            recording = RunRecording(self.shelf, self._recorder, say=self._say, warn=remark)
            self._recording = stack.enter_context(recording)
            interruption.again = recording.give_up
            yield WorldTeller(self._recording.observer, every=self.record_every)

    def _recorder(self, target: RecordingTarget) -> Recorder:
        return world_recorder(target, self.description.name, plan([WORLD_MEMBER], until=self.until))

    # --- Running ---

    def _played(self, world: World) -> Outcome:
        if self._history is not None:
            return replay(world, self._history, self.until, pace=self.pace)
        if self.script is not None:
            ScriptSession(world, self._script, self._say, pace=self.pace, until=self.until).run()
        elif self.is_console:
            prompt = _ask if sys.stdin.isatty() else None
            feed = LineFeed(sys.stdin.fileno())
            ConsoleSession(world, feed, PlainConsole().print, pace=self.pace, until=self.until, prompt=prompt).run()
        else:
            with progress("step") as shown:
                world.play(self.until, pace=self.pace, between=None if self.quiet else self._looks(world, shown))
        return world.end()

    def _looks(self, world: World, watch: Watch) -> Callable[[], None]:
        """Return what shows now and then how far a world is."""
        shown = time.monotonic()
        end = FOREVER if self.until is None else self.until

        def look() -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown > _LOOK_EVERY_S:
                shown = now
                watch(Status(world.time, end, world.iteration))

        return look

    # --- Ending ---

    def _write(self) -> None:
        for write, path in self._written:
            write(path)
            self._say(f"written to {path}")

    def _conclude(self, world: World, outcome: Outcome) -> None:
        console = PlainConsole()
        elapsed_s = time.monotonic() - self._begun
        console.print(
            f"{self.description.name}: {counted(world.iteration, 'step')}, {format_time(outcome.now)} simulated in "
            f"{elapsed_s:.2f} s, {counted(len(world.performers), 'performer')}"
        )
        console.print(f"state hash {world.state_hash.hex()} at step {world.step}")
        console.print(f"digest {outcome.digest.hex()}")

    def _say(self, text: str) -> None:
        if not self.quiet:
            PlainConsole().print(text)


def _ask() -> None:
    print(_PROMPT, end="", flush=True)


def _interrupt(error: Interrupted) -> None:
    raise KeyboardInterrupt(error.problem)  # Nobody takes that for a failure of the model.
