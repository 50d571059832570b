"""What every worker does: let its agents run, tell the others what is for them, take in what they say.

Theory of operation
-------------------
Frames between two workers keep their order; that is all that is asked of a channel. A data frame has lambdas for agents
of the other worker, and then positions of agents that somebody there waits for. So a position never arrives before
what was sent until then, and bounds what comes later (S2 of `core.py`), whichever way it goes.

Worker 0 leads. It finds out when nothing can happen any more: all are idle, and each has taken in as many data frames
as each other has sent to it, by the last that they said. Those counts are of one cut through the run that no frame
crosses, so it stays like that: the run is over, or stuck, or was broken off by an error.

Agents move while the run stands still: everybody says `paused` to everybody, after which nothing is under way; then
all tell the leader about their residents, the leader says who goes where, and bodies are exchanged. Moves never change
what happens: a body takes all along that its next event depends on, and what others think of its position is only
a bound.
"""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from worldline.model.errors import WorldlineError
from worldline.spacetime.build import Body, Core, new_lambda
from worldline.spacetime.moving import packed_if_possible, unpacked
from worldline.spacetime.placement import Placing, Resident, cut_of, imbalance
from worldline.workers.looks import Look
from worldline.workers.peers import Peers

_SLICE = 512
_SHOWN_MAX = 1e9  # The bar counts in billionths, and ends there.
_LEADER = 0
_SHARE = 0.02
_WORTHWHILE = 1.15  # A move must promise at least so much less work for the busiest, or as much fewer cut channels.


def broken_off(error: WorldlineError) -> bytes:
    """Return the frame by which a worker that can't go on tells the others why."""
    return pickle.dumps(("broken", error), protocol=5)


