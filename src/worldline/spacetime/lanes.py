# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
# cython: annotation_typing=True
"""Bodies and lanes: what an agent is in spacetime, who there is, and what is under way. All of this is data.

A lane is a queue of lambdas in the order of emission, from one body to another.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from worldline.spacetime.geometry import Trajectory, Vector

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:
    from worldline.spacetime.geometry import new_doubles

_NEVER = cython.declare(cython.double, inf)

NEWS = "!"
"""What the name of a lane ends in that brings the news of a death; before it is the lane that leads to who dies."""

# Why nothing can be sent on a lane any more, as far as its source knows.
CLOSED = "closed"
DEAD = "its target is dead"


@cython.final
@cython.no_gc  # What it carries has been copied, and refers to nothing else.
@cython.freelist(256)
@cython.cclass
class Lambda:
    """A function under way, with what it is called with and where it was emitted."""

    __slots__ = ("arguments", "at", "content", "ends", "function", "kind", "order")

    if not cython.compiled:
        at: Vector
        order: int
        kind: int
        function: Any
        arguments: Any
        content: int
        ends: Any  # The ends of channels that it carries: name, target, home.


@cython.ccall
def new_lambda(
    at: Vector,
    order: cython.longlong,
    kind: cython.int,
    function: Any,
    arguments: Any,
    content: cython.ulonglong,
    ends: Any,
) -> Lambda:
    made: Lambda = Lambda.__new__(Lambda)
    made.at = at
    made.order = order
    made.kind = kind
    made.function = function
    made.arguments = arguments
    made.content = content
    made.ends = ends
    return made


@cython.final
@cython.cclass
class Body:
    """What an agent is in spacetime: where it is, how it moves, and what is under way to it."""

    def __init__(self, name: str, n: int, home: int) -> None:
        self.name = name
        self.agent: Any = None  # An `Agent`; None where it only stands for one.
        self.receiver: Any = None  # What lambdas are called with: the agent, or what it wraps.
        self.random: dict[Any, Any] | None = None  # Its own draws, by name.
        self.trajectory: Trajectory = None  # type: ignore[assignment] # Given before anything asks for it.
        if cython.compiled and n <= FEW:
            self.here = self.few
        else:
            self.here = new_doubles(n)
        self.known = False
        self.tau = 0.0  # How far it is: nothing earlier will happen to it.
        self.last = 0.0  # When the last event was.
        self.local_start = 0.0
        self.point: Vector = None  # type: ignore[assignment] # As above.
        self.lanes: list[Lane] = []
        self.dues = new_doubles(0)
        self.room = 0
        self.outs: list[Lane] = []
        self.waiters: list[Body] = []
        self.waits_for: Body | None = None
        self.blocked_by: Lane | None = None
        self.timer: Lane | None = None
        self.edge = _NEVER
        self.edge_place = -1
        self.passed: list[int] = []
        self.stale = True
        self.queued = False
        self.moved = False
        self.done = False
        self.frozen = False  # It has failed.
        self.parked = False  # Nothing that counts will happen to it.
        self.home = home
        self.is_here = True
        self.death: Vector | None = None
        self.partners: dict[int, bool] = {}
        self.born = -1
        self.chain = 0
        self.events = 0
        self.notes = 0
        self.shown = ""  # What it was last seen to be shown as.
        self.counts: dict[str, int] = {}

    if cython.compiled:

        def __dealloc__(self) -> None:
            if self.here != self.few:
                PyMem_Free(self.here)
            PyMem_Free(self.dues)

    @property
    def local_time(self) -> float:
        return self.local_start + self.last

    def count(self, what: str) -> int:
        """Return how many of those there have been, this one included."""
        number = self.counts.get(what, 0) + 1
        self.counts[what] = number
        return number

    def position(self, n: int) -> Any:
        """Return where it is known to be, as coordinates; None if that isn't known."""
        place: cython.Py_ssize_t
        found = []
        for place in range(n):
            found.append(self.here[place])  # noqa: PERF401 - As in `Vector.coordinates`.
        return tuple(found) if self.known else None

    def state(self) -> tuple[Any, ...]:
        """Return what moves to another worker with it, besides its agent and lanes."""
        line = self.trajectory.start, self.trajectory.velocity, self.tau, self.last, self.local_start
        history = self.random, self.chain, self.events, self.notes, self.shown, dict(self.counts), list(self.passed)
        return line, self.done, self.frozen, self.death, history

    def restore(self, state: tuple[Any, ...]) -> None:
        line, self.done, self.frozen, self.death, history = state
        start, velocity, self.tau, self.last, self.local_start = line
        self.random, self.chain, self.events, self.notes, self.shown, self.counts, self.passed = history
        self.trajectory = Trajectory(start, velocity)
        self.point = self.trajectory.at(self.last)
        self.trajectory.put(self.tau, self.here)
        self.known = self.stale = self.is_here = True
        self.waits_for = self.blocked_by = None
        self.partners = {}


