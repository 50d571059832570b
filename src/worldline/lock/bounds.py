"""The bound calculus: how far each clock may go, given what all others may still send.

Theory of operation
-------------------
Clocks are joined by edges sender → receiver of a least latency ≥ 1 ns. For each clock s

    send(s)  = max(promise(s), base(s))                    if s isn't asleep
    send(s)  = max(promise(s), min(base(s), bound(s)))     if s sleeps until its next message
    bound(r) = min over edges s → r of send(s) + latency(s → r)

where `base` is the earliest time at which s acts, as far as s alone decides: its time while it computes, the time
that it has asked for, or for a sleeper the earlier of that and its first queued arrival. Because every latency is
positive, a bound depends only on sends that are strictly earlier, so the equations have exactly one solution.
`fixpoint` finds it for all clocks by Dijkstra's algorithm: a few obvious lines for explanations and for the tests.

To run, the arbiter needs less: it must know *when* a waiting clock's bound reaches its goal. `Bounds` keeps that
incrementally and on demand. A clock that can't reach its goal **rides** on one clock that provably keeps it back:
`blocker.riders` holds the threshold that the blocker's send must reach before another look is worth while. Nothing
else is stored, so a change costs what its riders cost.

A sleeper's send depends on its own bound, so a rider on a sleeper becomes its *sub-goal*: the sleeper itself rides on
another until its bound reaches the smallest threshold that is asked of it. Looking for a blocker through
sleepers is a Dijkstra search backwards from the clock, in which each sleeper is met once, with the hardest demand; it
doesn't creep around cycles of sleepers by single latencies.

Invariants
----------
B1. A clock that rides has a bound below its (sub-)goal, so it isn't kept waiting for nothing.
B2. A clock that is reported ready has a bound of at least what is reported, so it isn't let go too early.
B3. After `settle`, a waiting clock that isn't ready rides, and following the rides ends at one that doesn't wait
    for the calculus.

Why rides can't form a circle: a clock's (sub-)goal G is at most every threshold that others ask of it, and the
threshold that it asks of its blocker is below G by at least the edge's latency. So thresholds fall strictly along a
chain of rides, and a chain that came back to its start would have to ask it for less than its own G. One that peeks may
be asked for less than its G. But G is at most its own time plus any latency into it, so what it asks for is at most its
own send, and that is less than what it is asked for, or none would ride on it: thresholds fall there, too.

Why a sleeper that already rides with a sub-goal ≤ the demand can serve as a blocker without looking further: it is
blocked for that demand too (B1), and by the same argument its chain can't contain the clock that is looking.

Why a search may stop early: no base is below `floor`, so what lies at distance d or more can't make a bound
smaller than floor + d.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from worldline.lock import tuning
from worldline.lock.heap import Heap
from worldline.model.time import FOREVER


class Clock:
    """One clock in the calculus. Read its fields freely; only `Bounds` writes them."""

    __slots__ = (
        "base",
        "distance",
        "goal",
        "ins",
        "looked_at",
        "looked_for",
        "met_in",
        "name",
        "number",
        "promise",
        "reached",
        "riders",
        "riders_max",
        "rides_on",
        "sleeping",
        "subgoal",
        "ticket",
        "toward",
        "tracked",
        "value",
    )

    def __init__(self, name: str, base: int) -> None:
        self.name = name
        self.number = 0  # Its place among all clocks, by which heaps know it.
        self.base = base
        self.promise = base
        self.value = base  # max(promise, base), kept because every search reads it.
        self.sleeping = False
        self.goal = 0  # The bound that it waits for; 0 if it doesn't wait.
        self.reached = 0  # Its bound as far as it was explored, when the goal was last found to be reached.
        self.ins: list[tuple[Clock, int]] = []
        self.looked_at = 0  # The place among many senders at which the last look for `looked_for` ended.
        self.looked_for = 0
        self.riders = Heap()  # Of (threshold, rider, the rider's ticket).
        self.riders_max = tuning.RIDERS_KEPT
        self.rides_on: Clock | None = None
        self.subgoal = 0  # The bound that is known to be out of reach while it rides.
        self.ticket = 0  # Raised with every ride: entries in other clocks' heaps with an older one are void.
        self.tracked = base  # The base under which it stands in the heap of floors.
        self.met_in = 0  # The search that met it last, as a sleeper,
        self.toward: Clock | None = None  # the one that it was reached from then,
        self.distance = 0  # and how far from the origin it is by that.

    def send(self, bound: int) -> int:
        """Return the earliest time at which the clock may send, given its bound."""
        return max(self.promise, min(self.base, bound)) if self.sleeping else self.value


_NO_CLOCKS: list[Clock] = []  # It stays empty.


class Bounds:
    """The clocks of a run, and who of them is ready to go on."""

    def __init__(self) -> None:
        self._clocks: list[Clock] = []
        self._floors = Heap()  # Of (base, clock).
        self._frontier = Heap()  # Of a search: of (distance, sleeper, the clock toward the origin).
        self._ready: list[Clock] = []
        self._doubtful: list[Clock] = []
        self.searches = 0  # What it costs: how often it has looked for what holds a clock,
        self.looks = 0  # and how many senders it has looked at for that.
        self._sleepers_max = tuning.SLEEPERS_MAX
        self._fan_in_small = tuning.FAN_IN_SMALL
        self._riders_kept = tuning.RIDERS_KEPT
        self._gone_kept = tuning.GONE_KEPT

    def add(self, clock: Clock) -> None:
        clock.number = len(self._clocks)
        self._clocks.append(clock)
        self._floors.push(clock.base, clock.number)

    def rewire(self, clock: Clock, ins: list[tuple[Clock, int]]) -> None:
        """Replace the edges into a clock that doesn't ride, or drop some whose senders can't hold it."""
        clock.ins = ins
        clock.looked_for = 0

    def connect(self, sender: Clock, receiver: Clock, latency: int) -> None:
        """Add an edge where there was none. Bounds only shrink by it, so every ride stays true."""
        assert latency >= 1, "A3: every latency is positive, and all progress rests on that"
        receiver.ins.append((sender, latency))

    def change(self, clock: Clock, base: int, promise: int, goal: int = 0, sleeping: bool = False) -> None:
        """Set what a clock says of itself; `settle` looks again at it and at those that this may set free."""
        clock.base = base
        clock.promise = promise
        clock.value = value = promise if promise > base else base
        clock.sleeping = sleeping
        clock.goal = goal
        clock.rides_on = None
        clock.ticket += 1
        if base < clock.tracked:
            self._track_lower(clock, base)
        if clock.riders.size:
            self._release(clock, promise if sleeping else value)
            if sleeping or goal:
                self._doubtful.append(clock)
        elif goal:
            self._doubtful.append(clock)

    def _track_lower(self, clock: Clock, base: int) -> None:
        clock.tracked = base
        if self._floors.size > 2 * len(self._clocks):
            # Its former entry, now void, would stay until the floor had reached it: perhaps for ever.
            self._floors.clear()
            for each in self._clocks:
                self._floors.push(each.tracked, each.number)
        else:
            self._floors.push(base, clock.number)

    def take_ready(self) -> list[Clock]:
        """Settle, and return the clocks whose goal is reached."""
        if self._doubtful:
            self.settle()
        if not self._ready:
            return _NO_CLOCKS
        ready, self._ready = self._ready, []
        return ready

    def settle(self) -> None:
        """Look at all that is in doubt; only now, because a change often undoes the doubts of the one before it."""
        doubtful = self._doubtful
        while doubtful:
            self._examine(doubtful.pop())

    def floor(self) -> int:
        """Return the least base of all: none acts, sends or subscribes before it."""
        floors = self._floors
        while floors.size:
            tracked = floors.time()
            clock = self._clocks[floors.number()]
            if tracked == clock.tracked:
                if tracked >= clock.base:
                    return tracked
                clock.tracked = clock.base  # If that is FOREVER, it comes back when it is lowered.
                if clock.base < FOREVER:
                    floors.push(clock.base, clock.number)
            floors.pop()  # Otherwise it was lowered since, and stands elsewhere in the heap, too.
        return FOREVER

    def _release(self, clock: Clock, reached: int) -> None:
        """Put those riders in doubt whose threshold the clock's send has reached."""
        riders = clock.riders
        while riders.size and riders.time() <= reached:
            rider = self._clocks[riders.number()]
            if rider.ticket == riders.mark():
                rider.rides_on = None
                self._doubtful.append(rider)
            riders.pop()

    def _demand(self, clock: Clock) -> int:
        """Return the smallest bound that is asked of a clock, by itself or by those who ride on it; 0 if none is."""
        goal = clock.goal
        if clock.sleeping:
            riders = clock.riders
            while riders.size:
                if self._is_valid(riders):
                    threshold = riders.time()
                    # A threshold above the clock's own value is out of reach whatever its bound.
                    return threshold if threshold <= clock.value and (not goal or threshold < goal) else goal
                riders.pop()
        return goal

    def _examine(self, clock: Clock) -> None:
        """Find out whether what is asked of a clock is reached, and let it ride if it isn't."""
        while demand := self._demand(clock):
            if clock.rides_on is not None and clock.subgoal <= demand:
                return
            bound = self._probe(clock, demand)
            if bound < demand:
                return
            if clock.sleeping:
                self._release(clock, clock.send(bound))
            if clock.goal and bound >= clock.goal:
                clock.goal, clock.reached = 0, bound
                self._ready.append(clock)
                return  # It is about to change; what others ask of it is looked at then.

    def _probe(self, clock: Clock, demand: int) -> int:
        """Return the clock's bound if it is at least the demand; otherwise let it ride and return 0."""
        if len(clock.ins) > self._fan_in_small and self._is_held(clock, demand):
            return 0
        self.searches += 1
        self.looks += len(clock.ins)
        best = FOREVER
        blocker, near = None, 0
        through_sleepers = False
        gone = 0
        for sender, latency in clock.ins:
            reach = sender.value + latency
            if sender.sleeping:
                floor = sender.promise + latency
                if floor >= demand:
                    reach = floor
                elif sender.rides_on is not None and sender.subgoal + latency <= demand:
                    demand = self._modest(clock, demand, max(sender.subgoal + latency, floor + 1))
                    self._ride(clock, demand, sender, demand - latency)
                    return 0
                else:
                    through_sleepers = True
            elif reach >= FOREVER:
                gone += 1
            if reach < best:
                best, blocker, near = reach, sender, latency
        if gone > self._gone_kept and 2 * gone > len(clock.ins):
            self.rewire(clock, [edge for edge in clock.ins if edge[0].sleeping or edge[0].value < FOREVER])
        if best < demand:
            assert blocker is not None
            # The slowest sender, not the first one found to be slow: it is the least likely to be passed soon.
            demand = self._modest(clock, demand, best + 1)
            self._ride(clock, demand, blocker, demand - near)
            return 0
        return self._search(clock, demand, best) if through_sleepers else best

    def _is_held(self, clock: Clock, demand: int) -> bool:
        """Let a clock with many senders ride on the next that holds it, if one does; go on where the last look ended.

        Looking at all of them for the slowest, each time that one has passed, would cost their square for every grant.
        Those passed rarely fall back; that none does is left to the look at all of them that comes before a grant.
        """
        if clock.looked_for != demand:
            clock.looked_for, clock.looked_at = demand, 0
        ins = clock.ins
        for place in range(clock.looked_at, len(ins)):
            sender, latency = ins[place]
            reach = sender.value + latency
            if reach < demand:
                self.looks += place - clock.looked_at + 1
                clock.looked_at = place
                demand = self._modest(clock, demand, reach + 1)
                self._ride(clock, demand, sender, demand - latency)
                return True
        self.looks += len(ins) - clock.looked_at
        clock.looked_at = len(ins)
        return False

    def _search(self, origin: Clock, demand: int, best: int) -> int:
        """Do as `_probe`, backwards through senders that sleep; `best` is what the direct senders alone allow."""
        self.searches += 1
        floor = self.floor()
        search = self.searches
        met = 0  # Sleepers so far.
        clocks, frontier = self._clocks, self._frontier
        frontier.clear()
        for sender, latency in origin.ins:
            if sender.sleeping and sender.promise + latency < demand:
                frontier.push(latency, sender.number, origin.number)
        while frontier.size:
            distance, sleeper, toward = frontier.time(), clocks[frontier.number()], clocks[frontier.mark()]
            frontier.pop()
            if floor + distance >= best:
                return best
            if sleeper.met_in == search:
                continue
            if floor + distance >= demand and met >= self._sleepers_max:
                return floor + distance
            met += 1
            sleeper.met_in = search
            sleeper.toward = toward
            sleeper.distance = distance
            self.looks += len(sleeper.ins)
            for sender, latency in sleeper.ins:
                far = distance + latency
                reach = sender.value + far
                if reach < demand:
                    self._ride_along(origin, demand, sleeper, sender, far, reach + 1)
                    return 0
                if sender.sleeping and sender is not origin and sender.met_in != search:
                    least = sender.promise + far
                    if least >= demand:
                        reach = least
                    elif sender.rides_on is not None and sender.subgoal + far <= demand:
                        self._ride_along(origin, demand, sleeper, sender, far, sender.subgoal + far)
                        return 0
                    elif floor + far < best:
                        frontier.push(far, sender.number, sleeper.number)
                if reach < best:
                    best = reach
        return best

    def _ride_along(
        self, origin: Clock, demand: int, sleeper: Clock, blocker: Clock, far: int, unreachable: int
    ) -> None:
        """Let every sleeper from the blocker back to the origin ride on the one before it."""
        if blocker.sleeping:
            unreachable = max(unreachable, blocker.promise + far + 1)
        passed: Clock | None = sleeper
        while passed is not None and passed is not origin:  # Through a sleeper comes nothing earlier than its promise.
            unreachable = max(unreachable, passed.promise + passed.distance + 1)
            passed = passed.toward
        demand = self._modest(origin, demand, unreachable)
        passed = sleeper
        while passed is not None and passed is not origin:
            self._ride(passed, demand - passed.distance, blocker, demand - far)
            blocker, far, passed = passed, passed.distance, passed.toward
        self._ride(origin, demand, blocker, demand - far)

    def _modest(self, clock: Clock, demand: int, unreachable: int) -> int:
        """Return a little less than a sleeper's own goal, but not what it can't reach yet anyway.

        So the next one who searches through this sleeper, for nearly the same, can stop here: with exact demands,
        sleepers around a one-way ring that all wait for the same time would each search the whole ring. It costs a few
        more looks; each leaves an eighth of the way to the next. What riders ask for is passed on as it is, since small
        discounts would add up along a chain.
        """
        if clock.sleeping and demand == clock.goal:
            demand -= (demand - unreachable) >> 3
        return demand

    def _ride(self, clock: Clock, subgoal: int, blocker: Clock, threshold: int) -> None:
        """Let a clock ride until the blocker's send reaches the threshold."""
        assert threshold < subgoal, "B3: thresholds fall along a chain of rides, so that it ends"
        clock.rides_on = blocker
        clock.subgoal = subgoal
        clock.ticket += 1
        riders = blocker.riders
        riders.push(threshold, clock.number, clock.ticket)
        if riders.size > blocker.riders_max:
            # Those who have gone on since would stay here until the blocker had reached what they asked for.
            blocker.riders = Heap()
            while riders.size:
                if self._is_valid(riders):
                    blocker.riders.push(riders.time(), riders.number(), riders.mark())
                riders.pop()
            blocker.riders_max = max(self._riders_kept, 2 * blocker.riders.size)

    def _is_valid(self, riders: Heap) -> bool:
        """Whether the first of the riders still rides."""
        clock = self._clocks[riders.number()]
        return clock.ticket == riders.mark()


