"""The server: a host on real sockets.

One thread, one selector: it reads what comes in, hands it to the host, and sends what the host has put out. It can be
run in the caller's thread (`serve`), in one of its own (`with Server(...) as server`), or by a participant that lives
in its thread and serves the others whenever it waits (`resident`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Self, TypedDict, TypeVar, Unpack

from worldline.federation.address import Address, parse_address
from worldline.federation.outcome import FederationOutcome, outcome_of
from worldline.federation.participant.connection import MonotonicClock
from worldline.federation.participant.declaration import Declaration, Declared, Plain, as_agreement
from worldline.federation.registry import enter
from worldline.federation.server.connection import ServerConnections, ServerTurns, SocketWatch, socket_watch
from worldline.federation.server.host import Host
from worldline.federation.server.limits import Limits, LossPolicy, check_policy
from worldline.federation.server.operating import OPERATORS_MAX, Milestones, OperatorDesk
from worldline.federation.server.resident import FAREWELL_S, ResidentParticipant
from worldline.federation.server.session import Session
from worldline.federation.sockets import READ, remember, server_context
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.lock import Phase, State
from worldline.model import (
    FOREVER,
    TIME_MAX,
    ConfigurationError,
    InternalError,
    Interrupted,
    LossError,
    Plan,
    UsageError,
    WorldlineError,
    as_time,
    format_time,
)
from worldline.model.time import TimeLike

T = TypeVar("T")

_TICK_S = 1.0
_PACE_S = 0.002
_LINGER_S = 2.0


class ServerOrders:
    """What other threads want done in the server's thread, the only one that may touch its state."""

    def __init__(self) -> None:
        self.served_by: int | None = None  # That thread; -1: it is about to start.
        self._orders: list[Callable[[], None]] = []
        self._alarm: tuple[socket.socket, socket.socket] | None = None  # Both ends of what wakes it.

    def open(self, sockets: SocketWatch) -> None:
        """Have the server's thread woken from now on."""
        self._alarm = ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
        sockets.register(ends[1], READ, self.obey)

    def order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        if self._alarm is not None:  # Otherwise it isn't served yet, and will be done first of all.
            with contextlib.suppress(BlockingIOError, OSError):  # Full: it is awake. Closed: there is no server.
                self._alarm[0].send(b"!")

    def ask(self, question: Callable[[], T]) -> T:
        """Evaluate something in the server's thread, and return it."""
        if self.served_by in (None, threading.get_ident()):
            return question()  # No other thread touches its state.
        asked: Future[T] = Future()

        def answer() -> None:
            try:
                asked.set_result(question())
            except BaseException as error:  # It is the asker's.
                asked.set_exception(error)

        self.order(answer)
        while True:
            try:
                return asked.result(_TICK_S)
            except FutureTimeout:
                if asked.done():  # It is the question that has raised this.
                    raise
                if self.served_by is None:  # The server has ended in between.
                    return question()

    def obey(self) -> None:
        """Do what was ordered, in the server's thread."""
        if self._alarm is not None:
            with contextlib.suppress(BlockingIOError):
                self._alarm[1].recv(4096)
        while self._orders:
            self._orders.pop(0)()

    def close(self) -> None:
        for end in self._alarm or ():
            end.close()


