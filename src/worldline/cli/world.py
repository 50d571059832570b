"""`worldline world`: a world of robots, in this process or over several."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from worldline.cli.console import PlainConsole, progress, remark
from worldline.cli.options import PAGE, AccessOptions, PageOptions, RecordingOptions, takes, token_in
from worldline.cli.runner import interruptible, page_of, recording_of, run_to_end
from worldline.federation.address import parse_address
from worldline.files.saving import save
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model import UsageError, as_time, plan
from worldline.model.text import counted, printable
from worldline.model.time import FOREVER, SECOND, format_time
from worldline.pictures.world import PathsPicture
from worldline.recording import Recorder, Shelf
from worldline.recording.output import RecordingTarget
from worldline.targets.world import watched
from worldline.world.console import (
    ConsoleSession,
    InteractionHistory,
    InteractionsLog,
    ScriptLine,
    ScriptSession,
    check_replay,
    check_script,
    interacted,
    line_feed,
    read_interactions,
    read_script,
    replay,
)
from worldline.world.description import WorldDescription, WorldModel
from worldline.world.discovery import DiscoveryOptions, PeerRole
from worldline.world.distributed import Primary, local_secondaries
from worldline.world.engines import ENGINES, first_notes, open_engine
from worldline.world.engines.engine import PhysicsEngine
from worldline.world.foxglove import WorldTeller, world_recorder
from worldline.world.hosting import Exchange
from worldline.world.levels import Cast
from worldline.world.report import load_remarks, world_report
from worldline.world.run import World
from worldline.world.sdf import read_world
from worldline.world.secondary import PRIMARY, SILENCE_S, Secondary, network_part
from worldline.world.spectator import WORLD_MEMBER, Spectator

if TYPE_CHECKING:
    from worldline.watch.show import Show
    from worldline.world.discovery import Discovery


# The options, in groups.

FEDERATION = "world"
"""The federation of processes that don't say which they belong to."""

_LISTEN = "tcp://127.0.0.1:0"
_PATIENCE_S = 60.0
_STDIN = "-"
_EVERYWHERE = ("0.0.0.0", "::", "")


class CourseOptions(Struct, frozen=True, kw_only=True):
    """How a world goes on, and until when."""

    until: str | None = None
    check: bool = False
    engine: str = ENGINES[0]
    realtime: float | None = None
    run_ahead: int = 1
    console: str | None = None
    replay_interactions: Path | None = None

    @property
    def end(self) -> int | None:
        return None if self.until is None else as_time(self.until, "an end time")

    @property
    def script(self) -> Path | None:
        """The file with commands, if there is one."""
        return None if self.console in (None, _STDIN) else Path(str(self.console))

    @property
    def is_at_keyboard(self) -> bool:
        """Whether commands are typed."""
        return self.console == _STDIN


class MeetingOptions(Struct, frozen=True, kw_only=True):
    """Where the processes of a world find each other, if they don't connect by address alone."""

    no_discovery: bool = False
    interface: str = ""
    meet: str = ""
    discovery_listen: tuple[str, ...] = ()
    discovery_connect: tuple[str, ...] = ()


