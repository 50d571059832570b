# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
"""The core of one worker: its agents' bodies, the lanes between them, and what happens next.

It is made in layers, each of which adds to the one before: `stepping` decides what happens next, and has the theory of
it; `population` has what bodies do on their own, `traffic` channels, and this one other workers.

In a run of several workers a core has the bodies of one. Others stand in it as bodies that aren't here (`is_here`),
whose positions come with frames; what is sent to them goes to the `outbox`. They stand in it as long as a lane or a
reference leads to or from them.
"""

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.worldline.spacetime._lanes import Body, Lane, new_lambda
    from cython.cimports.worldline.spacetime._traffic import Traffic
else:
    from worldline.spacetime.lanes import Body, Lane, new_lambda
    from worldline.spacetime.traffic import Traffic

_SOURCES_HALF = cython.declare(cython.int, 1)
_TARGETS_HALF = cython.declare(cython.int, 2)
_NOT_THERE = cython.declare(object, (False, False, False, None))


@cython.final
@cython.cclass
class Core(Traffic):
    """Bodies and lanes, some of which are shared with other workers."""

    def hear_position(self, name: str, position: object) -> None:
        """Take in where a body of another worker is; None if it is gone."""
        body: Body = self.elsewhere.get(name)
        i: cython.Py_ssize_t
        if body is None:  # Nobody here has to do with it any more.
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
            self._wake(waiter)

    def arrive(self, name: str, state: tuple[object, ...]) -> Body:
        """Let a body live here from now on."""
        body: Body = self.house(name)
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
        del self.bodies[body.name]
        self.elsewhere[body.name] = body
        body.agent = body.receiver = body.random = body.timer = None
        lane: Lane
        for lane in body.lanes:
            lane.place = -1
        body.lanes.clear()
        body.outs.clear()
        body.partners = {}

    def lanes_of(self, chosen: dict[str, Body]) -> list[object]:
        """Return what moves of lanes when these bodies do.

        A lane has two halves. The target's, what is under way on it, goes with the target; the source's, how much has
        been sent, with the source. Where both are in one core it's one object.
        """
        lane: Lane
        body: Body
        halves: dict[str, int] = {}
        found: dict[str, object] = {}
        for lane in self.lanes.values():
            if lane.target.is_here and lane.timers is None and lane.target.name in chosen:
                halves[lane.name] = _TARGETS_HALF
                found[lane.name] = lane
        for body in chosen.values():
            for lane in body.outs:
                halves[lane.name] = _SOURCES_HALF | halves.get(lane.name, 0)
                found[lane.name] = lane
        return [_lane_told(each, halves[name]) for name, each in found.items()]

    def take_lanes(self, lanes: list[object]) -> None:
        """Take in what has moved of lanes, after the bodies."""
        lane: Lane
        half: cython.int
        for name, key, half, (source, source_home, target, target_home), sent, is_news, flags, under_way in lanes:
            lane = self.lane(name, self.body(source, source_home), self.body(target, target_home), key)
            lane.is_news = is_news
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
                lane.attached = False
                if not lane.source.is_here:
                    del self.lanes[lane.name]


def _lane_told(lane: Lane, half: cython.int) -> tuple[object, ...]:
    ends = lane.source.name, lane.source.home, lane.target.name, lane.target.home
    flags: object = _NOT_THERE
    under_way: object = ()
    if half & _TARGETS_HALF:
        flags = lane.attached, lane.gone, lane.asked, lane.floor
        if lane.head is not None:
            under_way = [
                (item.at, item.order, item.kind, item.function, item.arguments, item.content, item.ends)
                for item in lane.under_way()
            ]
    return lane.name, lane.key, half, ends, lane.sent, lane.is_news, flags, under_way
