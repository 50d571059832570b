# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""The core of one worker: its agents' bodies, the lanes between them, and what happens next.

It lets every agent run until it would pass the light cone of another that may still send to it.

Theory of operation
-------------------
There is no queue of all events. An agent is a body on a straight `Trajectory`; time on it is `tau`, the local time
since the trajectory's start. What comes to it comes over lanes, each a queue of lambdas in the order of emission.
The body looks at the front of each lane:

- a lambda is due where the trajectory meets its field;
- an empty lane is a *block* where the trajectory meets the field that its source would emit where it stands now.

If the earliest of these is a lambda, it is executed; if it is a block, the body goes there, says so by publishing its
position, and frees the processor until the source has published a new position of its own. Dues are kept from
event to event as long as the trajectory stays: they are measured from its start, which only a change of velocity or a
jump moves. So they are numbers that depend on what was sent alone, not on how often they were looked at.

A lane's `due` is exact if it belongs to its front lambda, and otherwise a bound that nothing on it can come before. It
is made better only when it is the least.

Invariants
----------
S1. A body executes at tau only if every other lane's due is later, or exact and equal. So all that can happen at tau is
    known, and who is first of those at the same tau is drawn by a key that only depends on the seed, the lane and the
    number on it.
S2. A block is earlier than the due of anything that its source sends from then on, by more than rounding can amount
    to (`_MARGIN`). A published position only bounds; it never enters a result.
S3. A body that blocks, blocks on one in its past. So among all that are blocked there is one that isn't, as long as
    a lambda takes any time. If none is left, floats can't tell the light cones apart, which is an error.
S4. What is not causal in the simulation is never visible in it: that a lane is given up, that a target is gone. An
    agent learns of a death by a lambda on a lane of its own (`is_news`), which blocks like others.

Agents that are made during a run can be without end. So of one that has died no more is kept than its part in the
digest, and where it died: a *grave*. Its body can still be asked for by name: it is made again, dead, and is the same
one as long as anything refers to it.

In a run of several workers a core has the bodies of one. Others stand in it as bodies that aren't here (`is_here`),
whose positions come with frames; what is sent to them goes to the `outbox`. They stand in it as long as a lane or a
reference leads to or from them. A letter in the outbox, for a body of another worker, is a tuple of one of these forms:

========  ============================================  ==============================================================
letter    with                                          what it says
========  ============================================  ==============================================================
lambda    lane, source, its home, target, and the parts  a lambda is under way on a lane; `new_lambda` makes it again
gone      lane, target                                  nothing can be sent on a lane any more
watch     body, news, watcher, its worker               a body elsewhere waits for this one: it wants its positions and,
                                                        on the lane `news`, if any, to hear of its death
watched   news                                          it is watched; nothing it told before is missing on that lane
unwatch   body, news                                    news of a body aren't waited for any more
========  ============================================  ==============================================================

All of this is one module: spread over several, between which C can't inline anything, `benchmarks/spacetime.py` lost 4
to 10 % of its events per second. Compiled, its C types are those in `core.pxd`; what is marked `cython.` means nothing
uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from struct import pack, unpack
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from worldline.kernel.draws import Draws
from worldline.kernel.packing import PackedCopy, fingerprint, seal
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError, shown
from worldline.model.message import SEPARATOR, descendant
from worldline.model.randomness import Stream, key_of
from worldline.processes.failures import is_from_outside
from worldline.spacetime.functions import Closure, blamed, is_importable, look_of, name_of, sealed
from worldline.spacetime.geometry import LambdaField, Trajectory, Vector
from worldline.spacetime.lanes import CLOSED, DEAD, NEWS, Body, Lambda, Lane, Register

if TYPE_CHECKING:
    import worldline.uncompiled as cython
    from worldline.spacetime.space import Minkowski
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `core.pxd`.
    from worldline.spacetime.geometry import is_same
    from worldline.spacetime.lanes import new_lambda

# What goes into an agent's chain: the kinds of what happens to it, and of what it does. A lambda is a call; the end of
# a channel that attaches itself; or the news of a death.
_CALL = cython.declare(cython.int, 0)
_ATTACH = cython.declare(cython.int, 1)
_DEATH = cython.declare(cython.int, 2)
_TIMER = cython.declare(cython.int, 3)
_EDGE = cython.declare(cython.int, 4)
_TURN = cython.declare(cython.int, 5)
_CLOSE = cython.declare(cython.int, 6)
_LOG = cython.declare(cython.int, 7)
_SENT = cython.declare(cython.int, 8)  # And the kind of what was sent.

_NEVER = cython.declare(cython.double, inf)
_SLICE = cython.declare(cython.longlong, 256)

# How much earlier a block is than it is computed to be (S2), as a share of the coordinates and of tau. A position is
# rounded by half a unit in the last place of each coordinate, and so is the one that the source has published. That
# makes 2 · 2**-53 of the coordinates, by which a light cone moves up to γ(1 + β) as far along a trajectory that
# nearly keeps up with it (`stretch`); and roots are good to 4 · 2**-53 of tau. This is at least twice that.
_MARGIN = cython.declare(cython.double, 2.0**-50)

# Chains are as the kernel's: the hash of a tuple of small whole numbers, of which 60 bits are kept.
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_LOW = cython.declare(cython.ulonglong, 2**32 - 1)
_SMALL = cython.declare(cython.longlong, 2**59)

# Which half of a lane moves: see `Core.lanes_of`.
_SOURCES_HALF = cython.declare(cython.int, 1)
_TARGETS_HALF = cython.declare(cython.int, 2)
_NOT_THERE = cython.declare(object, (False, False, False, None))

# C variables: to look up a module's own names takes longer.
_Parcel = cython.declare(object, PackedCopy)
_Closure = cython.declare(object, Closure)
_Function = cython.declare(object, FunctionType)
_seal = cython.declare(object, seal)
_fingerprint = cython.declare(object, fingerprint)

