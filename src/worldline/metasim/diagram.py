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
- A stop between two steps of its own shows (see `driving`). It stops where something arrives, where it sends, and, if
  nobody knows when that is, at times of its own grid as far as the grid is known.
- Events lie at float multiples of their periods: see `Grid`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydrake.lcm import DrakeLcm
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context

from worldline.metasim.driving import Send
from worldline.metasim.seconds import Grid, nanoseconds
from worldline.model import TIME_MAX, Message, ModelError
from worldline.model.time import SECOND

Monitor = Callable[[Context], Any]


class DiagramSimulator:
    """A diagram with its simulator.

    `outward` takes what the diagram publishes, `inward` gives it what arrives; `subscribers` are the systems that
    listen to a channel. `periods` are those of all publishers, or None if some publish at times that nobody knows.
    `steps` are other periods at which something happens in the diagram, as far as they are known.
    """

    def __init__(
        self,
        simulator: Simulator,
        outward: Sequence[DrakeLcm],
        inward: Sequence[DrakeLcm],
        subscribers: dict[str, list[Any]],
        *,
        periods: Iterable[float] | None,
        steps: Iterable[float] = (),
    ) -> None:
        self.simulator = simulator
        self.monitor: Monitor | None = None  # The user's own, called after each step.
        self._context = simulator.get_mutable_context()
        self._outward = outward
        self._inward = inward
        self._subscribers = subscribers
        self._publishing = None if periods is None else [Grid(period) for period in sorted(set(periods))]
        self._grids = [Grid(step) for step in sorted(set(steps))]
        self._send: Send | None = None
        self._receiving = False
        self._now = 0
        self._sent_at = -1.0  # The float time of the last message sent.
        # Drake's objects hold what they call where Python's garbage collector doesn't see it: a cycle would stay forever.
        this = weakref.proxy(self)
        for lcm in outward:
            lcm.SubscribeAllChannels(lambda channel, data: this._published(channel, data))
        simulator.set_monitor(lambda context: this._after_step(context))

    # --- As a MessageSimulator ---

    def begin(self, now: int, send: Send) -> None:
        self._send, self._now = send, now
        if now:
            self._context.SetTime(now / SECOND)
        self._run(self.simulator.Initialize)

    def due(self) -> int | None:
        if self._publishing is None:
            return None
        return min((grid.after(self._now) for grid in self._publishing), default=TIME_MAX)

    def advance_to(self, time: int) -> None:
        if time > self._now:
            self._now = time
            self._run(lambda: self.simulator.AdvanceTo(self._stop_at(time)))

    def receive(self, messages: list[Message]) -> None:
        self._receiving = True
        for lcm in self._inward:
            for message in messages:
                lcm.Publish(message.topic, message.payload)
            lcm.HandleSubscriptions(0)
        self._receiving = False
        for channel in dict.fromkeys(message.topic for message in messages):
            for subscriber in self._subscribers.get(channel, ()):
                subscriber.ExecuteInitializationEvents(subscriber.GetMyMutableContextFromRoot(self._context))

    # --- Inside ---

    def _stop_at(self, time: int) -> float:
        """Return the float to stop at: the publishers' own, or that of the first thing that happens at this time."""
        due = [at for grid in self._publishing or () if (at := grid.at(time)) is not None]
        if due:
            return max(due)
        return min((at for grid in self._grids if (at := grid.at(time)) is not None), default=time / SECOND)

    def _send_published(self) -> None:
        for lcm in self._outward:
            lcm.HandleSubscriptions(0)

    def _published(self, channel: str, data: bytes) -> None:
        if self._receiving:
            return  # It is one that arrives, on an object that serves both ways.
        assert self._send is not None
        seconds = self._context.get_time()
        at = max(nanoseconds(seconds), 0)
        if seconds != self._sent_at and at == nanoseconds(self._sent_at):
            raise ModelError(
                f"it publishes at {self._sent_at!r} and {seconds!r} seconds, which are the same nanosecond",
                at=at,
            )
        self._sent_at = seconds
        self._send(channel, data, at)

    def _after_step(self, context: Context) -> Any:
        self._send_published()
        if self.monitor is not None:
            return self.monitor(context)
        return None

    def _run(self, step: Callable[[], object]) -> None:
        try:
            step()
            self._send_published()  # By force, since the last step.
        except SystemExit as error:  # So Drake reports a failed assertion.
            raise ModelError(f"Drake has given up: {error}", at=nanoseconds(self._context.get_time())) from error
