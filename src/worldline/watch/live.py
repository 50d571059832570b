"""A run that goes on, as pages see it: an observer that fills the tape, and a watch that tells how far the run is.

Both are called by the run and take next to nothing; which participant waits for which is found out only while a page
looks.

Pages can hold a run. A federation over sockets is held by its operator's own operations (`Operating`). Any other run is
held where it tells its status: it goes on when that returns. Neither changes a result. What does is what a run *takes*:
commands that it carries out there, in its own thread, and records.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Queue
from typing import Any

from worldline.federation.operator import Operator
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Status, Watch
from worldline.lock.why.reasons import Situation
from worldline.lock.why.words import hints
from worldline.model.errors import LossError, UsageError, WorldlineError, shown
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, format_time
from worldline.pictures.page import Page
from worldline.watch.reel import Reel
from worldline.watch.show import Show
from worldline.watch.tape import Tape
from worldline.wire.operator import RunOver

ROWS_KEPT = 1_000_000
BYTES_KEPT = 2**26
"""How much of a run that goes on is kept for pages: messages, and bytes of those whose payloads are kept, too."""

_ASK_S, _LOOK_S, _DONE_S = 0.5, 0.5, 5.0


class LiveRun:
    """What a run has to tell so that pages see it: an `observer`, and a watch (`watching`).

    `operator` connects to the run, where it has a server that listens.
    """

    def __init__(
        self, facts: dict[str, Any], operator: Callable[[], Operator] | None = None, bytes_max: int = BYTES_KEPT
    ) -> None:
        tape = Tape(ROWS_KEPT, bytes_max=bytes_max)
        self.observer = Reel(tape)
        self._holding = Holding()
        self._operating = None if operator is None else Operating(operator)
        self.show = Show(
            {**facts, "live": True, "orders": ["pause", "step", "resume", *(["end"] if operator else [])]},
            tape,
            order=self._holding.order if self._operating is None else self._operating.order,
            look=self._look,
        )
        self._next_ask = 0.0
        self._before = time.monotonic(), 0, 0  # When its speed was measured last, and how far it was.

    def observing(self, observer: Observer | None) -> Observer:
        """Return what tells pages, and another observer, what happens."""
        return self.observer.telling(observer)

    def takes(self, carry_out: Callable[[str], str]) -> None:
        """Let pages give the run commands; `carry_out` is called in the run's own thread, and says what came of it."""
        self._holding.carry_out = carry_out
        self.show.facts["orders"] = [*self.show.facts["orders"], "do"]

    # --- How far it is ---

    def watching(self, watch: Watch | None) -> Watch:
        """Return what passes every status on, and holds the run where a page wants that."""

        def hear(status: Status) -> None:
            if watch is not None:
                watch(status)
            self._tell(status)
            self._holding.wait(status, lambda: self._tell(status))

        return hear

    def _tell(self, status: Status) -> None:
        now = time.monotonic()
        if now < self._next_ask:
            return
        self._next_ask = now + _ASK_S
        before, time_before, events_before = self._before
        elapsed = max(now - before, 1e-9)
        self._before = now, status.time, status.events
        waits = status.waits if self.show.is_watched and self._operating is None else ()
        self.show.status = {
            "phase": "paused" if self._holding.is_held else "running",
            "time": status.time,
            "end": None if status.end >= FOREVER else status.end,
            "events": status.events,
            "speed": (status.time - time_before) / elapsed / 1e9,
            "rate": (status.events - events_before) / elapsed,
            "waits": [{"who": wait.who, "holder": wait.holder, "why": wait.why} for wait in waits],
        }

    def _look(self) -> dict[str, Any]:
        if self._operating is None or self.show.status.get("phase") in ("over", "failed"):
            return {}
        return self._operating.look()

    # --- How it ended ---

    def over(self, outcome: Outcome) -> None:
        """Tell pages what has come of the run."""
        self.observer.finish(outcome.now + (not outcome.is_cut))
        digest = outcome.digest.hex() or None
        self._finish({"time": outcome.now, "events": outcome.events, "digest": digest}, outcome.failure)

    def page(self, failure: str | None = None) -> Page:
        """Return a page of what has happened, as a file; of a run that was watched for nothing else."""
        self.observer.take()
        self.show.facts |= {"live": False, "orders": []}
        self.show.status = {"phase": "over" if failure is None else "failed", "failure": failure}
        return self.show.page()

    def failed(self, error: BaseException) -> None:
        """Tell pages why the run was broken off."""
        with suppress(WorldlineError):
            self.observer.take()
        self._finish({}, error)

    def _finish(self, facts: dict[str, Any], failure: BaseException | None) -> None:
        self.show.facts["orders"] = []
        phase = "over" if failure is None else "failed"
        told: dict[str, Any] = {**failure_told(failure), "waits": [], "standings": None}
        self.show.status = {**self.show.status, **facts, **told, "phase": phase}


def failure_told(failure: BaseException | None) -> dict[str, Any]:
    """Return what pages are told of a failure: its words, and, if they are known, its time and its participant."""
    if not isinstance(failure, WorldlineError):
        return {"failure": None if failure is None else str(failure)}
    who = None if failure.participant is None else failure.participant.removeprefix("node ")
    return {"failure": str(failure), "failedAt": failure.at, "failedBy": who}