class TimeHold:
    """Where simulated time is held: by the server's owner, by an operator, and by the wall clock if there is a pace."""

    def __init__(self, host: Host, pace: float | None) -> None:
        self._host = host
        self.pace = pace
        self.wanted = self.paused_at = FOREVER  # Where its owner holds all participants, and where an operator does,
        self._held = FOREVER  # and the first of them.
        # Callers that wait for all to stand at a time. It is always this list: `take_many` looks at it meanwhile.
        self.resting: list[tuple[int, Future[None]]] = []
        self.due = 0.0  # When the barrier is to be moved again.
        self._begun: float | None = None  # When the clock of the pace began to run, and at which simulated time.
        self._begun_at = 0

    def hold_at(self, wanted: int) -> None:
        self.wanted = wanted
        self._held = held = min(wanted, self.paused_at)
        # With a pace, the wall clock raises the barrier.
        self._host.hold_at(held if self.pace is None else min(held, self._host.arbiter.barrier))

    def set_pace(self, pace: float | None) -> None:
        arbiter = self._host.arbiter
        self._begun_at, self._begun = min(arbiter.barrier, self._held), None
        if self._begun_at == FOREVER or not arbiter.rests():  # Some are on the way to there.
            self._begun_at = arbiter.floor()
        self.pace = pace
        self.due = 0.0
        self.hold_at(self.wanted)

    def keep_pace(self, now: float) -> None:
        """Move the barrier along with the wall clock, from the moment on at which all participants were there."""
        assert self.pace is not None
        self.due = now + _PACE_S
        if self._begun is None:
            if self._host.arbiter.phase is Phase.GATHERING:
                self._host.hold_at(0)
                return
            self._begun = now
        reached = min(self._begun_at + int((now - self._begun) * self.pace * 1e9), TIME_MAX)
        if reached >= self._held:  # Time stands still there, and goes on from there.
            reached = self._begun_at = self._held
            self._begun = now
        self._host.hold_at(min(reached + 1, self._held, TIME_MAX))

    def wake_resting(self) -> None:
        arbiter = self._host.arbiter
        if arbiter.rests():
            here = [(held, rested) for held, rested in self.resting if held <= arbiter.barrier]
            for each in here:
                self.resting.remove(each)
                each[1].set_result(None)


class ServerKeywords(TypedDict, total=False):
    """The keywords of a `Server`.

    `token` is one for all, or one for each participant by name, so that none can use another's; None there: that one
    needs none, but must be a process of the server's own user, as far as the system can tell. `operator_token` is what
    an operator has to know, who may pause and end the run; without one, the server makes it, and `Operator` finds it
    where only this user can. For ``tls://`` the server presents a `certificate`, with its `key`; with an `authority`,
    clients must present a certificate of that authority. `agreement` is what both ends must state identically, such as
    ``{"world": "ab12"}``: a participant that connects with another one, or none, is refused. `declared` is what
    participants declare, by name, as far as it is settled here: see `agreed`. `observer` is told everything that
    happens; in a thread of its own, the server tells it what is settled every `tell_every_s` (0.5), and sooner where
    much happens. `on_loss` says what becomes of the run when a participant is lost: "abort" ends it, "rejoin" waits for
    it to come back. With a `journal`, a file, the server may be lost as well: another one that is made with the same
    file goes on. `pace` is the maximum speed of simulated time relative to the wall clock (1.0: real time). `clock` is
    that wall clock, in seconds: all limits go by it.
    """

    federation: str
    token: str | Mapping[str, str | None] | None
    operator_token: str | None
    certificate: Path | str | None
    key: Path | str | None
    authority: Path | str | None
    agreement: Mapping[str, str] | None
    declared: Mapping[str, Plain] | None
    observer: Observer | None
    tell_every_s: float
    on_loss: LossPolicy
    journal: Path | str | None
    pace: float | None
    limits: Limits | None
    clock: Callable[[], float]