def fixpoint(clocks: list[Clock]) -> dict[str, tuple[int, list[tuple[Clock, int]]]]:
    """Return every clock's exact bound and the chain of (sender, latency) that sets it, nearest first.

    The last clock of a chain is the holder: the one whose promise or base sets the bound. A clock that none can
    reach has the bound FOREVER and an empty chain.
    """
    outs: dict[str, list[tuple[Clock, int]]] = {clock.name: [] for clock in clocks}
    for receiver in clocks:
        for sender, latency in receiver.ins:
            if sender.name in outs:  # Not one that has left.
                outs[sender.name].append((receiver, latency))
    bounds: dict[str, tuple[int, list[tuple[Clock, int]]]] = {clock.name: (FOREVER, []) for clock in clocks}
    settled: dict[str, bool] = {}
    queue = [(clock.value, number, clock) for number, clock in enumerate(clocks)]
    heapify(queue)
    serial = len(clocks)
    while queue:
        send, _, sender = heappop(queue)
        if sender.name in settled:
            continue
        settled[sender.name] = True
        for receiver, latency in outs[sender.name]:
            reach = min(send + latency, FOREVER)
            if reach < bounds[receiver.name][0]:
                # A sleeper that its own bound wakes passes its holder on; one that acts by itself is the holder.
                woken = sender.sleeping and bounds[sender.name][0] < sender.base and send > sender.promise
                chain = bounds[sender.name][1] if woken else []
                bounds[receiver.name] = (reach, [(sender, latency), *chain])
                if receiver.sleeping:
                    serial += 1
                    heappush(queue, (receiver.send(reach), serial, receiver))
    return bounds
