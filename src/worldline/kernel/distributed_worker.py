"""What every worker that runs among others does: go as far as it may, tell the others, take in what they say."""

from __future__ import annotations

import pickle
from collections.abc import Callable

from worldline.kernel.pacing import Pacing, WorkerProgress
from worldline.kernel.worker import Letter, Worker
from worldline.model.errors import WorldlineError
from worldline.model.time import FOREVER
from worldline.workers.failures import Failure
from worldline.workers.peers import Peers
from worldline.workers.status_timer import Look


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
        """Send what is for others, and tell everybody where this one stands, unless they know."""
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