class Crew:
    """One worker among others."""

    def __init__(self, core: Core, channel: Peers, count: int, placing: Placing) -> None:
        self._core = core
        self._channel = channel
        self._count = count
        self._me = core.me
        self._others = [other for other in range(count) if other != core.me]
        self._sent = [0] * count
        self._received = [0] * count
        self._told_cap = core.cap
        self._idle: list[Any] = [None] * count  # What each has said when it was idle last.
        self._is_swept = self._is_swept_now = False
        self._steps_at_sweep = 0
        self._is_over = False
        self._placing = placing
        self._round = 0  # How often the run has stood still, for moves.
        self._round_wanted = 0
        self._is_moving = False
        self._unheard: list[tuple[int, tuple[Any, ...]]] = []
        self._balanced = self._looked = time.monotonic()
        self._events_at_wish = -1
        self._letters = self._letters_seen = 0  # What was sent to other workers.
        self._events = [0] * count
        self._events_seen = [0] * count
        self._share_min = inf
        self._events_before: dict[str, int] = {}
        self._hearers: dict[str, Callable[..., None]] = {
            "data": self._hear_data,
            "idle": self._hear_idle,
            "sweep": self._hear_sweep,
            "over": self._hear_over,
            "wish": self._hear_wish,
            "pause": self._hear_pause,
            "gather": self._hear_gather,
            "broken": self._hear_broken,
        }
        self._takers: dict[str, Callable[..., None]] = {
            "lambda": self._take_lambda,
            "gone": self._take_gone,
            "watch": self._take_watch,
            "watched": self._take_watched,
            "unwatch": self._take_unwatch,
        }

    def run(self, look: Look) -> None:
        """Do all that happens here."""
        core = self._core
        self._watch_sources()
        events = look(0, 0)
        while not self._is_over:
            is_busy = core.run(min(events, _SLICE))
            events = look(max(0, round(min(core.lab, _SHOWN_MAX) * 1e9)), core.events)
            self._tell()
            self._is_swept_now = False
            if core.steps > self._steps_at_sweep:
                self._is_swept = False
            if is_busy:
                self._idle[self._me] = None
                self._consider_moves()
            else:
                self._say_idle()
            if self._round_wanted > self._round:
                self._move()
            elif not self._is_over and not self._is_swept_now:
                for other, frame in self._channel.poll() if is_busy else self._channel.wait():
                    self._hear(other, pickle.loads(frame))

    # -- What is said

    def _post(self, other: int, *message: Any) -> None:
        self._channel.post(other, pickle.dumps(message, protocol=5))

    def _tell(self) -> None:
        """Send everybody what is for them."""
        core = self._core
        letters: list[list[Any]] = [[] for _ in range(self._count)]
        positions: list[list[Any]] = [[] for _ in range(self._count)]
        while core.outbox:
            outbox, core.outbox = core.outbox, []
            for body, letter in outbox:
                if body.home == self._me:  # It has moved here meanwhile.
                    self._take(letter)
                else:
                    letters[body.home].append(letter)
        if core.moved:
            for body in core.moved.values():
                told = body.name, None if body.done or body.parked else body.position(core.n)
                for other in body.partners:
                    positions[other].append(told)
            core.moved = {}
        is_news = core.cap < self._told_cap
        self._told_cap = core.cap
        for other in self._others:
            if letters[other] or positions[other] or is_news:
                self._post(other, "data", letters[other], positions[other], core.cap, core.events)
                self._sent[other] += 1
                self._letters += len(letters[other])

    def _say_idle(self) -> None:
        """Tell the leader that nothing can happen here, unless it knows."""
        is_alive = self._core.live > 0 and not self._core.failures
        said = tuple(self._sent), tuple(self._received), is_alive, self._is_swept
        if said != self._idle[self._me]:
            self._idle[self._me] = said
            if self._me == _LEADER:
                self._conclude()
            else:
                self._post(_LEADER, "idle", said)

    def _watch_sources(self) -> None:
        """Ask for the positions of all those elsewhere that agents here wait for."""
        asked: dict[str, bool] = {}
        for lane in list(self._core.lanes.values()):
            source = lane.source
            if lane.target.is_here and not source.is_here and not lane.gone and source.name not in asked:
                asked[source.name] = True
                self._core.outbox.append((source, ("watch", source.name, "", lane.target.name, self._me)))
        self._tell()

    # -- What is heard

    def _hear(self, other: int, message: tuple[Any, ...]) -> None:
        self._hearers[message[0]](other, *message[1:])

    def _hear_data(self, other: int, letters: list[Any], positions: list[Any], cap: float, events: int) -> None:
        core = self._core
        self._received[other] += 1
        self._events[other] = events
        for letter in letters:
            self._take(letter)
        for name, position in positions:
            core.hear_position(name, position)
        if cap < core.cap:
            core.cap = self._told_cap = cap

    def _take(self, letter: tuple[Any, ...]) -> None:
        kind, *parts = letter
        self._takers[kind](*parts)

    def _take_lambda(self, names: tuple[str, str, int, str], parts: tuple[Any, ...]) -> None:
        core = self._core
        name, source, home, target = names
        if name.endswith("!") and name not in core.lanes:
            return  # News that nobody waits for any more.
        lane = core.lanes.get(name) or core.lane(name, core.body(source, home), core.body(target, self._me))
        core.deliver(lane, new_lambda(*parts))

    def _take_gone(self, name: str, target: str) -> None:
        self._core.lose(name, self._core.body(target, self._me))

    def _take_unwatch(self, name: str, news: str) -> None:
        lane = self._core.lanes.pop(news, None)
        body = self._core.body(name, self._me)
        if lane is not None and lane in body.outs:
            body.outs.remove(lane)

    def _take_watched(self, news: str) -> None:
        lane = self._core.lanes.get(news)
        if lane is not None:
            lane.asked = False
            self._core.wake(lane.target)

    def _take_watch(self, name: str, news: str, watcher: str, worker: int) -> None:
        core = self._core
        body = core.body(name, self._me)
        assert body.is_here, f"{name} is thought to be here"  # Otherwise the watcher would take it for dead.
        if news:
            lane = core.lane(news, body, core.body(watcher, worker))
            lane.is_news = True
            core.tell_death(body, lane)
            core.outbox.append((lane.target, ("watched", news)))
        body.partners[worker] = True
        core.moved[name] = body

    def _hear_idle(self, other: int, said: Any) -> None:
        self._idle[other] = said
        self._conclude()

    def _conclude(self) -> None:
        """If nothing can happen any more, anywhere, let the run be over; not while others wait for a move, though."""
        said = self._idle
        if self._is_moving or self._round_wanted > self._round:
            return
        if None in said or said[self._me][:2] != (tuple(self._sent), tuple(self._received)):
            return
        pairs = ((here, there) for here in range(self._count) for there in range(self._count))
        if not all(said[here][0][there] == said[there][1][here] for here, there in pairs):
            return
        if any(is_alive for *_, is_alive, _ in said) and not all(is_swept for *_, is_swept in said):
            self._order("sweep")
        else:
            self._order("over")

    def _order(self, what: str) -> None:
        """Tell everybody to do something, as the leader, and do it."""
        for other in self._others:
            self._post(other, what)
        self._hear(self._me, (what,))

    def _hear_sweep(self, _: int) -> None:
        """A channel that is only garbage holds nobody up, whenever it is found to be."""
        gc.collect()
        self._is_swept = self._is_swept_now = True
        self._steps_at_sweep = self._core.steps

    def _hear_over(self, _: int) -> None:
        self._is_over = True

    def _hear_broken(self, _: int, error: WorldlineError) -> None:
        raise error

    # -- Moves

    def _consider_moves(self) -> None:
        """Ask now and then whether agents would be better off elsewhere."""
        clock, events, every_s = time.monotonic(), self._core.events, self._placing.moves_every_s
        if not self._others or every_s is None or clock - self._balanced < every_s:
            return
        if events == self._events_at_wish:  # Moves alone make nothing happen, and there must be an end of them.
            return
        self._balanced, self._events_at_wish = clock, events
        if self._me == _LEADER:
            self._hear_wish(self._me)
        else:
            self._post(_LEADER, "wish")

    def _hear_wish(self, _: int) -> None:
        """Let the run stand still, as the leader, unless that is about to happen."""
        if self._round_wanted == self._round and not self._is_over and self._is_worth_a_pause():
            self._round_wanted += 1
            for other in self._others:
                self._post(other, "pause", self._round_wanted)

    def _is_worth_a_pause(self) -> bool:
        """Whether some have much more to do than others, or more is sent between workers than at first.

        To stand still and look at everybody takes a while, so that much is found out from what is known anyway.
        """
        if not isinstance(self._placing.by, str):
            return True
        clock = time.monotonic()
        if clock - self._looked < (self._placing.moves_every_s or 0.0) / 2:  # Several may wish for it at a time.
            return False
        self._looked = clock
        self._events[self._me] = self._core.events
        lately = [now - before for now, before in zip(self._events, self._events_seen, strict=True)]
        share = (self._letters - self._letters_seen) / (1 + lately[self._me])
        self._events_seen, self._letters_seen = list(self._events), self._letters
        self._share_min = min(share, self._share_min)
        is_uneven = max(lately) * self._count > _WORTHWHILE * sum(lately)
        return is_uneven or share > _WORTHWHILE * self._share_min + _SHARE

    def _hear_pause(self, _: int, number: int) -> None:
        self._round_wanted = max(self._round_wanted, number)

    def _hear_gather(self, other: int, number: int, step: str, told: Any) -> None:
        """Keep what somebody says who is ahead: the leader's wish may have come to it earlier."""
        self._round_wanted = max(self._round_wanted, number)
        self._unheard.append((other, (number, step, told)))

    def _move(self) -> None:
        """Stand still together with all others, and let agents go where they are better off."""
        self._round += 1
        self._is_moving = True
        self._tell()
        self._gathered("paused", [None] * self._count)
        residents = self._residents()
        told = self._gathered("residents", [residents if other == _LEADER else None for other in range(self._count)])
        chosen = self._chosen(told) if self._me == _LEADER else None
        moves = self._gathered("moves", [chosen] * self._count)[_LEADER]
        if moves:
            self._exchange(moves)
        self._balanced = time.monotonic()
        self._is_moving = False
        if self._me == _LEADER:
            self._conclude()

    def _gathered(self, step: str, own: Sequence[Any]) -> list[Any]:
        """Tell each other something; wait until all have told theirs. Whatever else comes in between is taken in."""
        for other in self._others:
            self._post(other, "gather", self._round, step, own[other])
        found = {self._me: own[self._me]}
        while True:
            unheard, self._unheard = self._unheard, []
            for other, said in unheard:
                if said[:2] == (self._round, step):
                    found[other] = said[2]
                else:
                    self._unheard.append((other, said))
            if len(found) == self._count:
                return [found[number] for number in range(self._count)]
            for other, frame in self._channel.wait():
                self._hear(other, pickle.loads(frame))

    def _residents(self) -> list[Resident]:
        core = self._core
        found = []
        before, self._events_before = self._events_before, {}
        for body in core.bodies.values():
            if not body.done:
                sources = tuple(dict.fromkeys(lane.source.name for lane in body.lanes if lane.source is not body))
                load = body.events - before.get(body.name, body.events)
                self._events_before[body.name] = body.events
                found.append(Resident(body.name, body.position(core.n), load, sources))
        return found

    def _chosen(self, told: Sequence[list[Resident]]) -> dict[str, int]:
        """Return who goes where; nobody, if that isn't worth it."""
        now = {resident.name: worker for worker, residents in enumerate(told) for resident in residents}
        everybody = sorted(resident for residents in told for resident in residents)
        if not everybody:
            return {}
        wanted = self._placing.place(everybody, self._count)
        if isinstance(self._placing.by, str):
            gain = imbalance(everybody, now, self._count) / imbalance(everybody, wanted, self._count)
            fewer = (1 + cut_of(everybody, now)) / (1 + cut_of(everybody, wanted))
            if min(gain, fewer) < 1 / _WORTHWHILE or max(gain, fewer) < _WORTHWHILE:
                return {}
        return {name: worker for name, worker in wanted.items() if worker != now[name]}

    def _exchange(self, moves: dict[str, int]) -> None:
        """Let agents go, and take in those that come."""
        core = self._core
        leaving: list[list[Body]] = [[] for _ in range(self._count)]
        for name, worker in moves.items():
            body = core.bodies.get(name)
            if body is not None:
                leaving[worker].append(body)
        ready = [packed_if_possible(core, bodies) for bodies in leaving]
        for worker, (names, _) in enumerate(ready):
            for name in names:
                core.depart(core.bodies[name], worker)
        everybody = [name for names, _ in ready for name in names]
        for gone in self._gathered("leaving", [everybody] * self._count):
            core.homes.update((name, moves[name]) for name in gone)
        for body in core.everybody():
            body.home = core.homes.get(body.name, body.home)
            body.partners = {}
        core.forget_lanes()
        # Here, while all stand still: who is faster goes on, and says new things, before this one has settled.
        core.moved = {}
        self._idle = [None] * self._count
        for arrived in self._gathered("bodies", [data for _, data in ready]):
            unpacked(core, arrived)
        self._gathered("settled", [None] * self._count)  # Until then, nobody may send anything to who is on the move.
        self._watch_sources()
        core.wake_all()
