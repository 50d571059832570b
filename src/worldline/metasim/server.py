"""The server: looks like a simulator, and has none. It is in charge of the time of all its clients' simulators.

It is incomplete while clients connect. `initialize` waits until all are there, and have said what they say at time 0;
after that no client may connect. `advance_to` lets all run up to a time and returns when all stand there.

A time at which it stops is a barrier in the run, and changes nothing of what happens: ``advance_to(1.0)`` and then
``advance_to(2.0)`` is the same history as ``advance_to(2.0)``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any, NoReturn, Self, TypedDict, Unpack

from worldline.federation.address import Address
from worldline.federation.outcome import FederationOutcome
from worldline.federation.server.limits import Limits
from worldline.federation.server.server import Server
from worldline.history.guarding import check_observer
from worldline.history.observer import LOG, MEASURE, Observer
from worldline.history.telling import SeveralObservers
from worldline.launch.file.topics import LCM, lcm_topic
from worldline.metasim.driving import Seconds, as_nanoseconds
from worldline.metasim.public import PublicLcm
from worldline.model import ConfigurationError, LossError, Network, Plan, UsageError, format_time, link, plan
from worldline.model.errors import shown
from worldline.model.links import Link, Rule
from worldline.model.time import SECOND
from worldline.recording import Recorder, RunRecording, Shelf
from worldline.recording.output import RecordingTarget
from worldline.recording.writer import Schema

# What looks on while a metasimulator runs: a recording, the public LCM, and an observer of the user's own.
#
# All that can be refused is refused before the run. The recording begins when all clients are there: their names are
# part of it, and may not be known before.


class Watching(TypedDict, total=False):
    """How a run is watched: see `MetasimServer`."""

    observer: Observer | None
    record: Path | str | None
    types: Mapping[str, type[Any]] | None
    public: str | Iterable[str]
    serve_lcm: str | None


class Onlookers(SeveralObservers):
    """Tells all of them everything. `plan` is asked for when the run begins."""

    def __init__(
        self,
        plan: Callable[[], Plan],
        *,
        observer: Observer | None = None,
        record: Path | str | None = None,
        types: Mapping[str, type[Any]] | None = None,
        public: str | Iterable[str] = (),
        serve_lcm: str | None = None,
    ) -> None:
        self._plan = plan
        described = {channel: lcm_topic(kind) for channel, kind in (types or {}).items()}
        self._schemas = {
            channel: Schema(topic.schema_name, topic.schema_encoding, topic.schema)
            for channel, topic in described.items()
        }
        self._recording = None if record is None else RunRecording(Shelf(record), self._recorder)
        self._begun = False
        self._closed = False
        self.public = PublicLcm(public, serve=serve_lcm) if public or serve_lcm is not None else None
        if observer is not None:
            check_observer(observer)
        super().__init__(each for each in (observer, self.public) if each is not None)

    def open(self) -> None:
        """Open what can be opened before the run."""
        if self.public is not None:
            self.public.open()

    def _recorder(self, target: RecordingTarget) -> Recorder:
        return Recorder(
            target,
            self._plan(),
            encoding=LCM,
            encodings={LOG: "json", MEASURE: "json"},
            schemas=self._schemas,
            overwrite=True,
        )

    def began(self, who: str, at: int) -> None:
        if self._recording is not None and not self._begun:
            self._observers = (self._recording.__enter__().observer, *self._observers)
            self._begun = True
        super().began(who, at)

    def close(self, outcome: FederationOutcome | None, error: BaseException | None = None) -> None:
        """Finish, once, with what has come of the run, or with why nothing has."""
        if self._closed:
            return
        self._closed = True
        try:
            if self.public is not None:
                self.public.close(None if outcome is None else outcome.now)
        finally:
            if self._recording is not None and self._begun:
                if outcome is not None:
                    self._recording.conclude(outcome)
                self._recording.__exit__(None if error is None else type(error), error, None)


_LOOK_S = 0.1
_SILENCE_S = 10.0  # After that, those who don't connect are named.
_TELL_EVERY_S = 0.5
_SHOW_EVERY_S = 0.02  # Fifty pictures a second.

Monitor = Callable[[float], object]
"""Is told a time in seconds at which all clients stand; returns something true to stop there."""


class MetasimServer:
    """One run of several simulators as if it were one.

    `clients` are the names of those who take part, or how many they are. `delay` is how long a message takes from any
    client to any other; it may be a link with more to it than a delay. `links` has the same for a sender and a
    receiver, by a pair of names, either of which may be None for all. Where clients connect is `address`, in
    which a port of 0 picks a free one.

    The run is recorded in the file `record`, which says of channels in `types` of which LCM type their messages are.
    `public` is where all that is sent and delivered appears on an LCM for all, and `serve_lcm` where the server
    is a broker for it: see `PublicLcm`. `token`, `certificate`, `key`, `observer` and `limits` are as for `Server`.
    """

    def __init__(
        self,
        clients: int | Iterable[str],
        delay: Seconds | Link,
        *,
        links: Mapping[tuple[str | None, str | None], Seconds | Link] | None = None,
        seed: int = 0,
        address: str | Address = "tcp://127.0.0.1:0",
        token: str | Mapping[str, str] | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        limits: Limits | None = None,
        **watching: Unpack[Watching],
    ) -> None:
        if isinstance(clients, str) or not isinstance(clients, int | Iterable):
            raise UsageError(
                f"{shown(clients)} is neither a list of names nor a count", advice='write ["plant", "controller"] or 2'
            )
        vacancies = clients if isinstance(clients, int) else 0
        network = Network(
            default=_as_link(delay, "the delay"),
            rules=tuple(_as_rule(pair, each) for pair, each in (links or {}).items()),
        )
        names = () if isinstance(clients, int) else tuple(clients)
        planned = plan(names, vacancies=vacancies, network=network, seed=seed)
        self._onlookers = Onlookers(lambda: self.server.host.arbiter.plan, **watching)
        if self._onlookers.public is not None:
            self._onlookers.public.check(dict.fromkeys(names, ()), {})
        self.server = Server(
            planned,
            address,
            token=token,
            certificate=certificate,
            key=key,
            observer=self._onlookers,
            tell_every_s=_SHOW_EVERY_S if self._onlookers.public is not None else _TELL_EVERY_S,
            limits=limits,
        )
        self.server.known_as = "metasim"
        self.outcome: FederationOutcome | None = None  # Once it has finished.
        self._reached: int | None = None  # Where all stood last; None: it isn't initialized.
        self._allowed = 0  # How far they may have gone: more than that if `advance_to` was interrupted.
        self._rate = 0.0
        self._began = 0.0
        self._monitor: Monitor | None = None
        self._monitor_every = 0

    def __repr__(self) -> str:
        state = "over" if self.outcome is not None else "incomplete" if self._reached is None else "running"
        return f"<MetasimServer at {self.address}, {state}, at {format_time(self._reached or 0)}>"

    # --- Its life ---

    def open(self) -> Address:
        """Let clients connect from now on; return where to."""
        self._check_not_over()
        if not self.server.is_served and not self.server.host.over:
            try:
                self._onlookers.open()
                self.server.hold_at(0)
                self.server.__enter__()
            except BaseException as error:
                self._onlookers.close(None, error)
                raise
        return self.server.address

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if error is None:
            self.finish()
        else:
            self._break_off(error)

    @property
    def address(self) -> Address:
        """Where clients connect."""
        return self.server.address

    @property
    def public(self) -> PublicLcm | None:
        """The public LCM, if there is one: its `url` if it is a broker, and what it has lost."""
        return self._onlookers.public

    def missing(self) -> list[str]:
        """Return the names of clients that aren't there yet."""
        return self.server.ask(self.server.host.missing)

    def why(self) -> list[str]:
        """Say of all clients that wait what for, and what keeps them waiting: a line each, in the order of names.

        Times are those that clients have told last: they don't tell each step on the way.
        """
        return [str(why) for why in self.server.ask(self.server.host.arbiter.why)]

    # --- As a simulator ---

    def initialize(self, patience_s: float | None = None) -> None:
        """Wait until all clients are there, and have said what they say at time 0. After that none may connect.

        Those who haven't come when the patience is over are named in an error, and the run ends. Without a patience,
        they are named on stderr after a while.
        """
        if self._reached is not None:
            raise UsageError("it is initialized already")
        self.open()
        limit_s = _SILENCE_S if patience_s is None else patience_s
        deadline = time.monotonic() + limit_s
        while not self.server.rest_at(0, within_s=_LOOK_S):
            self._raise_failure()
            if time.monotonic() > deadline and (missing := self.missing()):
                problem = f"{', '.join(missing)} didn't connect within {limit_s:g} seconds"
                if patience_s is not None:
                    self._give_up(LossError(problem))
                print(f"worldline: {problem} to {self.address}; still waiting", file=sys.stderr)
                deadline = inf
        self._raise_failure()
        self._check_public_names()
        self._reached = 0
        self._began = time.monotonic()

    def advance_to(self, boundary: Seconds, patience_s: float | None = None) -> None:
        """Let all clients run up to a time, and return when all stand there.

        As in Drake, what happens at that very time is half done then: what is published at it has been, and what
        arrives at it comes next. No simulator stops there for that: each has done all that it does up to then, and
        waits. One that doesn't know when it sends runs from stop to stop of its own, so it may still be before that
        time: by less than a message takes to reach it, or than 100 ms if no other can send it anything.

        If all clients leave before that time, the run is over: it returns, and `outcome` is there. If it is
        interrupted, clients go on for a moment, as far as they have been allowed to; it can advance again from there,
        or finish there.

        With a patience, it is an error if clients don't connect in that time, or if for that time none gets any
        farther; the run ends then.
        """
        target = as_nanoseconds(boundary, "a time to advance to")
        self._check_not_over()
        if self._reached is None:
            self.initialize(patience_s)
        assert self._reached is not None
        if target < self._allowed:
            raise UsageError(f"it can't go back to {format_time(target)} from {format_time(self._allowed)}")
        every = self._monitor_every
        while self._reached < target:
            stop = target if not every else min(target, (self._allowed // every + 1) * every)
            self._rest_at(stop, patience_s)
            self._raise_failure()
            if self.server.host.over:
                self._reached = self._allowed = self.finish().now
                return
            self._reached = stop
            if self.public is not None:
                self.server.ask(self.server.host.arbiter.tell_passed)
            if self._monitor is not None and (not every or not stop % every) and self._monitor(stop / SECOND):
                return

    def get_time(self) -> float:
        """Return the time at which all stood last, in seconds; after an interruption, how far all are."""
        if self._reached is not None and self._reached < self._allowed:
            self._reached = max(self._reached, min(self._allowed, self.server.ask(self.server.host.arbiter.floor)))
        return (self._reached or 0) / SECOND

    def set_monitor(self, monitor: Monitor | None, period: Seconds | None = None) -> None:
        """Have a function called with the time once in a period, or without one at the end of each `advance_to`.

        All clients stand at that time then. If it returns something true, `advance_to` returns there.
        """
        every = 0 if period is None else as_nanoseconds(period, "the monitor's period")
        if period is not None and not every:
            raise UsageError("a monitor's period of 0 isn't possible", advice="leave it out, or give a longer one")
        self._monitor, self._monitor_every = monitor, every

    def set_target_realtime_rate(self, rate: float) -> None:
        """Let simulated time pass at most this many times as fast as the wall clock; 0, the default, sets no limit."""
        self.server.set_pace(rate or None)
        self._rate = rate

    def get_target_realtime_rate(self) -> float:
        return self._rate

    def get_actual_realtime_rate(self) -> float:
        """Return how fast simulated time has passed since `initialize`, relative to the wall clock."""
        return self.get_time() / (time.monotonic() - self._began) if self._reached is not None else 0.0

    def reset(self) -> None:
        """Refuse: a simulator can be taken back to its start, but not those of others."""
        raise UsageError(
            "a metasimulator can't be reset: its clients own their simulators, and have sent and received already",
            advice="make a new MetasimServer, and let the clients connect to it",
        )

    def finish(self) -> FederationOutcome:
        """End the run where all clients stand, for all of them, and return what came of it."""
        if self.outcome is not None:
            return self.outcome
        try:
            self._raise_failure()
            if not self.server.host.over:
                if self._reached is None:
                    self.server.end(LossError("the server was closed before the run began"))
                else:
                    self.server.stop_at(self._allowed)
                    self.server.hold_at(None)
            outcome = self.server.wait()
        except BaseException as error:
            self._break_off(error)
            raise
        self._onlookers.close(outcome)
        self.outcome = outcome
        return outcome

    def _rest_at(self, stop: int, patience_s: float | None) -> None:
        """Let all run up to a time, or, if that is interrupted, not much farther than they are."""
        self._allowed = stop
        try:
            if patience_s is None:
                self.server.rest_at(stop)
            else:
                self._rest_impatiently(stop, patience_s)
        except BaseException:
            self._allowed = self.server.ask(self._hold_here)
            raise

    def _rest_impatiently(self, stop: int, patience_s: float) -> None:
        """Do as `rest_at`, but end the run if none gets any farther in that time."""
        last: list[tuple[int, int]] = []
        deadline = 0.0
        while not self.server.rest_at(stop, within_s=min(_LOOK_S, patience_s)):
            if (reached := self.server.ask(self._progress)) != last:
                last, deadline = reached, time.monotonic() + patience_s
            elif time.monotonic() > deadline:
                waits = self.why()
                advice = f"they wait: {'; '.join(waits)}" if waits else ""
                self._give_up(LossError(f"no client has got any farther for {patience_s:g} seconds", advice=advice))

    def _progress(self) -> list[tuple[int, int]]:
        return [(member.now, member.granted) for member in self.server.host.arbiter.members.values()]

    def _give_up(self, error: LossError) -> NoReturn:
        self.server.end(error)
        raise error

    def _hold_here(self) -> int:
        """In the server's thread: let no client go farther than is allowed already; return how far that is."""
        here = max(self._reached or 0, self.server.host.arbiter.farthest())
        self.server.hold_at(here)
        return here

    def _break_off(self, error: BaseException) -> None:
        """End what is still going on, because of an error."""
        if self.server.is_served:
            self.server.__exit__(type(error), error, None)
        self._onlookers.close(None, error)

    def _check_public_names(self) -> None:
        """Refuse channels whose names, with those who use them, LCM has no room for; none has gone anywhere yet."""
        if self.public is None:
            return
        members = self.server.ask(lambda: list(self.server.host.arbiter.members.values()))
        try:
            self.public.check(
                {member.name: tuple(member.publishes or ()) for member in members},
                {member.name: tuple(member.subscriptions) for member in members},
            )
        except ConfigurationError as error:
            self.server.end(error)
            raise

    def _check_not_over(self) -> None:
        self._raise_failure()
        if self.outcome is not None:
            raise UsageError("the run is over", advice="make a new MetasimServer")

    def _raise_failure(self) -> None:
        failure = self.server.host.failure
        if failure is not None:
            raise failure


def _as_rule(pair: tuple[str | None, str | None], delay: Seconds | Link) -> Rule:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ConfigurationError(
            f"{shown(pair)} isn't a sender and a receiver", advice='write links={("plant", "controller"): 0.01}'
        )
    sender, receiver = pair
    return Rule(link=_as_link(delay, f"the delay of {sender} → {receiver}"), sender=sender, receiver=receiver)


def _as_link(delay: Seconds | Link, what: str) -> Link:
    """Return a link with a delay that is at least 1 ns: without one, none could ever go first."""
    if isinstance(delay, Link):
        return delay
    nanoseconds = as_nanoseconds(delay, what) if not isinstance(delay, str) else delay
    if not nanoseconds:
        raise ConfigurationError(
            f"{what} of 0 isn't possible", advice="simulators can take turns only if messages take time"
        )
    return link(nanoseconds)
