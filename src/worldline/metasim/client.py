"""The client: a Drake diagram in this process that takes part in a run.

It begins incomplete. While it is, it adds transport to a diagram under construction, or is the LCM object of a diagram
that exists. `complete` makes the simulator, which the client owns from then on; `run` runs it under the server's
authority until the run ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Unpack

from pydrake.lcm import DrakeLcm
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Diagram, DiagramBuilder, System
from pydrake.systems.lcm import LcmPublisherSystem, LcmSubscriberSystem

from worldline.federation.address import Address
from worldline.federation.participant.call import PATIENCE_S, Credentials
from worldline.federation.participant.client import connect
from worldline.federation.participant.declaration import Declared
from worldline.federation.participant.participant import Participant
from worldline.federation.server.server import Server
from worldline.launch.file.topics import is_lcm_type
from worldline.metasim.diagram import DiagramLcm, DiagramSimulator, EventTimes, Monitor
from worldline.metasim.driving import Seconds, as_nanoseconds, drive, nanoseconds
from worldline.metasim.server import MetasimServer
from worldline.model import UNBOUNDED, Buffer, UsageError, format_time
from worldline.model.errors import shown
from worldline.model.message import check_name
from worldline.model.time import SECOND

_NAMED = re.compile(r"LcmSubscriberSystem\((.+)\)")


class MetasimClient:
    """One diagram's way into a run.

    `address` is the server's, or the server itself if it is in this process, or a participant that takes part already:
    what an ``entry`` of a federation's file is called with. Without it, the environment that `worldline run` sets up
    counts. Other keywords are those of `worldline.connect`.
    """

    def __init__(
        self,
        address: str | Address | Server | MetasimServer | Participant | None = None,
        name: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        **credentials: Unpack[Credentials],
    ) -> None:
        self._participant = address if isinstance(address, Participant) else None
        self._address = None if isinstance(address, Participant) else address
        self._name = name
        self._patience_s = patience_s
        self._credentials = credentials
        # What its own systems publish and what they receive go separate ways: no diagram hears itself.
        self._outward = DrakeLcm("memq://")
        self._inward = DrakeLcm("memq://")
        self._lcm: DiagramLcm | None = None
        self._periods: dict[float, None] = {}  # Of its publishers, as far as they are known.
        self._is_punctual = True  # Whether that is all of them.
        self._transport: list[System] = []  # What it has added itself.
        self._published: dict[str, None] = {}
        self._types: dict[str, type[Any]] = {}
        self._subscribers: dict[str, list[Any]] = {}
        self._diagram: DiagramSimulator | None = None

    def __repr__(self) -> str:
        state = "incomplete" if self._diagram is None else "complete"
        return f"<MetasimClient {self._name or '(unnamed)'}, {state}>"

    # --- While it is incomplete ---

    @property
    def lcm(self) -> DrakeLcm:
        """An LCM object for a diagram that has LCM systems of its own: give them this one, and they take part.

        What is published on it is sent, and what arrives on channels that the diagram subscribes to is received. As on
        any LCM object, a diagram that subscribes to a channel that it publishes on also hears itself, at once.
        """
        if self._lcm is None:
            self._check_incomplete("its LCM object")
            self._lcm = DiagramLcm("memq://")
        return self._lcm

    def add_publisher(
        self,
        builder: DiagramBuilder,
        channel: str,
        lcm_type: type[Any],
        period: Seconds | None = None,
        *,
        use_cpp_serializer: bool = False,
    ) -> LcmPublisherSystem:
        """Add a system that publishes its input on a channel, once in a period, or after every step without one.

        With periods, others needn't wait for this client in between: from the periods of all publishers it follows when
        it sends next. In a diagram that has no continuous state, they are multiples of its smallest step.
        """
        self._check_addition(builder, channel, lcm_type)
        seconds = 0.0 if period is None else _seconds_of(period)
        publisher: LcmPublisherSystem = LcmPublisherSystem.Make(
            channel, lcm_type, self._outward, publish_period=seconds, use_cpp_serializer=use_cpp_serializer
        )
        self._transport.append(builder.AddSystem(publisher))
        if period is None:
            self._is_punctual = False
        else:
            self._periods[seconds] = None
        self._published[channel] = None
        return publisher

    def add_subscriber(
        self, builder: DiagramBuilder, channel: str, lcm_type: type[Any], *, use_cpp_serializer: bool = False
    ) -> LcmSubscriberSystem:
        """Add a system whose output is the last message that has arrived on a channel."""
        self._check_addition(builder, channel, lcm_type)
        if self._types.setdefault(channel, lcm_type) is not lcm_type:
            raise UsageError(
                f"channel {channel!r} is subscribed to as {self._types[channel].__name__} and as {lcm_type.__name__}"
            )
        subscriber: LcmSubscriberSystem = LcmSubscriberSystem.Make(
            channel, lcm_type, self._inward, use_cpp_serializer=use_cpp_serializer
        )
        self._transport.append(builder.AddSystem(subscriber))
        self._subscribers.setdefault(channel, []).append(subscriber)
        return subscriber

    def _check_addition(self, builder: DiagramBuilder, channel: str, lcm_type: type[Any]) -> None:
        self._check_incomplete("transport")
        if not isinstance(builder, DiagramBuilder):
            raise UsageError(f"{shown(builder)} isn't a DiagramBuilder", advice="give the one that builds the diagram")
        check_name(channel, "a channel")
        if builder.already_built():
            raise UsageError("the builder has built its diagram already", advice="add transport before Build()")
        if not is_lcm_type(lcm_type):
            raise UsageError(f"{shown(lcm_type)} isn't a type of messages", advice="give a class that lcm-gen has made")

    def _check_incomplete(self, what: str) -> None:
        if self._diagram is not None:
            raise UsageError(f"{what} can't be added any more: the client is complete", advice="add it before complete")

    # --- Completing it ---

    def complete(self, diagram: Diagram, *, period: Seconds | None = None) -> Simulator:
        """Make the simulator of a diagram, and own it from now on; nothing can be added to the client any more.

        Set initial conditions in its context; to have a monitor, call `set_monitor` of the client. For a diagram that
        uses `lcm`, `period` says that it publishes on it at multiples of this time only; without it that
        isn't known, and others wait for the client accordingly.
        """
        self._check_incomplete("a diagram")
        if not isinstance(diagram, Diagram):
            raise UsageError(f"complete takes a diagram, not {shown(diagram)}", advice="complete(builder.Build())")
        leaves = list(_leaves(diagram))
        self._check_transport(leaves)
        if self._lcm is not None:
            if period is None:
                self._is_punctual = False
            else:
                self._periods[_seconds_of(period)] = None
            self._find_subscribers(leaves)
        elif period is not None:
            raise UsageError("complete takes a period for `lcm` only, which isn't used")
        simulator = Simulator(diagram)
        event_times = EventTimes(leaves, self._periods if self._is_punctual else None)
        if not simulator.get_context().num_continuous_states():
            _check_periods(self._periods, list(event_times.steps))
        extra = () if self._lcm is None else (self._lcm,)
        self._diagram = DiagramSimulator(
            simulator, (self._outward, *extra), (self._inward, *extra), self._subscribers, event_times
        )
        return simulator

    def _check_transport(self, leaves: list[System]) -> None:
        """Refuse a diagram without what was added for it: messages would neither be sent nor received."""
        if not self._transport and self._lcm is None:
            raise UsageError("nothing connects its diagram with the run", advice="add a publisher or a subscriber")
        for added in self._transport:
            if added not in leaves:
                raise UsageError(
                    f"{added.get_name()} isn't in the diagram",
                    advice="complete the diagram that transport was added to",
                )

    def _find_subscribers(self, leaves: list[System]) -> None:
        """Find the diagram's own subscribers: Python doesn't see their channels, but they are named after them."""
        for leaf in leaves:
            if isinstance(leaf, LcmSubscriberSystem) and leaf not in self._transport:
                named = _NAMED.fullmatch(leaf.get_name())
                if named is None:
                    raise UsageError(
                        f"it isn't known which channel {leaf.get_name()!r} subscribes to",
                        advice="leave the name of an LcmSubscriberSystem as it is: its channel is in it",
                    )
                self._subscribers.setdefault(named[1], []).append(leaf)

    def set_monitor(self, monitor: Monitor | None) -> None:
        """Call a function of the context after each step, as a simulator's monitor, which is the client's own."""
        self._completed().monitor = monitor

    # --- Running it ---

    def run(self) -> None:
        """Run under the server's authority until the run ends."""
        completed = self._completed()
        if completed.name:
            raise UsageError("a client runs once", participant=completed.name, advice="make a new MetasimClient")
        with self._taking_part() as participant:
            completed.name = participant.name
            drive(participant, completed)

    def _taking_part(self) -> AbstractContextManager[Participant]:
        if self._participant is None:
            address = self._address.server if isinstance(self._address, MetasimServer) else self._address
            declared = self._credentials.copy()
            declared["subscribes"] = {**dict.fromkeys(self._subscribers, UNBOUNDED), **_buffers_of(declared)}
            if self._lcm is None:
                declared.setdefault("publishes", list(self._published))
            return connect(address, self._name, patience_s=self._patience_s, **declared)
        missing = [channel for channel in self._subscribers if channel not in self._participant.subscriptions]
        if missing and not self._is_punctual:
            raise UsageError(
                f"it subscribes to {', '.join(missing)}, which its declaration doesn't name",
                participant=self._participant.name,
                advice="name it under `subscribes`, or give all publishers a period",
            )
        for channel in missing:
            self._participant.subscribe(channel)
        return nullcontext(self._participant)

    def _completed(self) -> DiagramSimulator:
        if self._diagram is None:
            raise UsageError("the client is incomplete", advice="call complete(diagram) first")
        return self._diagram