Letter = tuple[Any, ...]

_current = cython.declare(object, cast("Core | None", None))  # The core whose agents act now, in this process.


def current_core() -> Core | None:
    """Return the core whose agents act now; None if none do."""
    return _current


def make_current(core: Core | None) -> Core | None:
    """Let a core's agents act, until another's do; return which it was before."""
    global _current
    before = _current
    _current = core
    return before


class ClosedError(ModelError):
    """An agent sends on a channel that is closed, or whose target is known to be dead."""


@cython.final
@cython.cclass
class Turns:
    """Whose turn it is, of the bodies that are awake: round after round, each in the order in which they woke up.

    A `shuffle` may choose another order, since none shows in what happens.
    """

    def __init__(self) -> None:
        self.shuffle: Callable[[list[Any]], None] | None = None
        self._round: list[Body] = []
        self._place = 0
        self._awake: list[Body] = []

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def wake(self, body: Body) -> cython.int:
        if not body.queued and not body.done and body.is_here:
            body.queued = True
            self._awake.append(body)
        return 0

    @cython.cfunc
    def next(self) -> Body | None:
        """Return whose turn it is; None if none is awake."""
        if self._place >= len(self._round):
            self._round, self._awake = self._awake, []
            self._place = 0
            if not self._round:
                return None
            if self.shuffle is not None:
                self.shuffle(self._round)
        body: Body = self._round[self._place]
        self._place += 1
        body.queued = False
        return body


