"""One worker's share of a simulation: its entities, its queue, and how far it may go when it is one among others.

Theory of operation
-------------------
Workers are the clocks of `lock.bounds`, linked by lookaheads: the least latency of any link from an entity of one to
an entity of the other. There is no arbiter between them; each tells all others where it stands, along with the messages
for them, and each works out its own bound from what it has heard:

    bound(w) = min over workers v of value(v) + distance(v → w)

where a distance is the length of the shortest way over lookaheads, through any number of workers, at least one step
long; the way from w back to itself counts as well. `value(v)` is a time before which v sends nothing:

- its *promise*, which holds for ever: v said it when its own bound was known;
- its *base*, the time of its next event, if v said that it waits, and nothing is under way to it that it hadn't
  counted then. Whatever wakes it earlier is a message that another sends later, at or after that one's value; so it is
  covered by the way through v.

The base is what makes idle time free: with promises alone, two workers without events for an hour would promise
each other one lookahead after the other. To know that nothing is under way, each worker says how many messages it has
sent to and received from each other. That takes channels that keep the order of frames between two workers: what a
worker says of itself never overtakes the messages that it counts.

Invariants
----------
P1. No message arrives at a worker before a bound that it has worked out.
P2. When all wait and have heard all that was said, the one with the least base has a bound beyond it: lookaheads are
    positive. So one worker can always go on, and none waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple

from worldline.history.observer import OUTSIDE
from worldline.history.outcome import End
from worldline.history.telling import Key
from worldline.kernel.entity import Entity
from worldline.kernel.model import Model, Sending, WorkerReport, quicken
from worldline.kernel.packing import fingerprint
from worldline.kernel.process import advance
from worldline.kernel.roster import Roster, monitors_of
from worldline.kernel.waiting import Awaited
from worldline.model.errors import WorldlineError
from worldline.model.time import FOREVER
from worldline.processes.failures import Failure, begin_run
from worldline.processes.mesh import Peers
from worldline.processes.status_timer import Look

# -- How far a worker may go

AWAKE = -1


class WorkerProgress(NamedTuple):
    """Where a worker stands. `base` is AWAKE unless it waits; `failed` is the time of its failure, or FOREVER."""

    promise: int
    base: int
    sent: tuple[int, ...]
    received: tuple[int, ...]
    failed: int = FOREVER


class Pacing:
    """What one worker knows of the others."""

    def __init__(self, me: int, lookahead: list[list[int]]) -> None:
        self._me = me
        count = len(lookahead)
        self.others = [other for other in range(count) if other != me]
        distances = _distances(lookahead)
        self._distances = [distances[other][me] for other in range(count)]
        self._sent = [0] * count
        self._received = [0] * count
        nothing = (0,) * count
        self.progress = [WorkerProgress(0, AWAKE, nothing, nothing) for _ in range(count)]
        # How far to go before telling the others: half of what they may be ahead, so that they needn't stop for it.
        ahead = min((lookahead[me][other] for other in self.others), default=FOREVER)
        self.stride = max(1, ahead // 2)

    def count_sent(self, other: int, messages: int) -> None:
        """Note how many messages there were to another worker in all."""
        self._sent[other] = messages

    def hear(self, other: int, told: WorkerProgress, messages: int) -> None:
        """Take in what another worker says, and how many messages came with it."""
        self._received[other] += messages
        # A worker may say less than before, when a message came in that it had covered by waiting; what it said holds.
        promised = self.progress[other].promise
        self.progress[other] = told if told.promise >= promised else told._replace(promise=promised)

    def bound(self, base: int) -> int:
        """Return the time before which nothing can arrive that isn't here; `base` is that of the next event here."""
        bound = base + self._distances[self._me]
        for other in self.others:
            bound = min(bound, self._value(other) + self._distances[other])
        return min(bound, FOREVER)

    def progress_at(self, base: int, bound: int) -> WorkerProgress:
        """Return what to tell the others."""
        if base < bound:
            return WorkerProgress(base, AWAKE, tuple(self._sent), tuple(self._received))
        return WorkerProgress(min(base, bound), base, tuple(self._sent), tuple(self._received))

    def farewell(self, failed: int = FOREVER) -> WorkerProgress:
        """Return what to tell the others at the end: nothing more will come."""
        return WorkerProgress(FOREVER, AWAKE, tuple(self._sent), tuple(self._received), failed)

    def _value(self, other: int) -> int:
        told = self.progress[other]
        if told.base == AWAKE:
            return told.promise
        for third in self.others:
            if third != other and self.progress[third].sent[other] != told.received[third]:
                return told.promise
        return told.base if self._sent[other] == told.received[self._me] else told.promise


