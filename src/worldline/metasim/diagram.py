"""A Drake diagram as a simulator that can be driven: exact send times, and messages that are there when they arrive.

Theory of operation
-------------------
The systems of the diagram speak LCM over objects of ours that lead nowhere (``memq://``): one takes what they publish,
the other gives them what arrives. They can't be told apart from a network by the systems, so nothing in a diagram
changes but that object.

- A publish only queues its message, without a time. Drake calls the simulator's monitor after every step, when all
  publish events of that time have happened: whatever is queued then was published at that time. A message that an
  *update* publishes directly counts as published at the end of the step that begins with it.
- ``AdvanceTo(t)`` makes the publish events at t and leaves the updates at t pending. So what arrives at t is put into
  the context between the two. A subscriber looks at its queue in an update of its own, which would come too late; its
  initialization event does the same at once.
- A stop between two steps of its own shows (see `driving`), so it stops nowhere else than where it is told to.
- Events lie at float multiples of their periods: see `Grid`. At one nanosecond, publishers that are known come first,
  up to the last of their floats; then what arrives; then everything else. A grid that nobody knows has its float just
  before the nanosecond's own or just after it. For the former, the monitor ends the step there, before the updates. The
  latter comes after what arrives: right for updates, wrong for publishers that nobody knows, those on `client.lcm`
  without a period. For their sake a diagram without continuous state goes on by a few bits, as far as such a float can
  be; with one, that would show in what is integrated.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from pydrake.lcm import DrakeLcm
from pydrake.systems.analysis import Simulator, SimulatorStatus
from pydrake.systems.framework import Context, EventStatus

from worldline.federation.blame import is_normal_end
from worldline.metasim.driving import Send, SimulatorEnded
from worldline.metasim.seconds import Grid, furthest, nanoseconds
from worldline.model import TIME_MAX, Message, ModelError, PeerError, UsageError, WorldlineError, format_time
from worldline.model.blame import described, said_of
from worldline.model.errors import shown
from worldline.model.time import SECOND

Monitor = Callable[[Context], Any]

_GOES_ON = (EventStatus.Severity.kDidNothing, EventStatus.Severity.kSucceeded)


class DiagramSimulator:
    """A diagram with its simulator.

    `outward` takes what the diagram publishes, `inward` gives it what arrives; `subscribers` are the systems that
    listen to a channel. `publishing` are the times of all publishers if it `is_punctual`; otherwise there are some at
    times that nobody knows, which may lie on a hidden grid if it `has_hidden` ones. `stepping` are other times at which
    something happens in the diagram, as far as they are known.
    """

    def __init__(
        self,
        simulator: Simulator,
        outward: Sequence[DrakeLcm],
        inward: Sequence[DrakeLcm],
        subscribers: dict[str, list[Any]],
        *,
        publishing: Iterable[Grid],
        is_punctual: bool = True,
        has_hidden: bool = False,
        stepping: Iterable[Grid] = (),
    ) -> None:
        self.name = ""  # The participant's, once it is one.
        self.monitor: Monitor | None = None  # The user's own, called after each step.
        self._simulator = simulator
        self._context = simulator.get_mutable_context()
        self._outward = outward
        self._inward = inward
        self._subscribers = subscribers
        self._publishing = list(publishing)
        self._is_punctual = is_punctual
        self._looks_further = has_hidden and not self._context.num_continuous_states()
        self._stepping = list(stepping)
        self._send: Send | None = None  # None: it hasn't begun.
        self._now = 0
        self._due = -1  # The next time at which anything is published, unless that has passed.
        self._stop = EventStatus.ReachedTermination(simulator.get_system(), "")
        self._echoes = 0  # How many of the messages to be handled next are what arrives.
        self._monitored = False
        self._stops_early = False  # Whether the first step that ends at this nanosecond is the last.
        self._has_stopped = False
        # Drake's objects hold what they call where Python's garbage collector doesn't see it: no cycle would ever go.
        this = weakref.proxy(self)
        for lcm in outward:
            lcm.SubscribeAllChannels(lambda channel, data: this._published(channel, data))
        simulator.set_monitor(lambda context: this._after_step(context))

    # --- As a MessageSimulator ---

    def begin(self, now: int, send: Send) -> None:
        if now:
            self._context.SetTime(self._stop_at(now))
        elif self._context.get_time():
            raise UsageError(
                f"its simulator stands at {self._context.get_time()} seconds already, and the run begins at 0",
                participant=self.name,
                advice="leave the time of its context to the client",
            )
        self._send_published()  # By somebody who has initialized it before: that is done again, and now it counts.
        self._send, self._now = send, now
        self._run(self._simulator.Initialize)

    def due(self) -> int | None:
        if not self._is_punctual:
            return None
        if self._due <= self._now:
            self._due = min((grid.after(self._now) for grid in self._publishing), default=TIME_MAX)
        return self._due

    def advance_to(self, time: int) -> None:
        if time > self._now:
            self._now = time
            self._run(self._simulator.AdvanceTo, self._stop_at(time))

    def receive(self, messages: list[Message]) -> None:
        try:
            for lcm in self._inward:
                for message in messages:
                    lcm.Publish(message.topic, message.payload)
                self._echoes = len(messages) if lcm in self._outward else 0
                lcm.HandleSubscriptions(0)
            for last in {message.topic: message for message in messages}.values():  # On each channel, it alone counts.
                for subscriber in self._subscribers.get(last.topic, ()):
                    self._read(subscriber, last)
            self._send_published()  # By force, by somebody who listens.
        except (Exception, SystemExit) as error:
            self._blame(error)

    # --- Inside ---

    def _stop_at(self, time: int) -> float:
        """Return the float to stop at: the publishers' own, or that of the first thing that happens at this time."""
        due = [at for grid in self._publishing if (at := grid.at(time)) is not None]
        self._stops_early = not due
        if due:
            return max(due)
        known = min((at for grid in self._stepping if (at := grid.at(time)) is not None), default=time / SECOND)
        return furthest(known, time) if self._looks_further else known

    def _run(self, step: Callable[..., SimulatorStatus], *given: float) -> None:
        self._monitored = self._has_stopped = False
        try:
            status = step(*given)
        except (Exception, SystemExit) as error:
            self._blame(error)
        if not self._monitored:
            raise UsageError(
                "its simulator's monitor has been replaced, so nobody knows any more when it publishes",
                participant=self.name,
                at=self._time(),
                advice="call set_monitor of the client instead",
            )
        if not (status.succeeded() or self._has_stopped):
            raise SimulatorEnded(status.FormatMessage())

    def _blame(self, error: BaseException) -> NoReturn:
        """Say who it was, and when, of whatever was raised in the diagram."""
        if isinstance(error, WorldlineError) or is_normal_end(error):
            raise error
        # With SystemExit, Drake reports a failed assertion.
        gives_up = isinstance(error, SystemExit)
        problem = f"Drake has given up: {error}" if gives_up else f"its diagram raised {said_of(error)}"
        raise ModelError(problem, participant=self.name, at=self._time()) from error

    def _after_step(self, context: Context) -> Any:
        self._monitored = True
        status = None if self.monitor is None else self.monitor(context)
        if status is not None and not isinstance(status, EventStatus):
            raise UsageError(
                f"its monitor returned {shown(status)}",
                participant=self.name,
                at=self._time(),
                advice="return an EventStatus, or nothing",
            )
        self._send_published()
        if self._stops_early and not _ends(status) and nanoseconds(context.get_time()) == self._now:
            self._has_stopped = True
            return self._stop
        return status

    def _send_published(self) -> None:
        for lcm in self._outward:
            lcm.HandleSubscriptions(0)

    def _published(self, channel: str, data: bytes) -> None:
        if self._echoes:
            self._echoes -= 1  # It is one that arrives, on an object that serves both ways.
        elif self._send is not None:
            self._send(channel, data, self._time())

    def _read(self, subscriber: Any, message: Message) -> None:
        try:
            subscriber.ExecuteInitializationEvents(subscriber.GetMyMutableContextFromRoot(self._context))
        except (Exception, SystemExit) as error:  # From Python and from C++, respectively.
            raise PeerError(
                f"it can't read what {message.sender} has sent on {message.topic!r} at {format_time(message.sent)}: "
                f"{described(error)}",
                participant=self.name,
                at=message.arrival,
                advice="both ends of a channel use the same type",
            ) from error

    def _time(self) -> int:
        return nanoseconds(self._context.get_time())


def _ends(status: EventStatus | None) -> bool:
    """Whether a user's monitor wants the simulator to end, or has failed."""
    return status is not None and status.severity() not in _GOES_ON