class NetworkOptions(Struct, frozen=True, kw_only=True):
    """What this process is in the network of a world, and how the others reach it."""

    local_secondaries: int | None = None
    network_role: str | None = None
    network_secondaries: int | None = None
    network_primary: str | None = None
    listen: str = _LISTEN
    name: str | None = None
    federation: str = FEDERATION
    access: AccessOptions = AccessOptions()
    patience: float = _PATIENCE_S
    heartbeat_limit: float = SILENCE_S
    meeting: MeetingOptions = MeetingOptions()

    @property
    def token(self) -> str | None:
        return token_in(self.access.token_file)

    @property
    def discovery(self) -> DiscoveryOptions | None:
        """How processes find each other; without it, only by address."""
        meeting = self.meeting
        if meeting.no_discovery:
            return None
        return DiscoveryOptions(
            interface=meeting.interface,
            meeting_point=meeting.meet,
            listen=meeting.discovery_listen,
            connect=meeting.discovery_connect,
            stale_s=self.heartbeat_limit,
        )

    @contextmanager
    def secondaries(self, engine: PhysicsEngine, count: int, say: Callable[[str], None]) -> Iterator[Exchange]:
        """Be the primary, from the wait for secondaries to the end of the block."""
        primary = Primary(
            engine,
            count,
            self.listen,
            federation=self.federation,
            token=self.token,
            certificate=self.access.certificate,
            key=self.access.key,
            patience_s=self.patience,
            silence_s=self.heartbeat_limit,
        )
        if self.discovery is not None and parse_address(self.listen).place in _EVERYWHERE:
            raise UsageError(
                f"--listen {self.listen} can't be announced: it doesn't say which of this machine's addresses to use",
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

    def secondary(self, engine: PhysicsEngine, say: Callable[[str], None]) -> int:
        """Be a secondary until the run is over; return the last step."""
        primary = self.network_primary
        name = self.name or f"{platform.node() or 'secondary'}-{os.getpid()}"
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
                found = stack.enter_context(self._found("secondary", name, give_up)).find_primary(self.patience)
                primary = found.address
            secondary = Secondary(
                primary,
                name,
                engine,
                federation=self.federation,
                token=self.token,
                authority=self.access.authority,
                patience_s=self.patience,
                silence_s=self.heartbeat_limit,
            )
            connected.append(secondary)
            say(f"secondary {name}, connected to {primary}")
            secondary.run()
        return secondary.step

    def _found(self, role: str, name: str, give_up: Callable[[str, str], None], address: str = "") -> Discovery:
        """Return what finds the others; `give_up` is told of those that fall silent, with the reason."""
        from worldline.world.discovery import DepartedBy, Discovery, Peer

        def departed(peer: Peer, how: DepartedBy) -> None:
            if how is DepartedBy.SILENCE:  # Otherwise the connection knows it, and why.
                give_up(f"nothing was heard from it for {self.heartbeat_limit:g} seconds", peer.name)

        return Discovery(self.federation, role, name, address=address, options=self.discovery, on_departure=departed)


class WorldOutputs(Struct, frozen=True, kw_only=True):
    """What a run leaves behind, and what is said of it meanwhile."""

    recording: RecordingOptions = RecordingOptions()
    record_every: int = 1
    paths: Path | None = None
    animation: Path | None = None
    hashes: Path | None = None
    interactions: Path | None = None
    quiet: bool = False

    def say(self, text: str) -> None:
        if not self.quiet:
            PlainConsole().print(text)


# One run of a world: set up, shown, and written to files.

_PROMPT = "> "
_FRAMES_PER_SECOND = 50


class HashLines(Spectator):
    """Keeps a line for each step: iteration, step, state hash."""

    every = 0

    def __init__(self) -> None:
        self._lines: list[str] = []

    def stepped(self, iteration: int, step: int, poses: object, state_hash: bytes) -> None:
        self._lines.append(f"{iteration} {step} {state_hash.hex()}\n")

    def write(self, path: Path) -> None:
        save(path, "".join(self._lines).encode())


class Placements(Spectator):
    """Tells a page which secondary simulates which mover: that is no part of the history."""

    every = 0

    def __init__(self, show: Show) -> None:
        self._show = show
        self._step_ns = 0

    def began(self, description: WorldDescription) -> None:
        self._step_ns = description.step

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        owners = {name: affinities[name] for name, model in models.items() if name in affinities and not model.static}
        self._show.placements.append((iteration * self._step_ns, owners))


class WorldSession:
    """One run of a world, alone or as the primary of others, with all that was asked for."""

    def __init__(
        self,
        file: Path,
        engine: PhysicsEngine,
        description: WorldDescription,
        course: CourseOptions,
        network: NetworkOptions,
        secondaries: int,
        outputs: WorldOutputs,
    ) -> None:
        """Refuse what can't be, before anything starts."""
        self.file = file
        self.engine = engine
        self.description = description
        self.course = course
        self.network = network
        self.secondaries = secondaries
        self.outputs = outputs
        if course.replay_interactions is not None and course.console is not None:
            raise UsageError("--console and --replay-interactions both say what happens", advice="use one of them")
        self._script: list[ScriptLine] = [] if course.script is None else read_script(course.script)
        check_script(self._script, course.end)
        self._history: InteractionHistory | None = None
        if course.replay_interactions is not None:
            self._history = read_interactions(course.replay_interactions)
            check_replay(description, self._history, course.end)
        self._written: list[tuple[Callable[[Path], None], Path]] = []

    def run(self, shelf: Shelf | None, paging: PageOptions) -> None:
        """Run it to its end, and write what it leaves behind, also if it doesn't end well."""
        world: World
        begun = time.monotonic()

        def run(observer: Observer | None, watch: Watch | None) -> Outcome:
            nonlocal world, begun
            spectators = list(self._spectators())
            if observer is not None:
                spectators.append(WorldTeller(observer, every=self.outputs.record_every))
            if page is not None:
                spectators.append(Placements(page.show))
            with self._exchange() as exchange:
                world = World(
                    self.description,
                    engine=lambda _: self.engine,  # It knows the movers already: to build each once takes seconds.
                    exchange=exchange,
                    spectators=spectators,
                    run_ahead=self.course.run_ahead,
                )
                begun = time.monotonic()
                if page is not None and not is_interactive:
                    page.takes(partial(interacted, world))
                try:
                    return self._played(world, watch)
                finally:
                    self._write()

        is_interactive = self._history is not None or self.course.console is not None
        with page_of(self.description.name, "world", 0, paging) as page:
            if page is not None and is_interactive:
                page.show.facts["orders"] = []  # What happens is said elsewhere.
            outcome = run_to_end(
                run,
                recording_of(self._recorder, shelf, self.outputs.say),
                showing=nullcontext if is_interactive or self.outputs.quiet else lambda: progress("step"),
                page=page,
            )
        self._conclude(world, outcome, time.monotonic() - begun)

    def _recorder(self, target: RecordingTarget) -> Recorder:
        return world_recorder(target, self.description.name, plan([WORLD_MEMBER], until=self.course.end))

    # --- Setting up ---

    @contextmanager
    def _exchange(self) -> Iterator[Exchange | None]:
        if self.network.local_secondaries is not None:
            with local_secondaries(
                self.file,
                self.network.local_secondaries,
                engine=self.course.engine,
                silence_s=self.network.heartbeat_limit,
                patience_s=self.network.patience,
            ) as exchange:
                yield exchange
        elif self.secondaries:
            with self.network.secondaries(self.engine, self.secondaries, self.outputs.say) as exchange:
                yield exchange
        else:
            yield None

    def _spectators(self) -> Iterator[Spectator]:
        """Yield what writes files, and remember to have them written."""
        title, outputs = self.description.name, self.outputs
        for path, spectator in (
            (outputs.paths, PathsPicture(title=title)),
            (outputs.hashes, HashLines()),
            (outputs.interactions, InteractionsLog()),
        ):
            if path is not None:
                self._written.append((spectator.write, path))
                yield spectator
        if outputs.animation is not None:
            yield from self._animated(outputs.animation)

    def _animated(self, path: Path) -> Iterator[Spectator]:
        """Yield what tells a page of the run, and remember to have that written to a file."""
        from worldline.watch.live import LiveRun  # Here, since few runs have one.

        facts = {"name": printable(self.description.name), "room": "world", "file": ""}
        live = LiveRun(facts, bytes_max=2**62)
        self._written.append((lambda place: save(place, live.page().encode()), path))
        yield WorldTeller(live.observer, every=-(-SECOND // (_FRAMES_PER_SECOND * self.description.step)))
        yield Placements(live.show)

    # --- Running ---

    def _played(self, world: World, watch: Watch | None) -> Outcome:
        course = self.course
        if self._history is not None:
            return replay(world, self._history, course.end, pace=course.realtime)
        if course.script is not None:
            ScriptSession(world, self._script, self.outputs.say, pace=course.realtime, until=course.end).run()
        elif course.is_at_keyboard:
            prompt = _ask if sys.stdin.isatty() else None
            feed = line_feed(sys.stdin.fileno())
            console = PlainConsole().print
            ConsoleSession(world, feed, console, pace=course.realtime, until=course.end, prompt=prompt).run()
        else:
            end = FOREVER if course.end is None else course.end
            between = watched(world, watch, end)
            world.play(course.end, pace=course.realtime, between=between)
        return world.end()

    # --- Ending ---

    def _write(self) -> None:
        for write, path in self._written:
            write(path)
            self.outputs.say(f"written to {path}")

    def _conclude(self, world: World, outcome: Outcome, elapsed_s: float) -> None:
        console = PlainConsole()
        console.print(
            f"{self.description.name}: {counted(world.iteration, 'step')}, {format_time(outcome.now)} simulated in "
            f"{elapsed_s:.2f} s, {counted(len(world.performers), 'performer')}"
        )
        console.print(f"state hash {world.state_hash.hex()} at step {world.step}")
        console.print(f"digest {outcome.digest.hex()}")


def _ask() -> None:
    print(_PROMPT, end="", flush=True)


def completed(arguments: list[str]) -> list[str]:
    """Return the arguments with a value for a bare --console: the keyboard."""
    found: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        found.append(argument)
        if argument == "--console" and (following is None or not _is_script(following)):
            found.append(_STDIN)
    return found


def _is_script(text: str) -> bool:
    return text == _STDIN or not (text.startswith("-") or text.endswith((".sdf", ".world")))


@takes(
    f"""
    file: FILE.sdf  The world, in Gazebo's SDF.
    --until TIME  End of the run, such as 20s (default: until interrupted).
    --check  Say what is in the file and what isn't supported, and run nothing.
    --engine NAME  Physics: {" or ".join(ENGINES)}, without contacts.
    --realtime
    --run-ahead STEPS at least 1  Steps that secondaries may go without waiting. Same result.
    --console [SCRIPT]  Control the run by commands, from a file or from the keyboard. `help` lists them.
    --replay-interactions FILE  Repeat what was done to a run, from its recording or its log.
    --token-file
    --certificate
    --key
    --force
    --quiet
    Several processes:
    --local-secondaries N 1 to 64  Simulate in N processes on this machine.
    --network-role ROLE  primary or secondary (default: run alone).
    --network-secondaries N  How many secondaries a primary waits for.
    --network-primary ADDRESS  Where a secondary's primary is (default: discovered).
    --listen ADDRESS  Where a primary's secondaries connect.
    --name  A secondary's name (default: of its machine and process).
    --federation ID  Keeps runs on one network apart.
    --authority  Certificates that a secondary trusts, for a tls:// primary.
    --patience SECONDS at least 0  How long to wait for the others.
    --heartbeat-limit SECONDS at least 1  How long another process may be silent.
    Discovery:
    --no-discovery  Connect by address alone.
    --interface NAME  Network interface (default: loopback).
    --meet ENDPOINT  Where processes of one machine meet.
    --discovery-listen ENDPOINT  Where others can find this process.
    --discovery-connect ENDPOINT  Where to find another process.
    Output:
    --record FILE.mcap  Record the run, for Foxglove too.
    --record-every STEPS at least 1  Steps between recorded poses.
    --paths FILE.svg  Draw the performers' paths, by secondary.
    --animation FILE.html  Draw the run as an animation.
    --hashes FILE  Write the state hash of each step.
    --interactions FILE  Write down what was done to the run.
    """,
    PAGE,
    completed=completed,
)
def world(
    file: Path, course: CourseOptions, network: NetworkOptions, outputs: WorldOutputs, paging: PageOptions
) -> None:
    """Run a world of robots in lockstep, in one process or over several: the same bit for bit.

    With --local-secondaries, processes on this machine simulate it. With --network-role, start one primary and its
    secondaries by hand, here or on other machines. They find each other, or are told the primary's address.
    """
    role, secondaries, warnings = network_part(network.network_role, network.network_secondaries, os.environ)
    for warning in warnings:
        remark(warning)
    description = read_world(file)
    if course.check:
        _check(description, course.engine)
        return
    engine = open_engine(course.engine, description)
    _ = network.token, network.discovery  # What can't be is refused, also if this process doesn't use it.
    for line in load_remarks(description, first_notes(engine, Cast(description).loaded())):
        remark(f"{file}: {line}")
    if role is PeerRole.SECONDARY:
        _refuse_on_secondary(course, network, outputs)
        with interruptible():
            step = network.secondary(engine, outputs.say)
        outputs.say(f"the run is over, after step {step:,}")
        return
    if network.network_primary is not None or network.name is not None:
        raise UsageError("--network-primary and --name are for secondaries", advice="--network-role=secondary")
    if role is not None and network.local_secondaries is not None:
        raise UsageError("--local-secondaries starts all there is", advice="leave out --network-role")
    session = WorldSession(file, engine, description, course, network, secondaries, outputs)
    session.run(outputs.recording.shelf(), paging)


def _check(description: WorldDescription, engine: str) -> None:
    """Say what is in a world. What passes can be run, so the engine builds it, if it is installed."""
    try:
        opened = open_engine(engine, description)
    except UsageError as error:
        remark(f"not checked by an engine: {error.text()}")
        found = []
    else:
        found = first_notes(opened)
    for line in world_report(description, found):
        PlainConsole().print(line)


def _refuse_on_secondary(course: CourseOptions, network: NetworkOptions, outputs: WorldOutputs) -> None:
    given = {
        "--until": course.until,
        "--realtime": course.realtime,
        "--console": course.console,
        "--replay-interactions": course.replay_interactions,
        "--local-secondaries": network.local_secondaries,
        "--record": outputs.recording.record,
        "--paths": outputs.paths,
        "--animation": outputs.animation,
        "--hashes": outputs.hashes,
        "--interactions": outputs.interactions,
    }
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for the primary, through which everything is controlled and seen")