def _buffers_of(declared: Declared) -> dict[str, Buffer | str]:
    """Return what a user subscribes to besides, or with buffers of its own."""
    given = declared.get("subscribes", ())
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, UNBOUNDED)


def _seconds_of(period: Seconds) -> float:
    """Return a period in seconds, exactly as it was given if that is a float: the diagram's events lie on it."""
    checked = as_nanoseconds(period, "a period")
    if not checked:
        raise UsageError("a period of 0 isn't possible", advice="leave it out to publish after every step")
    return float(period) if isinstance(period, float) else checked / SECOND


def _check_periods(periods: Iterable[float], steps: list[float]) -> None:
    """Refuse a period that the diagram's own steps don't meet: it would publish what is long past, now and then."""
    if not steps:
        return
    step = min(steps)
    for period in periods:
        nearest = max(round(period / step), 1) * step
        if nanoseconds(nearest) != nanoseconds(period):
            raise UsageError(
                f"a period of {format_time(nanoseconds(period))} isn't a multiple of the diagram's step, "
                f"{format_time(nanoseconds(step))}",
                advice=f"publish every {format_time(nanoseconds(nearest))}",
            )


def _leaves(system: System) -> Iterator[System]:
    if isinstance(system, Diagram):
        for part in system.GetSystems():
            yield from _leaves(part)
    else:
        yield system