class Holding:
    """Holds a run in its own thread, where it tells its status."""

    def __init__(self) -> None:
        self.is_held = False
        self.carry_out: Callable[[str], str] | None = None
        self._commands: Queue[tuple[str, Future[str]]] = Queue()
        self._until: int | None = None  # Where to hold it, if it isn't held.
        self._time = 0
        self._changed = threading.Condition()

    def wait(self, status: Status, tell: Callable[[], None]) -> None:
        """Return when the run may go on."""
        self._time = status.time
        self._carry_out_all()
        with self._changed:
            if self._until is not None and status.time >= self._until:
                self.is_held, self._until = True, None
            while self.is_held:
                tell()
                self._changed.wait(_LOOK_S)
                self._carry_out_all()

    def _carry_out_all(self) -> None:
        while not self._commands.empty():
            line, answer = self._commands.get()
            if self.carry_out is None or not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(self.carry_out(line))
            except UsageError as error:  # The page's user has made a mistake, and the run goes on.
                answer.set_exception(error)
            except BaseException as error:
                answer.set_exception(UsageError(str(error)))
                raise

    def _done(self, line: str) -> str:
        """Have a command carried out where the run next tells its status, and return what came of it."""
        answer: Future[str] = Future()
        self._commands.put((line, answer))
        try:
            return answer.result(_DONE_S)
        except TimeoutError:
            if not answer.cancel():
                return answer.result()
            raise UsageError("the run doesn't come to it", advice="it may be over, or compute a long step") from None

    def order(self, name: str, given: dict[str, Any]) -> str:
        if name == "do" and self.carry_out is not None:
            line = given.get("line", "")
            if not isinstance(line, str):
                raise UsageError(f"a command is a line of text, not {shown(line)}")
            return self._done(line)
        with self._changed:
            if name == "pause":
                self.is_held, self._until = True, None
                return "paused"
            if name == "resume":
                self.is_held, self._until = False, None
            elif name == "step":
                self.is_held, self._until = False, _step_end(given, self._time)
            else:
                raise UsageError(f"this run can't {shown(name)}", advice="it can pause, step and resume")
            self._changed.notify_all()
        return "resumed" if name == "resume" else "stepping"


def _step_end(given: dict[str, Any], now: int) -> int:
    if given.get("to"):
        return as_time(given["to"], "the time to run to")
    return now + as_time(given["by"], "the time to go on by") if given.get("by") else now + 1


class Operating:
    """Looks at a federation and drives it as an operator does, each time through a connection of its own.

    One that stayed open would hold up the end of the run: its server waits until all who were told of it have gone.
    """

    def __init__(self, connect: Callable[[], Operator]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._looked: tuple[float, dict[str, Any]] = (0.0, {})

    def look(self) -> dict[str, Any]:
        """Return where all participants are and which waits for which; what was found last, while that is new."""
        with self._lock:
            if time.monotonic() - self._looked[0] >= _LOOK_S:
                self._looked = time.monotonic(), self._seen()
            return self._looked[1]

    def _seen(self) -> dict[str, Any]:
        try:
            with self._connect() as operator:
                found = operator.situation(links=True)
        except (LossError, UsageError, OSError):  # It hasn't begun, or is over.
            return {}
        return {} if isinstance(found, RunOver) else in_plain(found)

    def order(self, name: str, given: dict[str, Any]) -> str:
        with self._lock:
            try:
                with self._connect() as operator:
                    return _ordered(operator, name, given)
            except (LossError, OSError) as error:
                raise UsageError(f"the run can't be reached: {error}") from error
            finally:
                self._looked = 0.0, {}


def _ordered(operator: Operator, name: str, given: dict[str, Any]) -> str:
    if name == "pause":
        held = operator.pause()
        return "the run is over" if isinstance(held, RunOver) else f"paused at {format_time(held)}"
    if name == "resume":
        return "resumed" if operator.resume() is None else "the run is over"
    if name == "step":
        by = as_time(given["by"], "the time to go on by") if given.get("by") else None
        to = as_time(given["to"], "the time to run to") if given.get("to") else None
        reached = operator.step(by=by, to=to, within_s=10.0)
        return "the run is over" if isinstance(reached, RunOver) else f"at {format_time(reached)}"
    if name == "end":
        operator.end()
        return "ending"
    raise UsageError(f"a run can't {shown(name)}", advice="it can pause, step, resume and end")


def in_plain(situation: Situation) -> dict[str, Any]:
    """Return a situation as plain values for a page."""
    found: dict[str, Any] = {
        "phase": "paused" if situation.paused is not None else "starting" if situation.missing else "running",
        "time": situation.time,
        "end": None if situation.end >= FOREVER else situation.end,
        "events": situation.events,
        "missing": list(situation.missing),
        "waits": [
            {"who": why.participant, "holder": why.holder, "why": str(why), "awaits": why.awaits, "bound": why.bound}
            for why in situation.whys
        ],
        "standings": [
            {
                "name": each.name,
                "state": each.state.value,
                "now": each.now,
                "sent": each.sent,
                "seconds": each.activity.seconds,
                "remark": each.activity.lost or each.activity.remark or each.activity.condition,
            }
            for each in situation.standings
        ],
        "hints": hints(situation),
        "links": [[hop.sender, hop.receiver, hop.topic, hop.latency] for hop in situation.links],
    }
    if situation.speed is not None:
        found["speed"] = situation.speed
    if situation.rate is not None:
        found["rate"] = situation.rate
    return found
