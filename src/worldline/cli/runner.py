"""Runs what a command runs, in one way: interrupted in good order, shown, recorded, and told in the same words."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from worldline.cli.console import PlainConsole, remark
from worldline.cli.options import PageOptions
from worldline.history.observer import DEAD, UNDER_WAY, Observer
from worldline.history.outcome import Outcome, Watch
from worldline.lock.arbiter import DROPPED_BY_BUFFER, NEVER_TAKEN
from worldline.model import Interrupted, LossError
from worldline.model.text import counted, printable

if TYPE_CHECKING:
    from worldline.federation.operator import Operator
    from worldline.recording import RunRecording, Shelf
    from worldline.recording.output import RecordingTarget
    from worldline.recording.writer import Recorder
    from worldline.targets import Ready
    from worldline.targets.federation import ReadyFederation
    from worldline.watch.live import LiveRun
    from worldline.watch.server import PageServer


# Ctrl-C, a request to terminate, a closed terminal: the first ends a run in good order, the next at once.

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While it lasts, signals call `first`, and then `again`; before there is anything to end, they end the command."""

    def __init__(self) -> None:
        self.first: Callable[[Interrupted], None] | None = None
        self.again: Callable[[], None] = lambda: None
        self._happened = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        numbers = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # As with nohup.
        self._before = {number: signal.signal(number, self._act) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _act(self, number: int, _: FrameType | None) -> None:
        error = Interrupted(f"interrupted by {signal.Signals(number).name}")
        if self.first is None:
            raise error
        if self._happened:
            self.again()
        else:
            self._happened = True
            self.first(error)


@contextmanager
def interrupted_by(interruption: Interruption, interrupt: Callable[[Interrupted], None]) -> Iterator[None]:
    """Let signals end what runs here, as long as it lasts; a `KeyboardInterrupt` by which it ends becomes ours."""
    interruption.first = interrupt
    try:
        yield
    except KeyboardInterrupt as interrupted:
        raise Interrupted(str(interrupted) or "interrupted") from None
    finally:
        interruption.first = lambda _: None  # It is over by itself.


def interrupt_here(error: Interrupted) -> None:
    """End what runs in this thread, wherever it is."""
    raise KeyboardInterrupt(error.problem)  # No code takes that for a failure of the model.


@contextmanager
def interruptible() -> Iterator[None]:
    """Let signals end what runs here, wherever it is."""

    with Interruption() as interruption, interrupted_by(interruption, interrupt_here):
        yield


# A run that goes on, shown on a page: `--watch`.


@contextmanager
def page_of(
    name: str, room: str, seed: int, options: PageOptions, *, is_served: bool = False
) -> Iterator[LiveRun | None]:
    """Show a run on a page, if that is wanted: from before the run until its user ends it, however the run ends.

    A run that `is_served` can be reached by operators, through the server in this process.
    """
    if not options.watch:
        yield None
        return
    from worldline.watch.live import LiveRun  # Here, since few runs have one.
    from worldline.watch.server import PageServer

    facts = {"name": printable(name), "room": room, "seed": seed, "file": ""}
    live = LiveRun(facts, _operator if is_served else None)
    with PageServer([live.show], host=options.host, port=options.port) as server:
        announce(server, options)
        try:
            yield live
        except BaseException as error:
            live.failed(error)
            if not isinstance(error, Interrupted):
                _stay(server, f"has failed ({error})")
            raise
        _stay(server, "is over")


def page_of_ready(ready: Ready, options: PageOptions) -> AbstractContextManager[LiveRun | None]:
    """Show what is ready to run on a page, if that is wanted; under MPI, the one process that speaks does."""
    from worldline.targets.federation import ReadyFederation  # It is loaded by now, where there is one.

    is_served = isinstance(ready, ReadyFederation) and ready.federation is None
    wanted = options if ready.is_main else PageOptions()
    return page_of(ready.name, ready.kind, ready.seed, wanted, is_served=is_served)


def announce(server: PageServer, options: PageOptions) -> None:
    """Say where a page is, and open it in a browser if there is one."""
    import webbrowser  # Here, since few runs have a page.

    from worldline.watch.server import LOOPBACK

    if options.port and f":{options.port}/" not in server.url:
        remark(f"port {options.port} is taken, so another one is used")
    if options.host not in (LOOPBACK, "::1", "localhost"):
        remark("the page is served without encryption to all who can reach this address and know its token")
    PlainConsole().print(f"page: {server.url}  (Ctrl-C ends it)")
    if not options.no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        with suppress(webbrowser.Error):
            webbrowser.open(server.url)


def _stay(server: PageServer, how: str) -> None:
    """Let a page be looked at until its user ends it."""
    with interruptible_quietly():
        remark(f"the run {how}; its page stays at {server.url} until Ctrl-C")
        signal.pause()


@contextmanager
def interruptible_quietly() -> Iterator[None]:
    """Let Ctrl-C end what waits here: that is how it is meant to end."""
    try:
        with interruptible():
            yield
    except Interrupted:
        pass


def _operator() -> Operator:
    """Connect to the run that this process serves."""
    from worldline.federation.operator import Operator
    from worldline.federation.registry import running

    entry = next((each for each in running() if each.process == os.getpid()), None)
    if entry is None:
        raise LossError("the run doesn't listen yet")
    return Operator(entry.address, token=entry.token, process=entry.process)


# What is left of a run: its recording, and its timing beside that, if it is wanted.


def recording_of(
    recorder: Callable[[RecordingTarget], Recorder], shelf: Shelf | None, say: Callable[[str], None] | None
) -> RunRecording | None:
    """Return the recording of a run, if it has a place. `recorder` opens it, and `say` is told where it is."""
    if shelf is None:
        return None
    from worldline.recording import RunRecording  # Here, since many runs aren't recorded.

    return RunRecording(shelf, recorder, say=say or (lambda _: None), warn=remark)


@contextmanager
def timing_noted(ready: ReadyFederation, shelf: Shelf | None, *, force: bool) -> Iterator[Callable[[Outcome], None]]:
    """Note a run's timing beside its recording, or where that would be, if it is wanted; yield what takes the outcome.

    It is known by its digest to be of the same run as the recording.
    """
    if not ready.options.federation.timing:
        yield lambda _: None
        return
    from worldline.recording.output import TIMING_SUFFIX
    from worldline.recording.timing import TimingWriter

    place = Path(ready.recording)
    if shelf is not None and not shelf.is_stream:
        shelf.is_timed = True
        place = shelf.path
    digest: bytes | None = None

    def conclude(outcome: Outcome) -> None:
        nonlocal digest
        digest = outcome.digest

    writer = TimingWriter(place.with_suffix(TIMING_SUFFIX), ready.name, ready.plan(), force=force, warn=remark)
    ready.launching.witness = writer.hears
    try:
        yield conclude
    finally:
        writer.close(digest)


# The one loop in which commands run something: `run`, `nodes`, `spacetime`, `world`, `serve` and `metasim serve` say
# only what differs.

AnyOutcome = TypeVar("AnyOutcome", bound=Outcome)


def run_to_end(
    run: Callable[[Observer | None, Watch | None], AnyOutcome],
    recording: RunRecording | None,
    *,
    showing: Callable[[], AbstractContextManager[Watch | None]] = nullcontext,
    interrupt: Callable[[Interrupted], None] = interrupt_here,
    hurry: Callable[[], None] = lambda: None,
    ended: Callable[[AnyOutcome], None] = lambda _: None,
    page: LiveRun | None = None,
) -> AnyOutcome:
    """Run something to its end: shown, also on a page, recorded, and ended in good order by a signal.

    `run` runs it, given what observes it and what is told its status, which is what `showing` has yielded. A signal
    calls `interrupt`; the next ones call `hurry`, and the recording waits for no reader any more. What the run has come
    to is recorded; `ended` shows what is to be shown before the recording has its name.
    """

    def hurry_all() -> None:
        hurry()
        if recording is not None:
            recording.give_up()

    with Interruption() as interruption, recording or nullcontext():
        interruption.again = hurry_all
        with showing() as watch, interrupted_by(interruption, interrupt):
            observer = None if recording is None else recording.observer
            if page is None:
                outcome = run(observer, watch)
            else:
                outcome = run(page.observing(observer), page.watching(watch))
                page.over(outcome)
        if recording is not None:
            recording.conclude(outcome)
        ended(outcome)
    return outcome


def conclusion(ready: Ready, outcome: Outcome, elapsed_s: float) -> Iterator[str]:
    """Say what has come of a run, in the same words for each kind."""
    simulated = f"{ready.extent(outcome)} simulated in {elapsed_s:.2f} s"
    happened = [counted(outcome.events, ready.event)] if ready.event else []
    lost = [losses_in_words(outcome.dropped, *ready.losses_named)] if ready.has_messages else []
    yield ", ".join([ready.taking_part(outcome), simulated, *happened, *lost])
    yield from outcome.remarks()
    yield f"digest {outcome.digest.hex()}"


# How many messages were lost, in the same words for a run and for its recording.

_APART = {
    DROPPED_BY_BUFFER: "not kept by buffers",
    NEVER_TAKEN: "never taken",
    UNDER_WAY: UNDER_WAY,
    DEAD: "sent to the dead",
}
"""What nothing has lost: it reached its receiver, or that wasn't there, or the run was over first."""


def losses_in_words(counts: Mapping[tuple[str, str, str], int], *always: str) -> str:
    """Say how many of the messages, counted by (receiver, topic, reason), were lost, and what else became of others.

    A reason that isn't a loss is named if there are such messages, or `always`.
    """
    apart = dict.fromkeys(_APART, 0)
    lost = 0
    for (_, _, reason), count in counts.items():
        if reason in apart:
            apart[reason] += count
        else:
            lost += count
    said = [f"{apart[reason]:,} {words}" for reason, words in _APART.items() if apart[reason] or reason in always]
    return ", ".join([f"{counted(lost, 'message')} lost", *said])
