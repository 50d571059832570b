# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
"""Lets every agent run until it would pass the light cone of somebody who may still send to it.

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
jump moves. So they are numbers that depend on what was sent alone, not on how often somebody looked.

A lane's `due` is exact if it belongs to its front lambda, and otherwise a bound that nothing on it can come before. It
is made better only when it is the least.

Invariants
----------
S1. A body executes at tau only if every other lane's due is later, or exact and equal. So all that can happen at tau is
    known, and who is first of those at the same tau is drawn by a key that only depends on the seed, the lane and the
    number on it.
S2. A block is earlier than the due of anything that its source sends from then on, by more than rounding can amount
    to (`_MARGIN`). A published position only bounds; it never enters a result.
S3. Whoever blocks, blocks on somebody in its past. So among all that are blocked there is one that isn't, as long as
    a lambda takes any time. If none is left, floats can't tell the light cones apart, which is an error.
S4 is in `traffic`.

What is rare is done by the layers above (see `core`). What is done for every event is all here, in one module: spread
over several, between which C can't inline anything, `benchmarks/spacetime.py` lost 4 to 10 % of its events per second.
"""

from heapq import heappop
from math import inf
from struct import pack, unpack
from weakref import WeakValueDictionary

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

from worldline.kernel.packing import PackedCopy
from worldline.model.errors import Stuck
from worldline.processes.failures import is_from_outside
from worldline.spacetime.functions import Closure
from worldline.spacetime.kinds import CALL, EDGE, SENT, TIMER
from worldline.spacetime.worker_messages import LambdaInFlight

if cython.compiled:
    from cython.cimports.cpython.mem import PyMem_Realloc
    from cython.cimports.libc.string import memcpy
    from cython.cimports.worldline.kernel._chain import hash_of_seven
    from cython.cimports.worldline.spacetime._geometry import LambdaField, Vector, is_same
    from cython.cimports.worldline.spacetime._lanes import Body, Lambda, Lane, new_lambda
else:
    from worldline.spacetime.geometry import LambdaField, Vector, is_same
    from worldline.spacetime.lanes import Body, Lambda, Lane, new_lambda

_CALL = cython.declare(cython.int, CALL)
_TIMER = cython.declare(cython.int, TIMER)
_EDGE = cython.declare(cython.int, EDGE)
_SENT = cython.declare(cython.int, SENT)
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

_Parcel = cython.declare(object, PackedCopy)
_Closure = cython.declare(object, Closure)
_Flying = cython.declare(object, LambdaInFlight)


_current = cython.declare(object, None)  # The core whose agents act now, in this process.


def current_core() -> object:
    """Return the core whose agents act now; None if nobody does."""
    return _current


def make_current(core: object) -> object:
    """Let a core's agents act, until another's do; return which it was before."""
    global _current
    before = _current
    _current = core
    return before