class Server:
    """Serves one run to participants that connect.

    It listens on loopback by default, and on any other interface only with a token. Port 0 picks a free port; `address`
    says which. `ServerKeywords` are its other keywords.
    """

    def __init__(
        self, plan: Plan, address: str | Address = "tcp://127.0.0.1:0", **options: Unpack[ServerKeywords]
    ) -> None:
        for keyword in options.keys() - ServerKeywords.__annotations__.keys():
            raise TypeError(f"Server() got an unexpected keyword argument {keyword!r}")
        token, certificate, authority = options.get("token"), options.get("certificate"), options.get("authority")
        self.address = check_listening(address, token, certificate, authority)
        check_tokens(plan, token, options.get("operator_token"))
        pace = options.get("pace")
        _check_pace(pace)
        tls = server_context(certificate, options.get("key"), authority) if certificate is not None else None
        self.operator_token = options.get("operator_token") or secrets.token_hex(16)
        # The name by which operators find the run; empty: they have to know its address.
        self.known_as = federation = options.get("federation", "")
        self._leave_registry: Callable[[], None] = lambda: None
        self.milestones = Milestones()
        rejoins, journal = check_policy(options.get("on_loss", "abort")) == "rejoin", options.get("journal")
        self.host = Host(
            plan,
            federation=federation,
            token=_as_keys(token),
            operator_token=self.operator_token.encode(),
            agreement=as_agreement(options.get("agreement")),
            declared=options.get("declared"),
            observer=options.get("observer"),
            limits=options.get("limits"),
            entropy=os.urandom,
        )
        if rejoins or journal is not None:
            from worldline.federation.server.rejoining import Rejoining

            self.host.rejoining = Rejoining(self.host, journal, rejoins=rejoins)
        self.host.owner.desk = self._open_desk
        self._clock = clock = options.get("clock", time.monotonic)
        read_in_c = MonotonicClock(clock)
        self._sockets = socket_watch()
        self._connections = ServerConnections(self.host, self._sockets, read_in_c, tls, asks_for_user=_is_open(token))
        self._hold = TimeHold(self.host, pace)
        self._orders = ServerOrders()
        self._thread: threading.Thread | None = None
        # What is told the status, and how often.
        self._watching: tuple[Watch | None, float] = None, options.get("tell_every_s", 0.5)
        self._turns = ServerTurns(self.host, self._sockets, read_in_c)
        self._ticks = self._watches = 0.0  # When each of these is due.
        self._absent_s = 0.0  # For how long its resident has computed, and it hasn't listened, since the last tick.
        self._resident: str | None = None
        self._closed = False
        remember(self)

    def __repr__(self) -> str:
        phase = "closed" if self._closed else self.host.arbiter.phase.value
        return f"<Server of {self.known_as or 'a run'} at {self.address}, {phase}>"

    # --- From outside, in any thread ---

    def open(self) -> Address:
        """Start listening; return the address to connect to, including the port that was picked."""
        if self._closed:
            raise UsageError("a server serves one run, and this one's is over", advice="make a new Server")
        if self._connections.listener is None:
            listener, self.address = self._listening()
            self._connections.listen(listener)
            self._orders.open(self._sockets)
            self._leave_registry = enter(self.known_as, str(self.address), self.operator_token)
        return self.address

    def _listening(self) -> tuple[socket.socket, Address]:
        """Listen. If any port will do, on that of the server before, if there was one: participants try it again."""
        wanted = self.address
        if wanted.kind == "unix" or wanted.port:
            return _listen(wanted)
        journal = self.host.journal
        if journal is not None and journal.address:
            with contextlib.suppress(UsageError):  # Another program may have the port by now.
                before = parse_address(journal.address)
                if (before.kind, before.place) == (wanted.kind, wanted.place):
                    return _listen(before)
        listener, address = _listen(wanted)
        if journal is not None:
            journal.listened(str(address))
        return listener, address

    def __enter__(self) -> Self:
        self._check_unserved()
        self.open()
        self._thread = threading.Thread(target=self._serve_apart, name="worldline server", daemon=True)
        self._orders.served_by = -1
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        assert self._thread is not None
        if error is None:
            self._thread.join(_LINGER_S)  # The last ones may just be leaving.
        if not self.host.over:
            cause = "its owner has gone on" if error is None else str(error) or type(error).__name__
            self.end(LossError(f"the server was closed: {cause}"))
        self._thread.join()

    def wait(self, timeout_s: float | None = None) -> FederationOutcome:
        """Wait for the end of the run, and return its outcome."""
        if self._thread is None:
            raise UsageError("the server doesn't run in a thread of its own", advice="use serve(), or `with`")
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise LossError(f"the run hasn't ended in {timeout_s} seconds: {self.ask(self.host.waiting)}")
        return self.outcome()

    def outcome(self) -> FederationOutcome:
        """Return the outcome of the run; if there is none, raise the reason."""
        host = self.host
        if host.failure is not None:
            raise host.failure
        if host.digest is None:
            raise UsageError("the run hasn't ended")
        return outcome_of(host.arbiter, host.digest)

    def end(self, error: WorldlineError) -> None:
        """Break off the run; all participants are told why."""
        self.order(lambda: self.host.end(error))

    def hold_at(self, until: TimeLike | None) -> None:
        """Let no participant pass this time until it is moved; None removes the barrier. The result stays the same."""
        held = FOREVER if until in (None, FOREVER) else as_time(until, "a barrier")
        self.order(lambda: self._hold.hold_at(held))

    @property
    def is_served(self) -> bool:
        """Whether it is served, in whatever thread."""
        return self._orders.served_by is not None

    def rest_at(self, until: TimeLike, *, within_s: float | None = None) -> bool:
        """Let all run up to a time, and wait until they stand there, or the run is over; whether that is so."""
        if self._orders.served_by == threading.get_ident():
            raise UsageError("the thread that serves can't wait for others to rest", advice="hold_at doesn't wait")
        held = as_time(until, "a barrier")
        rested: Future[None] = Future()
        deadline = None if within_s is None else time.monotonic() + within_s
        self.order(lambda: self._hold.hold_at(held))
        self.order(lambda: self._hold.resting.append((held, rested)))
        try:
            while not rested.done() and self.is_served and (deadline is None or time.monotonic() <= deadline):
                with contextlib.suppress(FutureTimeout):
                    rested.result(_TICK_S if within_s is None else min(_TICK_S, within_s))
            return rested.done() or self.host.over
        finally:
            if not rested.done():
                self.order(lambda: self.forget_resting(rested))

    def stop_at(self, at: TimeLike) -> None:
        """End the run at a time at which all rest."""
        end = as_time(at, "the end")
        self.ask(lambda: self.host.stop_at(end))

    def set_pace(self, pace: float | None) -> None:
        """Change the maximum speed of simulated time relative to the wall clock, from now on; None: no maximum."""
        _check_pace(pace)
        self.order(lambda: self._set_pace(pace))

    def _set_pace(self, pace: float | None) -> None:
        self._hold.set_pace(pace)
        self._turns.timer = 0.0

    def pair(self) -> socket.socket:
        """Return a connection for a participant in this process."""
        if self.host.over:
            raise LossError("the server has ended, and its run with it")
        ours, theirs = socket.socketpair()
        self.order(lambda: self._connections.take(ours))
        return theirs

    def ask(self, question: Callable[[], T]) -> T:
        """Evaluate something in the server's thread, such as ``server.host.waiting``, and return it.

        An exception in it is raised here; the run goes on.
        """
        return self._orders.ask(question)

    def order(self, order: Callable[[], None]) -> None:
        """Do something in the server's thread, the only one that may touch its state."""
        self._orders.order(order)

    # --- In the server's thread ---

    def serve(self, watch: Watch | None = None, *, watch_every_s: float = 0.5) -> FederationOutcome | None:
        """Serve until the run is over. `watch` is told the status now and then, even while nothing happens."""
        self._check_unserved()
        return self._serve(watch, watch_every_s)

    def resident(
        self,
        name: str,
        *,
        watch: Watch | None = None,
        watch_every_s: float = 0.5,
        farewell_s: float = FAREWELL_S,
        **declared: Unpack[Declared],
    ) -> ResidentParticipant:
        """Return a participant that lives in the caller's thread, and serves all others whenever it waits there.

        Use it in a `with` statement instead of serving: see `ResidentParticipant`. `watch` is as for `serve`,
        `farewell_s` is how long the others may go on when it has left, and the other keywords are what a `Program`
        declares.
        """
        if self._resident is not None:
            raise UsageError(
                f"a server has one resident, and this one's is {self._resident}",
                advice=f"let {name} connect to its address",
            )
        self._check_unserved()
        resident = ResidentParticipant(self, name, Declaration(**declared), watch, watch_every_s, farewell_s)
        self._resident = name
        return resident

    def begin(self, watch: Watch | None, watch_every_s: float) -> float:
        """Begin to serve in this thread, which alone may touch its state until `finish`; return the time."""
        self._orders.served_by = threading.get_ident()
        self._watching = watch, watch_every_s
        self._orders.obey()
        self._turns.send_all()
        # If another server had begun, the barrier in its journal is that of its clock or its operator, who are gone.
        if self._hold.pace is None or self.host.arbiter.phase is Phase.RUNNING:
            self._set_pace(self._hold.pace)
        self._turns.now = self._turns.timer = now = self._clock()
        self._ticks, self._watches = now + self._tick_s(), now + watch_every_s
        return now

    def turn(self, *, patient: bool = True) -> None:
        """Serve all connections once; if `patient`, sleep until there is something to do."""
        self._do_chores(self._turns.take(patient))

    def _do_chores(self, is_due: bool) -> None:
        """Do what there is to do besides, after one turn or several."""
        if self._hold.resting:
            self._hold.wake_resting()
        if is_due:
            self._keep_time(self._turns.now)

    # --- For an operator's desk ---

    def clock(self) -> float:
        """Return the time by the server's own clock, in seconds."""
        return self._clock()

    def remarks(self) -> list[str]:
        """Say who is in the way, and whether an operator is."""
        held = [] if self.paused_at == FOREVER else [f"an operator holds it at {format_time(self.paused_at)}"]
        return held + self._connections.remarks() + self.host.remarks()

    @property
    def paused_at(self) -> int:
        """Where an operator holds all participants; FOREVER: nowhere."""
        return self._hold.paused_at

    def pause_at(self, until: int) -> None:
        """Let no participant pass this time as long as the operator wants; FOREVER ends that."""
        self._hold.paused_at = until
        self._hold.hold_at(self._hold.wanted)

    def tell_resting(self, held: int, rested: Future[None]) -> None:
        """Say so when all stand at this time, or the run is over. In the server's thread."""
        rested.add_done_callback(lambda _: self.wake_within(0))  # What is said then is sent.
        self._hold.resting.append((held, rested))

    def forget_resting(self, rested: Future[None]) -> None:
        """Say nothing of it any more. In the server's thread."""
        self._hold.resting[:] = [each for each in self._hold.resting if each[1] is not rested]

    def _open_desk(self, session: Session) -> OperatorDesk | None:
        operators = sum(isinstance(each, OperatorDesk) for each in self.host._trunks)
        return OperatorDesk(self, session) if operators < OPERATORS_MAX else None

    # --- The server's turns ---

    def wake_within(self, seconds: float) -> None:
        """Have the next turn end by then, if only to do nothing."""
        self._turns.timer = min(self._turns.timer, self._turns.now + seconds)

    def come_back(self) -> None:
        """Note that none was served since the last turn: its resident has computed. That isn't silence (H7)."""
        now = self._clock()
        self._absent_s += now - self._turns.now
        self._turns.now = now

    def hear(self, session: Session, data: bytes) -> None:
        """Take what a participant says that lives in this thread, and send what follows from it."""
        self.host.receive(session, data, self._turns.now)
        self._turns.send_all()

    def serve_on(self, resident: str, within_s: float) -> None:
        """Serve the others when the resident has left, until the run is over; raise why it hasn't ended well."""
        host = self.host
        self.come_back()
        deadline = self._turns.now + within_s
        while not host.over:
            self.wake_within(deadline - self._turns.now)
            self.turn()
            if self._turns.now > deadline:
                states = host.arbiter.participants()
                there = [name for name, (state, _) in states.items() if state is not State.LEFT]
                host.end(
                    LossError(
                        f"{', '.join(there)} didn't leave within {within_s:g} seconds of {resident}",
                        advice="resident(..., farewell_s=...) sets how long to wait",
                    )
                )
        host.arbiter.tell_passed()
        self.outcome()

    def break_off(self, error: BaseException) -> None:
        """End the run because of what this thread has met: a full disk, an impossible order, a bug. All are told."""
        self.host.end(_as_ours(error))
        with contextlib.suppress(WorldlineError):  # The observer may be what has failed.
            self.host.arbiter.tell_passed()
        self._turns.send_all()

    def finish(self) -> None:
        """Serve no longer, and close."""
        try:
            self.close()
            if not self.host.owner.keeps_journal:
                self.host.let_go()
        finally:
            self._orders.served_by = None
            for _, rested in self._hold.resting:
                rested.set_result(None)

    def _serve(self, watch: Watch | None, watch_every_s: float) -> FederationOutcome | None:
        self.open()
        arbiter, over = self.host.arbiter, Phase.OVER
        try:
            self.begin(watch, watch_every_s)
            if self.host.digest is not None:
                self._linger()
            while arbiter.phase is not over:
                self._do_chores(self._turns.take_many(self._hold.resting))
            arbiter.tell_passed()
        except BaseException as error:
            self.break_off(error)
            raise
        finally:
            self.finish()
        return None if self.host.failure is not None else self.outcome()

    def _linger(self) -> None:
        """Tell those who come back after the end of the run that it is over: its journal has told that already."""
        deadline = self._turns.now + _LINGER_S
        while self._turns.now < deadline:
            self.wake_within(deadline - self._turns.now)
            self.turn()

    def _check_unserved(self) -> None:
        if self._resident is not None:
            raise UsageError(
                f"it is for its resident, {self._resident}, to serve this server, and for no other",
                advice="let others connect to its address",
            )
        if self.is_served:
            raise UsageError("the server is served already, in another thread or further up in this one")

    def _keep_time(self, now: float) -> None:
        """Do what is due by the clock."""
        hold, (watch, watch_every_s) = self._hold, self._watching
        if hold.pace is not None and now >= hold.due:
            hold.keep_pace(now)
        if now >= self._ticks:
            self._tick(now)
            self._ticks = now + self._tick_s()
        arbiter = self.host.arbiter
        self.milestones.note(arbiter.events, now, arbiter.floor())
        if now >= self._watches:
            arbiter.tell_passed()
            if watch is not None:
                watch(self.host.status())
            self._watches = self._clock() + watch_every_s
        self._turns.timer = min(self._ticks, self._watches, hold.due if hold.pace is not None else self._ticks)
        self._turns.send_all()

    def _tick_s(self) -> float:
        return min(_TICK_S, self.host.limits.heartbeat_s / 2)

    def _tick(self, now: float) -> None:
        self._connections.look(now)
        self.host.tick(now, self._absent_s)
        self._absent_s = 0.0
        self._connections.listen_again()
        self._connections.expire(now, _LINGER_S)

    def _serve_apart(self) -> None:
        with contextlib.suppress(Exception):  # `wait` raises it.
            self._serve(*self._watching)

    def disown(self) -> None:
        """Let go of all sockets in a forked process: not a word, and nothing that keeps them open."""
        self._closed, self._orders.served_by = True, None
        self._connections.disown()
        self._orders.close()
        self._sockets.close()  # This process's copy of it.

    def close(self) -> None:
        """Send what is still to be sent, as far as peers accept it in time, and close everything."""
        if self._closed:
            return
        self._closed = True
        if self._connections.stop_listening() and self.address.kind == "unix":
            Path(self.address.place).unlink(missing_ok=True)
        self._leave_registry()  # After its socket has, which may be in the same folder.
        deadline = self._clock() + _LINGER_S
        self._turns.send_all()
        self._connections.finish()
        while self._connections.are_awaited() and self._clock() < deadline:
            for act in self._sockets.ready(_TICK_S / 10):
                act()
        self._connections.close("the run is over")
        self._sockets.close()
        self._orders.close()