def _distances(lookahead: list[list[int]]) -> list[list[int]]:
    """Return the length of the shortest way between each two workers, of at least one step (Floyd and Warshall)."""
    size = range(len(lookahead))
    shortest = [[FOREVER if here == there else lookahead[here][there] for there in size] for here in size]
    for via in size:
        for here in size:
            for there in size:
                shortest[here][there] = min(shortest[here][there], shortest[here][via] + shortest[via][there], FOREVER)
    return shortest


_FEW = 10_000  # Entities, whose memory doesn't matter.


class Worker:
    """Holds those entities of a model that `workers` gives to number `me`; all of them, if it is empty."""

    def __init__(self, model: Model, workers: Sequence[int] = (), me: int = 0) -> None:
        begin_run()
        self.roster = Roster(model.names, model.topology, model.seed, workers, me)
        self.engine = self.roster.engine
        for place, name in enumerate(model.names):
            if not workers or workers[place] == me:
                if len(model.names) <= _FEW:
                    quicken(model.entities[name])
                self.roster.add(name, model.entities[name])
        self._me = me
        self._outside = self.roster.outside()
        self._sent_from_outside = 0
        self._past = 0  # All that arrives before this is known, or pacing is wrong.
        self._topics: dict[int, list[str]] = {}  # Those of other workers, by their numbers there.
        for number, sending in enumerate(model.sendings):
            self.send(sending, number)

    def send(self, sending: Sending, number: int) -> None:
        """Take in what is sent from outside, if its receiver is here; its history is that of all."""
        receiver = self.roster.sender(sending.to)
        said = (self._sent_from_outside, sending.at, sending.content, sending.topic.encode(), sending.to.encode())
        self._sent_from_outside = fingerprint(b"%x %x %x %s %s" % said)
        if self.roster.worker_of(receiver._wl_place) == self._me:
            sent = min(self.engine.now, sending.at - 1)
            self.engine.accept(sending.at, sent, self._outside, 2 * number, receiver, sending.topic, sending.payload)

    def advance(self, end: int, limit: int = FOREVER, stop: Awaited | None = None) -> int:
        self._past = end
        return int(advance(self.engine, end, limit, stop))

    def key(self) -> Key:
        """Return the place of the event at hand, or of the last one, in the order of all events of all workers.

        They go by arrival, time sent, whether from outside, sender, and the sender's own order.
        """
        engine = self.engine
        sender = engine.sender.name
        return engine.now, engine.sent, sender == OUTSIDE, sender, engine.order

    def posted(self, other: int) -> int:
        """Return how many messages there were to entities of another worker, in all."""
        outboxes = self.engine.mail.outboxes
        return int(outboxes[other].posted) if other < len(outboxes) else 0

    def take_letters(self, other: int) -> bytes:
        """Return what was sent to entities of another worker since the last time."""
        outboxes = self.engine.mail.outboxes
        return bytes(outboxes[other].take(self.engine.topics.numbered)) if other < len(outboxes) else b""

    def accept(self, other: int, frame: bytes, start: int, count: int) -> None:
        """Take in so many letters that another worker has sent, which begin there in a frame."""
        self.engine.mail.take_in(self.engine, frame, start, count, self._topics.setdefault(other, []), self._past)

    def present(self) -> list[Entity]:
        """Return the entities that are here: those that ended too, unless they were created during the run."""
        return [entity for entity in self.engine.directory.values() if entity._wl_is_here]

    def part(self) -> WorkerReport:
        engine, endings, present = self.engine, self.roster.endings, self.present()
        members = {each.name: End(endings.get(each.name, FOREVER), each._wl_history) for each in present}
        if self._me == 0:
            members[OUTSIDE] = End(FOREVER, b"%x" % self._sent_from_outside)
        monitors = dict(self.roster.monitors)
        for entity in present:
            for what, monitor in monitors_of(entity):
                monitor.end = endings.get(entity.name)
                monitors[entity.name, what] = monitor
        return WorkerReport(engine.now, engine.events, members, dict(engine.dropped), monitors)