@cython.final
@cython.cclass
class Register:
    """Who there is at one worker: the bodies that are here, and those that stand for others or for the dead."""

    def __init__(self, n: int, me: int) -> None:
        self.n = n
        self.me = me
        self.bodies: dict[str, Body] = {}
        # By name: those that only stand for one who lives elsewhere or is dead.
        self.elsewhere: WeakValueDictionary[str, Body] = WeakValueDictionary()
        # By name: where one died that was made during the run, its chain, and how many events it had.
        self.graves: dict[str, tuple[Vector, int, int]] = {}
        self.homes: dict[str, int] = {}  # Where bodies have moved to, or were placed.

    def body(self, name: str, home: int) -> Body:
        """Return the body of a name; one that stands for it, if it isn't here."""
        found: Body | None = self.bodies.get(name)
        if found is None:
            found = self.elsewhere.get(name)
        if found is None:
            grave = self.graves.get(name)
            found = Body(name, self.n, self.homes.get(name, home) if grave is None else self.me)
            self.elsewhere[name] = found
            if grave is None:
                found.is_here = False
            else:
                found.done = True
                found.point = found.death = grave[0]
        return found

    def all(self) -> list[Body]:
        """Return all bodies that anything here has to do with."""
        return [*self.bodies.values(), *self.elsewhere.values()]

    def is_known(self, name: str) -> bool:
        """Whether a body here has, or had, a name."""
        return name in self.bodies or name in self.graves

    def add(self, body: Body) -> None:
        self.bodies[body.name] = body

    def rename(self, body: Body, name: str) -> None:
        del self.bodies[body.name]
        body.name = name
        self.bodies[name] = body

    def house(self, name: str) -> Body:
        """Return the body of a name, which lives here from now on."""
        body: Body = self.body(name, self.me)
        self.elsewhere.pop(name, None)
        self.bodies[name] = body
        body.home = self.me
        return body

    def set_aside(self, body: Body) -> None:
        """Let a body only stand for one that is elsewhere, or dead, from now on."""
        del self.bodies[body.name]
        self.elsewhere[body.name] = body

    def bury(self, body: Body) -> None:
        """Keep of one that has died no more than its part in the digest, and where it died."""
        self.graves[body.name] = body.point, int(body.chain), body.events
        self.set_aside(body)


@cython.final
@cython.cclass
class Lane:
    """A channel as the core sees it: who may send on it, to whom, and what is under way.

    `floor` is where the source's end of it was created, as long as it is under way to the source.
    """

    def __init__(self, name: str, key: int, source: Body, target: Body) -> None:
        self.name = name
        self.key = key
        self.source = source
        self.target = target
        self.floor: Vector | None = None
        self.head: Lambda | None = None
        self.rest: deque[Lambda] | None = None  # What comes after it: there is rarely any.
        self.sent = 0
        self.place = -1  # Among the target's lanes, once it is attached there.
        self.exact = False
        self.ended: str | None = None  # CLOSED or DEAD.
        self.gone = False  # Nothing can be sent on it any more; what is under way arrives.
        self.asked = False  # Another worker has been asked for news, and hasn't answered.
        self.handle = 0  # The identity of the object by which the source holds it.
        self.timers: list[Any] | None = None

    @property
    def is_news(self) -> bool:
        """Whether nothing comes on it but the news of a death."""
        return self.name.endswith(NEWS)

    def under_way(self) -> list[Lambda]:
        """Return what has been sent and not absorbed."""
        return [] if self.head is None else [self.head, *(self.rest or ())]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def push(self, item: Lambda) -> cython.int:
        if self.head is None:
            self.head = item
        elif self.rest is None:
            self.rest = deque([item])
        else:
            self.rest.append(item)
        return 0

    @cython.cfunc
    def pop(self) -> Lambda:
        item: Lambda = self.head  # type: ignore[assignment] # There is one, or the lane wouldn't be due.
        self.head = self.rest.popleft() if self.rest else None
        return item

    def clear(self) -> list[Lambda]:
        """Return what is under way, and let it be no longer."""
        found = self.under_way()
        self.head = self.rest = None
        return found