@cython.cclass
class Stepping:
    """The bodies of one worker, what is under way to them, and what happens next."""

    def __init__(self, space: object, field: LambdaField, boundaries: list[object], seed: int, me: int = 0) -> None:
        self.space = space
        self.n = space.n
        self.field = field.of(space.n)
        self.boundaries = boundaries
        self.seed = seed
        self.me = me
        self.bodies = {}
        self.elsewhere = WeakValueDictionary()  # By name: those that only stand for one who lives elsewhere or is dead.
        self.graves = {}  # By name: where one died that was made during the run, its chain, and how many events it had.
        self.lanes = {}
        self.homes = {}  # Where bodies have moved to, or were placed.
        self.batch = []
        self.place = 0
        self.awake = []
        self.shuffle = None
        self.acting = None
        self.beginning = Body("", self.n, me)
        self.beginning.point = space.origin
        self.setting_up = False
        self.stamp = 0
        self.carrier = None
        self.captured = []
        self.dropped = []
        self.trace = None
        self.newborn = []  # Who was made in the event that takes place now, if that is traced.
        self.failures = []
        self.cap = _NEVER  # Nothing happens after this lab time: there was an error.
        self.outbox = []
        self.moved = {}  # Bodies whose positions other workers want to know.
        self.live = 0
        self.steps = 0  # How often a body was let run.
        self.events = 0
        self.lab = 0.0  # When the last event was.
        self.prints = {}

    # -- What happens next

    def run(self, limit: int) -> bool:
        """Let bodies run, about so many events; return whether any could go on."""
        body: Body
        left: cython.longlong = limit
        while left > 0:
            if self.dropped:
                self.let_go()
            if self.place >= len(self.batch):
                if not self.awake:
                    self.batch = []
                    self.place = 0
                    return False
                self.batch = self.awake
                self.awake = []
                self.place = 0
                if self.shuffle is not None:
                    self.shuffle(self.batch)
            body = self.batch[self.place]
            self.place += 1
            body.queued = False
            left -= 1
            if body.is_here and not body.done and not body.frozen:
                self.steps += 1
                left -= self._let(body, _SLICE)
        return True

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _let(self, body: Body, limit: cython.longlong) -> cython.longlong:
        """Let a body run until it blocks, or has had so many events; return how many it had."""
        best: Lane
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
                    if due == _NEVER and (best.gone or best.source.done):  # Nobody is left who could send on it.
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
                # Nothing will ever happen to it; or somebody has failed before, and only what was before counts.
                body.parked = True
                self._publish(body)
                return handled
            body.moved = True
            if best is not None and best.is_news:
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
                self._wake(body)
                return handled

    @cython.final
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

    @cython.final
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

    @cython.final
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

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _perform(self, body: Body, lane: Lane, tau: cython.double) -> cython.int:
        """Let a body absorb what is due on a lane."""
        item: Lambda
        arguments: object
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

    @cython.final
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

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _act(self, body: Body, function: object, arguments: object) -> cython.int:
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
            if body.done and body.name in self.graves:
                body.agent = body.receiver = None  # They refer to each other, and nobody else needs them.
        if self.trace is not None:
            self._look_around(body)
        return 0

    # -- What others learn of it

    @cython.ccall
    def emit(
        self, lane: Lane, kind: cython.int, function: object, arguments: object, content: cython.ulonglong, ends: object
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
            names = lane.name, lane.source.name, lane.source.home, target.name
            parts = item.at, item.order, item.kind, item.function, item.arguments, int(item.content), item.ends
            self.outbox.append((target, _Flying(*names, *parts)))

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _push(self, lane: Lane, item: Lambda) -> cython.int:
        if lane.head is None and lane.place >= 0 and lane.target.dues[lane.place] == _NEVER:
            put_due(lane.target, lane, lane.target.tau)
        lane.push(item)
        # Whoever waits, waits for an earlier block than this; but a lane without a source that counts blocks nobody.
        if lane.source is lane.target or not lane.source.is_here:
            self._wake(lane.target)
        return 0

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _publish(self, body: Body) -> cython.int:
        """Let everybody know where a body is, and wake those who wait for it."""
        waiter: Body
        body.moved = False
        body.trajectory.put(body.tau, body.here)
        body.known = True
        if body.waiters:
            for waiter in body.waiters:
                waiter.waits_for = None
                self._wake(waiter)
            body.waiters.clear()
        if body.partners:
            self.moved[body.name] = body
        return 0

    @cython.final
    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wake(self, body: Body) -> cython.int:
        if not body.queued and not body.done and body.is_here:
            body.queued = True
            self.awake.append(body)
        return 0

    def note(self, kind: str, body: Body, name: str, facts: object) -> None:
        """Keep a record for the trace."""
        if self.trace is not None:
            self.trace.append((body, body.notes, kind, body.point, body.local_time, name, facts))
            body.notes += 1


def _no_time(lane: object, point: Vector) -> Stuck:
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
def _sift_up(body: Body, place: cython.Py_ssize_t) -> cython.int:
    lane: Lane = body.lanes[place]
    due: cython.double = body.dues[place]
    above: cython.Py_ssize_t
    other: Lane
    while place > 0:
        above = (place - 1) // 2
        if body.dues[above] <= due:
            break
        other = body.lanes[above]
        body.lanes[place] = other
        body.dues[place] = body.dues[above]
        other.place = place
        place = above
    body.lanes[place] = lane
    body.dues[place] = due
    lane.place = place
    return 0


@cython.cfunc
def sift_down(body: Body, place: cython.Py_ssize_t) -> cython.int:
    lane: Lane = body.lanes[place]
    due: cython.double = body.dues[place]
    size: cython.Py_ssize_t = len(body.lanes)
    below: cython.Py_ssize_t
    other: Lane
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and body.dues[below + 1] < body.dues[below]:
            below += 1
        if body.dues[below] >= due:
            break
        other = body.lanes[below]
        body.lanes[place] = other
        body.dues[place] = body.dues[below]
        other.place = place
        place = below
    body.lanes[place] = lane
    body.dues[place] = due
    lane.place = place
    return 0


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
    return lane.timers[0][1] if lane.timers is not None else lane.head.order


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
