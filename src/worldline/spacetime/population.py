# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
"""The bodies of one worker: how they begin, are named, move, wait and are seen.

Agents that are made during a run can be without end. So of one that has died no more is kept than its part in the
digest, and where it died: a *grave*. Whoever asks for it later, by its name, is given a body that is dead, and the same
one as long as anybody refers to it.
"""

from heapq import heappush
from math import inf

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

from worldline.kernel.build import Draws
from worldline.kernel.packing import fingerprint
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.message import SEPARATOR, descendant
from worldline.model.randomness import Stream, key_of
from worldline.processes.failures import is_from_outside
from worldline.spacetime.functions import blamed, look_of
from worldline.spacetime.kinds import LOG, TIMER, TURN

if cython.compiled:
    from cython.cimports.worldline.spacetime._geometry import Trajectory, Vector
    from cython.cimports.worldline.spacetime._lanes import Body, Lane
    from cython.cimports.worldline.spacetime._stepping import Stepping, add_lane, linked, put_due
else:
    from worldline.spacetime.geometry import Trajectory, Vector
    from worldline.spacetime.lanes import Body, Lane
    from worldline.spacetime.stepping import Stepping, add_lane, linked, put_due

_TIMER = cython.declare(cython.int, TIMER)
_TURN = cython.declare(cython.int, TURN)
_LOG = cython.declare(cython.int, LOG)
_NEVER = cython.declare(cython.double, inf)
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_fingerprint = cython.declare(object, fingerprint)


@cython.cclass
class Population(Stepping):
    """Bodies: who there is, and what they do on their own."""

    # -- Who there is

    def add(self, kind: str, agent: object) -> Body:
        """Let an agent begin where its maker is, with a name of its own."""
        maker: Body = self.maker()
        if SEPARATOR in kind:
            raise UsageError(f"a class named {shown(kind)} can't name agents", advice="what is before a / is a maker's")
        name = f"{kind}-{maker.count(kind)}"
        while f"/{name}" in maker.counts:  # Somebody was given it.
            name = f"{kind}-{maker.count(kind)}"
        body: Body = Body(self._name_below(maker, name), self.n, self.me)
        body.agent = body.receiver = agent
        body.trajectory = Trajectory(maker.point, self.space.rest)
        body.point = maker.point
        body.born = self.stamp
        self.bodies[body.name] = body
        self.live += 1
        self._publish(body)
        self._wake(body)
        self.note("born", body, maker.name, (self.space.rest, agent))
        if self.trace is not None and self.acting is not None:
            self.newborn.append(body)
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
        name = self._name_below(maker, name)
        del self.bodies[body.name]
        body.name = name
        self.bodies[name] = body

    def _name_below(self, maker: Body, own: str) -> str:
        """Return a name for whom an agent has made. It has the maker's in it, so that only the maker's count."""
        name = descendant(maker.name.partition(SEPARATOR)[0], maker.name, own) if maker.name else own
        if name in self.bodies or name in self.graves:
            raise UsageError(f"there is an agent named {shown(name)} already", advice="every name is used once")
        return name

    def body(self, name: str, home: int) -> Body:
        """Return the body of a name; one that stands for it, if it isn't here."""
        found: Body = self.bodies.get(name)
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

    def house(self, name: str) -> Body:
        """Return the body of a name, which lives here from now on."""
        body: Body = self.body(name, self.me)
        self.elsewhere.pop(name, None)
        self.bodies[name] = body
        body.home = self.me
        return body

    def everybody(self) -> list[Body]:
        """Return all bodies that anything here has to do with."""
        return [*self.bodies.values(), *self.elsewhere.values()]

    def lane(self, name: str, source: Body, target: Body, key: object = None) -> Lane:
        """Return the lane of a name, made if it isn't there; its key follows from the name, but takes a while."""
        found = self.lanes.get(name)
        if found is None:
            found = Lane(name, key_of(self.seed, "channel", name) & _CHAIN if key is None else key, source, target)
            self.lanes[name] = found
        return found

    def acts(self, body: Body) -> bool:
        """Whether the code that runs now is at the body's point: it is the body's own, or has just made it."""
        return not body.done and (body is self.acting or self.setting_up or body.born == self.stamp)

    def draws(self, body: Body, name: object = None) -> object:
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
            self._publish(body)  # It isn't running, so nobody else does it.

    def set_timer(self, body: Body, delay: float, function: object, arguments: object, content: int) -> None:
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
        heappush(lane.timers, (now + delay, number, function, arguments, content))
        put_due(body, lane, max(lane.timers[0][0] - body.local_start, body.last))
        body.chain = linked(body.chain, _TIMER, delay, lane.key, number, content)

    def timer_of(self, body: Body) -> Lane:
        """Return the lane on which a body's own timers come to it."""
        lane: Lane = body.timer
        if lane is None:
            lane = body.timer = self.lane(f"{body.name}:timer", body, body)
            lane.timers = []
            lane.attached = lane.exact = True
            add_lane(body, lane, _NEVER)
        return lane

    def wake(self, body: Body) -> None:
        self._wake(body)

    def wake_all(self) -> None:
        body: Body
        for body in self.everybody():
            body.waiters = []
            body.waits_for = None
        for body in self.bodies.values():
            self._wake(body)

    # -- What is seen of them

    def log(self, body: Body, text: str) -> None:
        """Note what an agent says. It counts: what agents say depends on what they have become."""
        body.chain = linked(body.chain, _LOG, 0.0, _fingerprint(text.encode()), 0, 0)
        self.note("log", body, "", text)

    def look(self, body: Body) -> None:
        """Note what an agent is shown as, if it isn't what it was. That is for pictures alone, and in no history.

        Nobody acts meanwhile, so an agent can't do anything when it is asked; what it draws then doesn't count.
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
        newborn = self.newborn
        self.newborn = []
        for each in (body, *newborn):
            seen: Body = each
            if not seen.done and not seen.frozen:
                try:
                    self.look(seen)
                except BaseException as error:
                    if is_from_outside(error):
                        raise
                    self.fail(seen, "shown_as", error)

    def fail(self, body: Body, function: object, error: BaseException) -> None:
        """Note that a model has failed: nothing that is later in the lab is wanted any more."""
        made = blamed(error, body.name, body.point, function, body.agent)
        self.failures.append((body.point[0], body.name, made))
        self.note("failed", body, made.problem, None)
        self.cap = min(self.cap, body.point[0])
        body.frozen = True