class DistributedWorker:
    """One worker among others: goes as far as it may, tells the others, takes in what they say."""

    def __init__(self, worker: Worker, pacing: Pacing, channel: Peers) -> None:
        self._worker = worker
        self._pacing = pacing
        self._channel = channel
        self._told: WorkerProgress | None = None
        # Promise, base, failure, and how many messages were sent to and received from each; how many come along.
        self._head = Struct(f"@{4 + 2 * len(pacing.progress)}q")

    def run(self, end: int, look: Look, reached: Callable[[int], None] | None = None) -> Failure | None:
        """Do all that happens here before `end`; return the failure if the model has one.

        `reached` is told again and again the time before which all has happened here.
        """
        worker, pacing = self._worker, self._pacing
        events = look(0, 0)
        while True:
            base = worker.engine.queue.next_time()
            bound = pacing.bound(base)
            if reached is not None:
                reached(min(base, bound, end))
            if base >= end and bound >= end:
                self._tell(pacing.farewell())
                return None
            if base < min(bound, end):
                try:
                    worker.advance(min(bound, end, base + pacing.stride), events)
                except WorldlineError as error:
                    return self._fail(error)
                self._count()  # First, since what is under way makes bounds smaller.
                events = look(worker.engine.now, worker.engine.events)
                base = worker.engine.queue.next_time()
                self._tell(pacing.progress_at(base, pacing.bound(base)))
                heard = self._channel.poll()
            else:
                self._tell(pacing.progress_at(base, bound))
                if min(base, bound) < FOREVER:
                    look(min(base, bound, end), worker.engine.events)
                heard = self._channel.wait()
            for other, frame in heard:
                end = min(end, self._hear(other, frame))

    def _fail(self, error: WorldlineError) -> Failure:
        engine = self._worker.engine
        self._count()
        self._tell(self._pacing.farewell(engine.now))
        return Failure(self._worker.key(), error)

    def _count(self) -> None:
        """Count what was sent to other workers: it is under way, though it only leaves with what is told next."""
        for other in self._pacing.others:
            self._pacing.count_sent(other, self._worker.posted(other))

    def _tell(self, progress: WorkerProgress) -> None:
        """Send what is for others, and tell all where this one stands, unless they know."""
        told = self._told
        if progress == told:
            return
        self._told = progress
        promise, base, sent, received, failed = progress
        for other in self._pacing.others:
            count = sent[other] - (told.sent[other] if told is not None else 0)
            head = self._head.pack(promise, base, failed, count, *sent, *received)
            self._channel.post(other, head + self._worker.take_letters(other) if count else head)

    def _hear(self, other: int, frame: bytes) -> int:
        """Take in a frame; return when the run ends as far as that one knows."""
        promise, base, failed, count, *counts = self._head.unpack_from(frame)
        workers = len(counts) // 2
        progress = WorkerProgress(promise, base, tuple(counts[:workers]), tuple(counts[workers:]), failed)
        self._pacing.hear(other, progress, count)
        if count:
            self._worker.accept(other, bytes(frame), self._head.size, count)
        # Others go on to the end of that moment: an earlier failure of theirs would be the one to report.
        return progress.failed + 1 if progress.failed < FOREVER else FOREVER
