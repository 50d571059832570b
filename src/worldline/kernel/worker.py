"""One worker's share of a simulation: its entities, its queue, and its account of what happened."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

from worldline.history.observer import OUTSIDE
from worldline.history.outcome import End
from worldline.history.telling import Key
from worldline.kernel.entity import Entity
from worldline.kernel.model import Model, Sending, WorkerReport
from worldline.kernel.pacing import Pacing, WorkerProgress
from worldline.kernel.packing import fingerprint
from worldline.kernel.process import advance
from worldline.kernel.roster import Roster, monitors_of
from worldline.model.errors import InternalError, WorldlineError
from worldline.model.time import FOREVER, format_time
from worldline.processes.failures import Failure, begin_run
from worldline.processes.mesh import Peers
from worldline.processes.status_timer import Look

Letter = tuple[int, int, str, int, str, int, str, object]


class Worker:
    """Holds those entities of a model that `workers` gives to number `me`; all of them, if it is empty."""

    def __init__(self, model: Model, workers: Sequence[int] = (), me: int = 0) -> None:
        begin_run()
        self.roster = Roster(model.names, model.topology, model.seed, workers, me)
        self.engine = self.roster.engine
        for place, name in enumerate(model.names):
            if not workers or workers[place] == me:
                self.roster.add(name, model.entities[name])
        self._me = me
        self._outside = self.roster.outside()
        self._sent_from_outside = 0
        self._past = 0  # All that arrives before this is known, or pacing is wrong.
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

    def advance(self, end: int, limit: int = FOREVER) -> int:
        self._past = end
        return int(advance(self.engine, end, limit))

    def key(self) -> Key:
        """Return the place of the event at hand, or of the last one, in the order of all events of all workers.

        They go by arrival, time sent, whether from outside, sender, and the sender's own order.
        """
        engine = self.engine
        sender = engine.sender.name
        return engine.now, engine.sent, sender == OUTSIDE, sender, engine.order

    def take_outbox(self) -> list[Letter]:
        """Return what was sent to other workers since the last time."""
        outbox: list[Letter] = self.engine.outbox
        self.engine.outbox = []
        return outbox

    def accept(self, letters: Sequence[Letter]) -> None:
        """Take in what other workers have sent."""
        roster, accept = self.roster, self.engine.accept
        for arrival, sent, sender, order, receiver, _, topic, payload in letters:
            if arrival < self._past:
                raise InternalError(
                    f"a message from {sender}, sent at {format_time(sent)}, arrives at {format_time(arrival)}, "
                    f"but worker {self._me} was let go to {format_time(self._past)}",
                    participant=receiver,
                    at=self.engine.now,
                )
            accept(arrival, sent, roster.sender(sender), order, roster.sender(receiver), topic, payload)

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


# What every worker that runs among others does: go as far as it may, tell the others, take in what they say.


class DistributedWorker:
    """One worker among others."""

    def __init__(self, worker: Worker, pacing: Pacing, channel: Peers, me: int, count: int) -> None:
        self._worker = worker
        self._pacing = pacing
        self._channel = channel
        self._others = [other for other in range(count) if other != me]
        self._told: WorkerProgress | None = None
        self._letters: list[list[Letter]] = [[] for _ in range(count)]

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
                self._collect()  # First, since what is under way makes bounds smaller.
                events = look(worker.engine.now, worker.engine.events)
                base = worker.engine.queue.next_time()
                self._tell(pacing.progress_at(base, pacing.bound(base)))
                heard = self._channel.poll()
            else:
                self._tell(pacing.progress_at(base, bound))
                heard = self._channel.wait()
            for other, frame in heard:
                end = min(end, self._hear(other, frame))

    def _fail(self, error: WorldlineError) -> Failure:
        engine = self._worker.engine
        self._collect()
        self._tell(self._pacing.farewell(engine.now))
        return Failure(self._worker.key(), error)

    def _collect(self) -> None:
        """Sort what was sent to other workers by worker."""
        if self._worker.engine.outbox:
            for letter in self._worker.take_outbox():
                self._letters[self._worker.roster.worker_of(letter[5])].append(letter)
            for other in self._others:
                self._pacing.count_sent(other, len(self._letters[other]))

    def _tell(self, progress: WorkerProgress) -> None:
        """Send what is for others, and tell all where this one stands, unless they know."""
        if progress == self._told:
            return
        self._told = progress
        for other in self._others:
            letters = self._letters[other]
            self._channel.post(other, pickle.dumps((tuple(progress), letters), protocol=5))
            if letters:
                self._letters[other] = []

    def _hear(self, other: int, frame: bytes) -> int:
        """Take in a frame; return when the run ends as far as that one knows."""
        told, letters = pickle.loads(frame)
        progress = WorkerProgress(*told)
        self._pacing.hear(other, progress, len(letters))
        self._worker.accept(letters)
        # Others go on to the end of that moment: an earlier failure of theirs would be the one to report.
        return progress.failed + 1 if progress.failed < FOREVER else FOREVER