@cython.final
@cython.cclass
class Sealer:
    """Makes of a function and its arguments what a lambda carries, which can be shared with nothing.

    Meanwhile `target` is for whom that is; references that are packed put the ends of their channels into `captured`.
    """

    def __init__(self) -> None:
        self.target: Body | None = None
        self.captured: list[tuple[str, str, int]] = []
        self.prints: dict[Any, int] = {}  # Of functions that can be imported.

    @cython.cfunc
    def seal(self, function: Any, arguments: tuple[Any, ...], target: Body) -> Any:
        """Return what a lambda carries, a hash of it, and the ends of channels in it."""
        self.target = target
        try:
            return self._sealed(function, arguments)
        finally:
            self.target = None

    @cython.cfunc
    def taken(self) -> Any:
        """Return the ends of channels that were captured since this was asked last."""
        captured, self.captured = self.captured, []
        return captured

    @cython.cfunc
    def _sealed(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        try:
            content = self.prints.get(function)
        except TypeError:  # It can't even be looked up, so it is no function.
            content = None
        if content is None:
            function, content = self._sealed_function(function)
        carried: Any = arguments
        if arguments:
            number: cython.longlong
            for number in range(len(arguments)):
                each = arguments[number]
                if type(each) is float:
                    content = linked(content, 1, each, number, 0, 0)
                elif type(each) is int and -_SMALL < each < _SMALL:
                    content = linked(content, 2, 0.0, number, each & _CHAIN, 0)
                elif each is None or type(each) is bool:
                    content = linked(content, 3, 0.0, number, 0 if each is None else 1 + each, 0)
                else:
                    print_of_arguments, carried = _seal(arguments)
                    content = linked(content, 0, 0.0, number, print_of_arguments, 0)
                    break
        return function, carried, content, tuple(self.taken()) if self.captured else None

    @cython.cfunc
    def _sealed_function(self, function: Any) -> Any:
        if is_importable(function):
            content = self.prints[function] = _fingerprint(name_of(function).encode())
            return function, content
        carried, content, captured = sealed(function)
        return carried, linked(0, 0, 0.0, content, captured, 0)


@cython.final
@cython.cclass
class Core:
    """The bodies of one worker, what is under way to them, and what happens next."""

    def __init__(self, space: Minkowski, field: LambdaField, boundaries: list[Any], seed: int, me: int = 0) -> None:
        self.space = space
        self.n = space.n
        self.field = field.of(space.n)
        self.boundaries = boundaries
        self.seed = seed
        self.me = me
        self.register = Register(space.n, me)
        self.lanes: dict[str, Lane] = {}
        self.turns = Turns()
        self.acting: Body | None = None
        self.beginning = Body("", self.n, me)
        self.beginning.point = space.origin
        self.setting_up = False
        self.stamp = 0
        self.sealer = Sealer()
        self.dropped: list[Lane] = []
        self.trace: list[tuple[Any, ...]] | None = None
        self.measured: list[tuple[float, str, int, str, float]] = []  # By the agents, as they came.
        self.made_now: list[Body] = []  # Those that were made in the event that takes place now, if that is traced.
        self.failures: list[tuple[float, str, WorldlineError]] = []
        self.cap = _NEVER  # Nothing happens after this lab time: there was an error.
        self.outbox: list[tuple[Body, Letter]] = []
        self.moved: dict[str, Body] = {}  # Bodies whose positions other workers want to know.
        self.live = 0
        self.steps = 0  # How often a body was let run.
        self.events = 0
        self.lab = 0.0  # When the last event was.

    # -- What happens next

    def run(self, limit: int) -> bool:
        """Let bodies run, about so many events; return whether any could go on."""
        body: Body | None
        left: cython.longlong = limit
        while left > 0:
            if self.dropped:
                self.let_go()
            body = self.turns.next()
            if body is None:
                return False
            left -= 1
            if body.is_here and not body.done and not body.frozen:
                self.steps += 1
                left -= self._let(body, _SLICE)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _let(self, body: Body, limit: cython.longlong) -> cython.longlong:
        """Let a body run until it blocks, or has had so many events; return how many it had."""
        best: Lane | None
        least: cython.double
        due: cython.double
        handled: cython.longlong = 0
        body.blocked_by = None
        body.parked = False
        while True:
            if body.stale:
                self._settle(body)
            best = None
            least = body.edge
            if body.lanes and body.dues[0] <= least:
                best = first_lane(body)
                if body.dues[0] == least and best.exact:
                    best = None  # What is at the boundary itself isn't inside.
                else:
                    least = body.dues[0]
            if best is not None and not best.exact:
                if best.head is not None:
                    due = body.trajectory.meeting(best.head.at.x, self.field)
                    best.exact = True
                    put_due(body, best, due if due > body.last else body.last)
                    continue
                due = self._block(body, best)
                if due > least:
                    if due == _NEVER and (best.gone or best.source.done):  # None is left that could send on it.
                        drop_lane(body, best)
                        self.lanes.pop(best.name, None)
                    else:
                        put_due(body, best, due)
                    continue
                if least > body.tau:
                    body.tau = least
                    self._publish(body)
                elif body.moved:
                    self._publish(body)
                body.blocked_by = best
                if body.waits_for is not best.source:
                    body.waits_for = best.source
                    best.source.waiters.append(body)
                return handled
            if least == _NEVER or body.trajectory.start.x[0] + body.trajectory.velocity.x[0] * least > self.cap:
                # Nothing will ever happen to it; or an agent has failed before, and only what was before counts.
                body.parked = True
                self._publish(body)
                return handled
            body.moved = True
            if best is not None and best.head is not None and best.head.kind == _DEATH:
                body.tau = least
                self._take_news(body, best)
                continue
            body.tau = body.last = least
            self.stamp += 1
            if best is None:
                self._cross(body)
            else:
                self._perform(body, best, least)
            handled += 1
            if body.done:
                return handled
            if body.frozen:
                body.parked = True
                self._publish(body)
                return handled
            if handled >= limit:
                self._publish(body)
                self.turns.wake(body)
                return handled

    @cython.cfunc
    @cython.exceptval(check=False)
    def _block(self, body: Body, lane: Lane) -> cython.double:
        """Return a local time before which nothing can come on an empty lane."""
        source: Body = lane.source
        if lane.gone or source is body or source.parked:
            return _NEVER
        if source.done:
            return -_NEVER if lane.asked else _NEVER
        if not source.known:
            return -_NEVER
        due: cython.double = self._safe(body, source.here)
        if lane.floor is not None:
            other: cython.double = self._safe(body, lane.floor.x)
            if other > due:
                return other
            lane.floor = None
        return due

    @cython.cfunc
    @cython.exceptval(check=False)
    def _safe(self, body: Body, x: cython.p_double) -> cython.double:
        """Return when a lambda could come that is emitted at x or later, or a little earlier (S2)."""
        i: cython.Py_ssize_t
        size: cython.double = 0.0
        for i in range(self.n):
            size += abs(x[i])
        due: cython.double = body.trajectory.meeting(x, self.field)
        return due - _MARGIN * (body.trajectory.stretch * size + abs(due))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle(self, body: Body) -> cython.int:
        """Work out anew what is due on a new trajectory."""
        lane: Lane
        due: cython.double
        place: cython.Py_ssize_t
        for place in range(len(body.lanes)):
            lane = body.lanes[place]
            if lane.timers is not None:
                due = lane.timers[0][0] - body.local_start if lane.timers else _NEVER
            elif lane.head is not None:
                due = body.trajectory.meeting(lane.head.at.x, self.field)
                lane.exact = True
            else:
                due = self._block(body, lane)
                lane.exact = False
            body.dues[place] = due if due > body.last else body.last
        for place in range(len(body.lanes) // 2 - 1, -1, -1):
            sift_down(body, place)
        body.edge = _NEVER
        passed = []
        number: cython.int
        for number in range(len(self.boundaries)):
            boundary = self.boundaries[number]
            due = body.trajectory.crosses(boundary.normal, boundary.offset)
            if due == _NEVER:
                continue
            if number in body.passed:
                passed.append(number)
                continue
            due = due if due > body.last else body.last
            if due < body.edge:
                body.edge = due
                body.edge_place = number
        body.passed = passed
        body.stale = False
        return 0

    # -- What happens

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _perform(self, body: Body, lane: Lane, tau: cython.double) -> cython.int:
        """Let a body absorb what is due on a lane."""
        item: Lambda
        arguments: Any
        body.point = body.trajectory.point(tau)
        self.lab = body.point.x[0]
        if lane.timers is not None:
            _, number, function, arguments, content = heappop(lane.timers)
            put_due(body, lane, max(lane.timers[0][0] - body.local_start, tau) if lane.timers else _NEVER)
            body.chain = linked(body.chain, _TIMER, tau, lane.key, number, content)
            if self.trace is not None:
                self.note("timer", body, lane.name, (number, function))
            self.events += 1
            body.events += 1
            return self._act(body, function, arguments)
        item = lane.pop()
        lane.exact = False
        body.chain = linked(body.chain, _CALL, tau, lane.key, item.order, item.content)
        if self.trace is not None:
            self.note("absorbed", body, lane.name, (item.order, item.kind, lane.source.name, item.at, item.function))
        if item.kind == _CALL and is_same(item.at, body.point):
            self.fail(body, item.function, _no_time(lane, body.point))
            return 0
        if item.kind == _CALL:
            self.events += 1
            body.events += 1
            return self._act(body, item.function, item.arguments)
        self._take_end(body, item)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _cross(self, body: Body) -> cython.int:
        """Let a body do what a boundary says that it has reached."""
        boundary = self.boundaries[body.edge_place]
        place: cython.int = body.edge_place
        body.point = body.trajectory.point(body.last)
        self.lab = body.point.x[0]
        body.chain = linked(body.chain, _EDGE, body.last, place, 0, 0)
        self.note("crossed", body, str(boundary), None)
        body.passed.append(place)
        body.stale = True
        if boundary.is_end:
            self.end(body, True)
            return 0
        self.events += 1
        body.events += 1
        return self._act(body, boundary.action, (boundary,))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _act(self, body: Body, function: Any, arguments: Any) -> cython.int:
        """Call a function on a body's agent."""
        global _current
        before = _current  # An event may run a whole simulation of its own.
        self.acting = body
        _current = self
        try:
            if type(arguments) is _Parcel:
                arguments = arguments.open()
            if type(function) is _Closure:
                function = function.open()
            if type(function) is str:
                getattr(body.receiver, function)(*arguments)
            elif arguments:
                function(body.receiver, *arguments)
            else:
                function(body.receiver)
        except BaseException as error:
            if is_from_outside(error):
                raise
            self.fail(body, function, error)
        finally:
            self.acting = None
            _current = before
            if body.done and body.name in self.register.graves:
                body.agent = body.receiver = None  # They refer to each other, and nothing else needs them.
        if self.trace is not None:
            self._look_around(body)
        return 0

    # -- What others learn of it

    @cython.ccall
    def emit(
        self, lane: Lane, kind: cython.int, function: Any, arguments: Any, content: cython.ulonglong, ends: Any
    ) -> None:
        """Send something from where the lane's source is."""
        source: Body = lane.source
        order: cython.longlong = lane.sent
        lane.sent += 1
        source.chain = linked(source.chain, _SENT + kind, 0.0, lane.key, order, content)
        if self.trace is not None:
            self.note("sent", source, lane.name, (order, kind, lane.target.name, function, arguments, content, ends))
        self.deliver(lane, new_lambda(source.point, order, kind, function, arguments, content, ends))

    @cython.ccall
    def deliver(self, lane: Lane, item: Lambda) -> None:
        """Bring a lambda to the lane's target, wherever that is; if it is gone, the lambda vanishes."""
        target: Body = lane.target
        if target.done:
            self._vanish(item)
        elif target.is_here:
            self._push(lane, item)
        else:
            source: Body = lane.source
            parts = item.at, item.order, item.kind, item.function, item.arguments, int(item.content), item.ends
            names = "lambda", lane.name, source.name, source.home, target.name
            self.outbox.append((target, names + parts))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _push(self, lane: Lane, item: Lambda) -> cython.int:
        if lane.head is None and lane.place >= 0 and lane.target.dues[lane.place] == _NEVER:
            put_due(lane.target, lane, lane.target.tau)
        lane.push(item)
        # A body that waits, waits for an earlier block than this; but a lane without a source that counts blocks none.
        if lane.source is lane.target or not lane.source.is_here:
            self.turns.wake(lane.target)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _publish(self, body: Body) -> cython.int:
        """Let all know where a body is, and wake those that wait for it."""
        waiter: Body
        body.moved = False
        body.trajectory.put(body.tau, body.here)
        body.known = True
        if body.waiters:
            for waiter in body.waiters:
                waiter.waits_for = None
                self.turns.wake(waiter)
            body.waiters.clear()
        if body.partners:
            self.moved[body.name] = body
        return 0

    def note(self, kind: str, body: Body, name: str, facts: Any) -> None:
        """Keep a record for the trace."""
        if self.trace is not None:
            self.trace.append((body, body.notes, kind, body.point, body.local_time, name, facts))
            if kind != "measured":
                body.notes += 1

    # -- Who there is

    def add(self, kind: str, agent: Any) -> Body:
        """Let an agent begin where its maker is, with a name of its own."""
        maker: Body = self.maker()
        if SEPARATOR in kind:
            raise UsageError(f"a class named {shown(kind)} can't name agents", advice="what is before a / is a maker's")
        name = f"{kind}-{maker.count(kind)}"
        while f"/{name}" in maker.counts:  # Another was given it.
            name = f"{kind}-{maker.count(kind)}"
        body: Body = Body(self._name_below(maker, name), self.n, self.me)
        body.agent = body.receiver = agent
        body.trajectory = Trajectory(maker.point, self.space.rest)
        body.point = maker.point
        body.born = self.stamp
        self.register.add(body)
        self.live += 1
        self._publish(body)
        self.turns.wake(body)
        self.note("born", body, maker.name, (self.space.rest, agent))
        if self.trace is not None and self.acting is not None:
            self.made_now.append(body)
        return body

    def maker(self) -> Body:
        """Return who acts: an agent, or before the run the initializing agent, which everything is in the future of."""
        return self.beginning if self.acting is None else self.acting

    def rename(self, body: Body, name: str) -> None:
        """Give a body that has just been made another name."""
        if body.events or body.counts or body.random is not None or body.lanes or body.outs:
            raise UsageError(f"{body.name} is known already", advice="name an agent right after it was made")
        maker: Body = self.maker()
        kind, _, number = name.rpartition("-")
        is_number = number.isascii() and number.isdecimal() and number[0] != "0"
        if f"/{name}" in maker.counts or (is_number and int(number) <= maker.counts.get(kind, 0)):
            raise UsageError(f"there is an agent named {shown(name)} already", advice="every name is used once")
        maker.counts[f"/{name}"] = 1
        self.register.rename(body, self._name_below(maker, name))

    def _name_below(self, maker: Body, own: str) -> str:
        """Return a name for whom an agent has made. It has the maker's in it, so that only the maker's count."""
        name = descendant(maker.name.partition(SEPARATOR)[0], maker.name, own) if maker.name else own
        if self.register.is_known(name):
            raise UsageError(f"there is an agent named {shown(name)} already", advice="every name is used once")
        return name

    def lane(self, name: str, source: Body, target: Body, key: int | None = None) -> Lane:
        """Return the lane of a name, made if it isn't there; its key follows from the name, but takes a while."""
        found: Lane | None = self.lanes.get(name)
        if found is None:
            found = Lane(name, key_of(self.seed, "channel", name) & _CHAIN if key is None else key, source, target)
            self.lanes[name] = found
        return found

    def acts(self, body: Body) -> bool:
        """Whether the code that runs now is at the body's point: it is the body's own, or has just made it."""
        return not body.done and (body is self.acting or self.setting_up or body.born == self.stamp)

    def draws(self, body: Body, name: str | None = None) -> Any:
        """Return an agent's own draws, or a stream of them that it has given a name."""
        if body.random is None:
            body.random = {}
        if name not in body.random:
            key = self.seed, "agent", body.name
            body.random[name] = Draws(*key) if name is None else Stream(*key, name)
        return body.random[name]

    # -- How they move and wait

    def turn(self, body: Body, velocity: Vector) -> None:
        """Let a body go on with another velocity."""
        self._begin_anew(body, body.point, velocity)
        self.note("turned", body, "", velocity)

    def jump(self, body: Body, point: Vector) -> None:
        """Let a body go on from another point."""
        before = body.point
        self._begin_anew(body, point, body.trajectory.velocity)
        body.passed = []
        self.note("jumped", body, "", before)

    def _begin_anew(self, body: Body, point: Vector, velocity: Vector) -> None:
        i: cython.Py_ssize_t
        body.local_start += body.last
        body.tau = body.last = 0.0
        body.trajectory = Trajectory(point, velocity)
        body.point = point
        body.stale = True
        for i in range(self.n):
            body.chain = linked(body.chain, _TURN, point.x[i], i, 0, 0)
            body.chain = linked(body.chain, _TURN, velocity.x[i], i, 1, 0)
        if body is not self.acting:
            self._publish(body)  # It isn't running, so nothing else does it.

    def set_timer(self, body: Body, delay: float, function: Any, arguments: Any, content: int) -> None:
        """Let a body call a function of its own after so much local time."""
        lane: Lane = self.timer_of(body)
        number = lane.sent
        now: cython.double = body.local_start + body.last
        if not now + delay - body.local_start > body.last:
            raise ModelError(
                f"after {delay!r} it would still be {now!r}, so nothing would ever come after it",
                participant=body.name,
                advice="wait for longer",
            )
        lane.sent += 1
        timers: list[Any] = lane.timers  # type: ignore[assignment] # It is a lane of timers.
        heappush(timers, (now + delay, number, function, arguments, content))
        put_due(body, lane, max(timers[0][0] - body.local_start, body.last))
        body.chain = linked(body.chain, _TIMER, delay, lane.key, number, content)

    def timer_of(self, body: Body) -> Lane:
        """Return the lane on which a body's own timers come to it."""
        lane: Lane | None = body.timer
        if lane is None:
            lane = body.timer = self.lane(f"{body.name}:timer", body, body)
            lane.timers = []
            lane.exact = True
            add_lane(body, lane, _NEVER)
        return lane

    def wake(self, body: Body) -> None:
        self.turns.wake(body)

    def wake_all(self) -> None:
        body: Body
        for body in self.register.all():
            body.waiters = []
            body.waits_for = None
        for body in self.register.bodies.values():
            self.turns.wake(body)

    # -- What is seen of them

    def log(self, body: Body, text: str) -> None:
        """Note what an agent says. It counts: what agents say depends on what they have become."""
        body.chain = linked(body.chain, _LOG, 0.0, _fingerprint(text.encode()), 0, 0)
        self.note("log", body, "", text)

    def measure(self, body: Body, what: str, value: float) -> None:
        """Keep a number that an agent measures, with its lab time. It doesn't count: it is for those who look on."""
        self.measured.append((body.point[0], body.name, body.events, what, value))
        self.note("measured", body, what, value)

    def look(self, body: Body) -> None:
        """Note what an agent is shown as, if it isn't what it was. That is for pictures alone, and in no history.

        No agent acts meanwhile, so it can't do anything when it is asked; what it draws then doesn't count.
        """
        draws = body.random
        body.random = None
        try:
            shown_as = look_of(body.receiver)
        finally:
            body.random = draws
        if shown_as != body.shown:
            body.shown = shown_as
            self.note("shown", body, shown_as, None)

    def _look_around(self, body: Body) -> None:
        """Look at who has just acted, and at those that it has made."""
        made_now = self.made_now
        self.made_now = []
        for each in (body, *made_now):
            seen: Body = each
            if not seen.done and not seen.frozen:
                try:
                    self.look(seen)
                except BaseException as error:
                    if is_from_outside(error):
                        raise
                    self.fail(seen, "shown_as", error)

    def fail(self, body: Body, function: Any, error: BaseException) -> None:
        """Note that a model has failed: nothing that is later in the lab is wanted any more."""
        made = blamed(error, body.name, body.point, function, body.agent)
        self.failures.append((body.point[0], body.name, made))
        self.note("failed", body, made.problem, None)
        self.cap = min(self.cap, body.point[0])
        body.frozen = True

    # -- How lanes begin

    def attach(self, lane: Lane) -> None:
        """Let a lane's target look at it from now on."""
        lane.exact = False
        add_lane(lane.target, lane, lane.target.last)

    def open_lane(self, source: Body, target: Body, blind: bool) -> Lane:
        """Make a lane between two bodies, both of which are at the point of who acts."""
        lane: Lane = self.lane(self._channel_name(), source, target)
        source.outs.append(lane)
        self.attach(lane)
        self.note("created", source, lane.name, target.name)
        if not blind:
            self.watch(lane)
        return lane

    def derive(self, via: Lane, holder: Body) -> Lane:
        """Make a lane to the target of another, for the holder of its end: the acting body, or the one it is sent to.

        The other end goes to the target along the old lane. Nothing that is sent on the new one can be there earlier.
        """
        if via.ended is not None or not self.acts(via.source):
            self.check_sender(via)
        name = self._channel_name()
        self.emit(via, _ATTACH, None, (name, holder.name, holder.home), 0, None)
        self.note("created", via.source, name, via.target.name)
        if via.target.is_here or holder.is_here:
            return self.lane(name, holder, via.target)
        return Lane(name, 0, holder, via.target)  # Nothing here has to do with it.

    def derive_own(self, body: Body, holder: Body) -> Lane:
        """Make a lane to the acting body, for another that its end is sent to."""
        lane: Lane = self.lane(self._channel_name(), holder, body)
        lane.floor = body.point
        self.note("created", body, lane.name, body.name)
        self._attach_end(lane)
        return lane

    def _channel_name(self) -> str:
        maker: Body = self.maker()
        return f"{maker.name}:{maker.count(':')}"

    def _attach_end(self, lane: Lane) -> None:
        """Attach a lane whose source's end is elsewhere."""
        self.attach(lane)
        if not lane.source.is_here:
            self.outbox.append((lane.source, ("watch", lane.source.name, "", lane.target.name, self.me)))
        self.note("attached", lane.target, lane.name, lane.source.name)

    def take_end(self, name: str, target: str, home: int) -> Lane:
        """Let the acting body hold the end of a lane that has come to it."""
        body: Body = self.acting  # type: ignore[assignment] # A lambda is opened by the agent that absorbs it.
        lane: Lane = self.lane(name, body, self.register.body(target, home))
        body.outs.append(lane)
        self.note("held", body, name, target)
        return lane

    def _take_end(self, body: Body, item: Lambda) -> None:
        """Attach the end of a channel that has come to its target."""
        name, source, home = item.arguments
        lane: Lane = self.lane(name, self.register.body(source, home), body)
        lane.source = self.register.body(
            source, home
        )  # It may have been given up before it came, when only its target was known.
        lane.floor = item.at
        self._attach_end(lane)

    # -- How they end

    def close(self, lane: Lane) -> None:
        """Let nothing more be sent on a lane."""
        lane.source.chain = linked(lane.source.chain, _CLOSE, 0.0, lane.key, lane.sent, 0)
        self.note("closed", lane.source, lane.name, lane.target.name)
        self.give_up(lane)

    def give_up(self, lane: Lane) -> None:
        """Say that nothing can be sent on a lane any more. Its target just no longer waits, which no agent sees (S4).

        So it may happen at any moment, such as when the garbage collector finds that nothing has the channel.
        """
        if lane.ended is not None:
            return
        lane.ended = CLOSED
        if lane in lane.source.outs:
            lane.source.outs.remove(lane)
        self.unwatch(lane)
        self.lose(lane.name, lane.target)

    def let_go(self) -> None:
        """Give up the lanes of channels that nothing has any more.

        That isn't done when the last one lets go of a channel, since this may be in the middle of anything.
        """
        dropped, self.dropped = self.dropped, []
        for lane in dropped:
            self.give_up(lane)

    def lose(self, name: str, target: Body) -> None:
        """Let a lane's target no longer wait for it."""
        if target.is_here and not target.done:
            lane: Lane = self.lane(name, target, target)
            lane.gone = True
            self.turns.wake(target)
            return
        self.lanes.pop(name, None)
        if not target.is_here:
            self.outbox.append((target, ("gone", name, target.name)))

    def end(self, body: Body, silently: bool) -> None:
        """Take a body out. At the end of everything that is silent: no agent could hear of it."""
        lane: Lane
        body.chain = linked(body.chain, _DEATH, body.last, 0, body.events, silently)
        self.note("ended" if silently else "died", body, "", None)
        if not silently:
            body.death = body.point
            for lane in body.outs:
                if lane.is_news:  # Who wants the news may be luck; so they are nothing that this agent has sent.
                    self._send_news(lane, body.death)
            for lane in list(body.outs):
                if not lane.is_news:
                    self.give_up(lane)
        body.done = True
        self.live -= 1
        for lane in body.lanes:
            lane.place = -1
            if not silently:
                self._empty(lane)
                self.lanes.pop(lane.name, None)
        for lane in body.outs:
            lane.ended = CLOSED
        body.lanes.clear()
        body.outs.clear()
        self._publish(body)
        if not silently and SEPARATOR in body.name:
            self.register.bury(body)

    def _empty(self, lane: Lane) -> None:
        """Let what is under way on a lane vanish, and with it the ends of channels that it carries."""
        for item in lane.clear():
            self._vanish(item)

    def _vanish(self, item: Lambda) -> None:
        if item.ends is not None:
            for name, target, home in item.ends:
                self.lose(name, self.register.body(target, home))

    # -- News of deaths

    def watch(self, lane: Lane) -> None:
        """Let the source of a lane learn when its target dies."""
        target: Body = lane.target
        news: Lane = self.lane(lane.name + NEWS, target, lane.source)
        self.attach(news)
        self.turns.wake(lane.source)
        if target.is_here:
            self.tell_death(target, news)
        else:
            news.asked = True
            self.outbox.append((target, ("watch", target.name, news.name, lane.source.name, self.me)))

    def unwatch(self, lane: Lane) -> None:
        """Let the source of a lane no longer wait for news of its target."""
        news: Lane | None = self.lanes.pop(lane.name + NEWS, None)
        if news is not None:
            if news.place >= 0:
                drop_lane(lane.source, news)
            if news in news.source.outs:
                news.source.outs.remove(news)
            if not news.source.is_here:
                self.outbox.append((news.source, ("unwatch", news.source.name, news.name)))
            self.turns.wake(lane.source)

    def tell_death(self, body: Body, news: Lane) -> None:
        """Let a lane have the news of a body's death, now or later."""
        if not body.done:
            body.outs.append(news)
        elif body.death is not None:
            self._send_news(news, body.death)

    def _send_news(self, news: Lane, death: Vector) -> None:
        self.deliver(news, new_lambda(death, 0, _DEATH, None, (), 0, None))
        if not news.target.is_here:  # Nothing more will be sent on it, and what comes of it is the other worker's.
            self.lanes.pop(news.name, None)

    def _take_news(self, body: Body, news: Lane) -> None:
        """Learn of a death: the channel that leads there is closed.

        Only an agent that still has such a channel notices: the news themselves are no event, and in no history.
        """
        lane: Lane
        for lane in list(body.outs):
            if news.name == lane.name + NEWS:
                lane.ended = DEAD
                body.outs.remove(lane)
                self.lanes.pop(lane.name, None)
        drop_lane(body, news)
        self.lanes.pop(news.name, None)

    # -- What is sent

    def check_sender(self, lane: Lane) -> None:
        """Refuse to send on a lane that is closed, or that isn't the acting agent's."""
        source: Body = lane.source
        if not self.acts(source) and self.acting is not source:
            who = "no agent acts now" if self.acting is None else f"{self.acting.name} acts now"
            raise UsageError(
                f"the channel from {source.name} to {lane.target.name} is {source.name}'s, and {who}",
                advice="an agent sends on channels of its own, in its own events",
            )
        if lane.ended == DEAD:
            raise ClosedError(
                f"{lane.target.name} is dead, which is known here, so nothing can be sent to it",
                participant=source.name,
                advice="ask channel.is_open first, or catch the error",
            )
        if lane.ended is not None:
            raise ClosedError(f"the channel to {lane.target.name} is closed", participant=source.name)

    def seal(self, function: Any, arguments: tuple[Any, ...], target: Body) -> Any:
        """Return what a lambda to a body carries, a hash of it, and the ends of channels in it."""
        try:
            return self.sealer.seal(function, arguments, target)
        except BaseException:
            for name, holder, home in self.sealer.taken():
                self.lose(name, self.register.body(holder, home))
            raise

    # -- Other workers

    def hear_position(self, name: str, position: Any) -> None:
        """Take in where a body of another worker is; None if it is gone."""
        body: Body | None = self.register.elsewhere.get(name)
        i: cython.Py_ssize_t
        if body is None:  # Nothing here has to do with it any more.
            return
        if position is None:
            body.done = True
        else:
            for i in range(self.n):
                body.here[i] = position[i]
            body.known = True
        waiting = body.waiters
        body.waiters = []
        for each in waiting:
            waiter: Body = each
            waiter.waits_for = None
            self.turns.wake(waiter)

    def arrive(self, name: str, state: tuple[Any, ...]) -> Body:
        """Let a body live here from now on."""
        body: Body = self.register.house(name)
        body.restore(state)
        if not body.done:
            self.live += 1
        return body

    def depart(self, body: Body, home: int) -> None:
        """Let a body live elsewhere from now on; it only stands for that one."""
        if not body.done:
            self.live -= 1
        body.is_here = False
        body.home = home
        self.register.set_aside(body)
        body.agent = body.receiver = body.random = body.timer = None
        lane: Lane
        for lane in body.lanes:
            lane.place = -1
        body.lanes.clear()
        body.outs.clear()
        body.partners = {}

    def lanes_of(self, chosen: dict[str, Body]) -> list[Any]:
        """Return what moves of lanes when these bodies do.

        A lane has two halves. The target's, what is under way on it, goes with the target; the source's, how much has
        been sent, with the source. Where both are in one core it's one object.
        """
        lane: Lane
        body: Body
        halves: dict[str, int] = {}
        found: dict[str, Lane] = {}
        for lane in self.lanes.values():
            if lane.target.is_here and lane.timers is None and lane.target.name in chosen:
                halves[lane.name] = _TARGETS_HALF
                found[lane.name] = lane
        for body in chosen.values():
            for lane in body.outs:
                halves[lane.name] = _SOURCES_HALF | halves.get(lane.name, 0)
                found[lane.name] = lane
        return [_lane_told(each, halves[name]) for name, each in found.items()]

    def take_lanes(self, lanes: list[Any]) -> None:
        """Take in what has moved of lanes, after the bodies."""
        lane: Lane
        half: cython.int
        for name, key, half, (source, source_home, target, target_home), sent, flags, under_way in lanes:
            lane = self.lane(
                name, self.register.body(source, source_home), self.register.body(target, target_home), key
            )
            if half & _SOURCES_HALF:
                lane.sent = sent
                lane.handle = 0
                lane.source.outs.append(lane)
            if half & _TARGETS_HALF:
                is_attached, lane.gone, lane.asked, lane.floor = flags
                if is_attached:
                    self.attach(lane)
                for at, order, kind, function, arguments, content, ends in under_way:
                    self.deliver(lane, new_lambda(at, order, kind, function, arguments, content, ends))

    def forget_lanes(self) -> None:
        """Let go of lanes neither end of which is here any more."""
        lane: Lane
        for lane in list(self.lanes.values()):
            if not lane.target.is_here:
                lane.clear()
                if not lane.source.is_here:
                    del self.lanes[lane.name]


def _lane_told(lane: Lane, half: cython.int) -> tuple[Any, ...]:
    ends = lane.source.name, lane.source.home, lane.target.name, lane.target.home
    flags: Any = _NOT_THERE
    under_way: Any = ()
    if half & _TARGETS_HALF:
        flags = lane.place >= 0, lane.gone, lane.asked, lane.floor
        if lane.head is not None:
            under_way = [
                (item.at, item.order, item.kind, item.function, item.arguments, item.content, item.ends)
                for item in lane.under_way()
            ]
    return lane.name, lane.key, half, ends, lane.sent, flags, under_way


@cython.cclass
class ChannelEnd:
    """The end of a channel that its source holds."""

    __slots__ = ("core", "lane")

    if not cython.compiled:
        core: Core
        lane: Lane

    def send(self, function: Callable[..., Any] | str, *arguments: Any) -> None:
        """Send a function to the agent at the other end, which is called with that agent and the arguments.

        Name a method of the agent (``Ping.ping`` or ``"ping"``) or give any function, a lambda too. What it carries is
        copied: numbers, text, tuples, lists, dicts, dataclasses, remote references.
        """
        lane: Lane = self.lane
        core: Core = self.core
        if lane.ended is not None or lane.source is not core.acting:
            core.check_sender(lane)
        content = core.sealer.prints.get(function) if not arguments and type(function) is _Function else None
        if content is not None:
            core.emit(lane, _CALL, function, (), content, None)
            return
        function, carried, content, ends = core.seal(function, arguments, lane.target)
        core.emit(lane, _CALL, function, carried, content, ends)


def _no_time(lane: Lane, point: Vector) -> Stuck:
    return Stuck(
        f"what {lane.source.name} sends to {lane.target.name} takes no time, at {point}, so they may never get further",
        advice="give the lambda field an R or a c, or keep the agents apart",
        agents=(lane.source.name, lane.target.name),
    )


# -- The lanes of a body are a heap: `dues` has when each is due, at the same place, and the least is at place 0.


@cython.cfunc
def add_lane(body: Body, lane: Lane, due: cython.double) -> cython.int:
    place: cython.Py_ssize_t = len(body.lanes)
    if cython.compiled:
        if place >= body.room:
            body.room = 2 * place + 2
            body.dues = cython.cast(cython.p_double, PyMem_Realloc(body.dues, body.room * cython.sizeof(cython.double)))
            if body.dues == cython.NULL:
                raise MemoryError
        body.dues[place] = due
    else:
        del body.dues[place:]
        body.dues.append(due)
    body.lanes.append(lane)
    lane.place = place
    _sift_up(body, place)
    return 0


@cython.cfunc
def drop_lane(body: Body, lane: Lane) -> cython.int:
    place: cython.Py_ssize_t = lane.place
    last: Lane = body.lanes.pop()
    lane.place = -1
    if last is not lane:
        due: cython.double = body.dues[len(body.lanes)]
        body.lanes[place] = last
        last.place = place
        put_due(body, last, due)
    return 0


@cython.cfunc
def put_due(body: Body, lane: Lane, due: cython.double) -> cython.int:
    """Say when something is due on a lane."""
    before: cython.double = body.dues[lane.place]
    body.dues[lane.place] = due
    if due < before:
        _sift_up(body, lane.place)
    elif len(body.lanes) > 1:
        sift_down(body, lane.place)
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _set_place(body: Body, place: cython.Py_ssize_t, lane: Lane, due: cython.double) -> cython.int:
    body.lanes[place] = lane
    body.dues[place] = due
    lane.place = place
    return 0


@cython.cfunc
def _sift_up(body: Body, place: cython.Py_ssize_t) -> cython.int:
    lane: Lane = body.lanes[place]
    due: cython.double = body.dues[place]
    above: cython.Py_ssize_t
    while place > 0:
        above = (place - 1) // 2
        if body.dues[above] <= due:
            break
        _set_place(body, place, body.lanes[above], body.dues[above])
        place = above
    return _set_place(body, place, lane, due)


@cython.cfunc
def sift_down(body: Body, place: cython.Py_ssize_t) -> cython.int:
    lane: Lane = body.lanes[place]
    due: cython.double = body.dues[place]
    size: cython.Py_ssize_t = len(body.lanes)
    below: cython.Py_ssize_t
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and body.dues[below + 1] < body.dues[below]:
            below += 1
        if body.dues[below] >= due:
            break
        _set_place(body, place, body.lanes[below], body.dues[below])
        place = below
    return _set_place(body, place, lane, due)


@cython.cfunc
def first_lane(body: Body) -> Lane:
    """Return the lane whose turn it is, of those that are due first.

    What isn't exact comes first, so that it is made exact; then the lot decides.
    """
    best: Lane = body.lanes[0]
    least: cython.double = body.dues[0]
    size: cython.Py_ssize_t = len(body.lanes)
    if not best.exact or not ((size > 1 and body.dues[1] == least) or (size > 2 and body.dues[2] == least)):
        return best
    lane: Lane
    place: cython.Py_ssize_t
    tied = [1, 2]  # Whose neighbors above are due at that time.
    while tied:
        place = tied.pop()
        if place >= size or body.dues[place] != least:
            continue
        lane = body.lanes[place]
        if not lane.exact:
            return lane
        if lot(lane.key, _number(lane)) < lot(best.key, _number(best)):
            best = lane
        tied += [2 * place + 1, 2 * place + 2]
    return best


@cython.cfunc
@cython.inline
def _number(lane: Lane) -> cython.ulonglong:
    """Return the number of what is at the front of a lane."""
    return lane.timers[0][1] if lane.timers is not None else lane.head.order  # type: ignore[union-attr] # It is exact.


# -- Chains


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def linked(
    chain: cython.ulonglong,
    what: cython.ulonglong,
    when: cython.double,
    key: cython.ulonglong,
    order: cython.ulonglong,
    content: cython.ulonglong,
) -> cython.ulonglong:
    """Return the hash of (chain, what, bits of when in two halves, key, order, content)."""
    bits: cython.ulonglong = 0
    if cython.compiled:
        memcpy(cython.address(bits), cython.address(when), 8)
        return hash_of_seven(chain, what, bits >> 32, bits & _LOW, key, order, content)
    (bits,) = unpack("<Q", pack("<d", when))
    return hash((chain, what, bits >> 32, bits & _LOW, key, order, content)) & _CHAIN


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def lot(key: cython.ulonglong, order: cython.ulonglong) -> cython.ulonglong:
    """Draw who is first of those that arrive at the same point."""
    return linked(0, 0, 0.0, key, order, 0)