def _check_pace(pace: float | None) -> None:
    if pace is not None and not 0 < pace < 1e9:
        raise ConfigurationError(f"a pace of {pace} isn't possible", advice="1.0 is real time")


def _as_ours(error: BaseException) -> WorldlineError:
    """Return what has ended the server as an error that participants can be told."""
    if isinstance(error, WorldlineError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("the server was interrupted")
    return InternalError(f"{type(error).__name__}: {error}")


def check_listening(
    address: str | Address,
    token: str | Mapping[str, str | None] | None,
    certificate: Path | str | None,
    authority: Path | str | None = None,
) -> Address:
    """Return where to listen, if that is safe."""
    where = parse_address(address)
    if _is_open(token) and not where.is_local:
        raise ConfigurationError(
            f"{where} can be reached from other machines, and there is no token",
            advice="give a token, or listen on 127.0.0.1",
        )
    if (where.kind == "tls") != (certificate is not None):
        raise ConfigurationError("a certificate goes with an address tls://...", advice="give both, or neither of them")
    if authority is not None and certificate is None:
        raise ConfigurationError("an authority for clients goes with tls://... and a certificate")
    return where


def _is_open(token: str | Mapping[str, str | None] | None) -> bool:
    """Whether there are participants that are admitted without a token."""
    return not token or (isinstance(token, Mapping) and None in token.values())


def _as_keys(token: str | Mapping[str, str | None] | None) -> bytes | dict[str, bytes]:
    if isinstance(token, Mapping):
        return {name: (each or "").encode() for name, each in token.items()}
    return (token or "").encode()


def check_tokens(plan: Plan, token: str | Mapping[str, str | None] | None, operator_token: str | None = None) -> None:
    """Refuse tokens by name that leave a participant out or are for none, and an operator's that isn't its own."""
    if operator_token and operator_token in (token.values() if isinstance(token, Mapping) else (token,)):
        raise ConfigurationError("the operator's token is also a participant's", advice="give the operator another one")
    if not isinstance(token, Mapping):
        return
    names = (*plan.roster, *plan.guests)
    without = [name for name in names if token.get(name, "") == ""]
    if without:
        raise ConfigurationError(f"there is no token for {', '.join(without)}", advice="every participant needs one")
    if strangers := [name for name in token if name not in names]:
        raise ConfigurationError(f"there is a token for {', '.join(strangers)}, who doesn't take part")


def _listen(address: Address) -> tuple[socket.socket, Address]:
    family = socket.AF_UNIX if address.kind == "unix" else socket.AF_INET6 if ":" in address.place else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if address.kind == "unix":
            _clear(Path(address.place))
            listener.bind(address.place)
            Path(address.place).chmod(
                0o600
            )  # A process that may use it may take part; it can't be used before `listen`.
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address.place, address.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        other = "path" if address.kind == "unix" else "port, or 0 for any"
        advice = f"choose another {other}" if error.errno == errno.EADDRINUSE else None
        raise UsageError(f"can't listen on {address}: {error.strerror or error}", advice=advice) from error
    listener.setblocking(False)
    if address.kind == "unix":
        return listener, Address("unix", str(Path(address.place).absolute()))
    return listener, Address(address.kind, address.place, listener.getsockname()[1])


def _clear(path: Path) -> None:
    """Remove the socket that a server which is gone has left behind."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
