"""Runs a simulation in several processes on this machine.

The parent only watches. Workers come from a fork server, a process that has Worldline loaded and nothing else, so that
they start in milliseconds and inherit no threads, locks or open files of the parent's. Each two are joined by a socket
of their own, and each by a pipe to the parent, on which it says how far it is and what came of it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import time
import traceback
from itertools import combinations
from multiprocessing import connection
from typing import Any

from worldline.kernel.crew import Crew, Failure
from worldline.kernel.forking import fork_server
from worldline.kernel.mesh import Mesh, PeerGone
from worldline.kernel.model import Model
from worldline.kernel.pacing import Pacing
from worldline.kernel.placement import Placement, place
from worldline.kernel.progress import Progress
from worldline.kernel.reports import failure_told, part_told, settled
from worldline.kernel.result import Result
from worldline.kernel.share import Share, shares_of, unpacked_share
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError, InternalError, LossError, UsageError, WorldlineError

_LOOK_EVERY_S = 0.1
_LOOK_AFTER_EVENTS = 1_000
_LOOK_AFTER_EVENTS_MAX = 1_000_000
_LAST_WORDS_S = 5.0
_BEREFT = 65  # The exit code of a worker that has ended because another had.
_UNGUARDED = 64  # The exit code of a worker that was about to run the whole script again.
_NAMES_SHOWN = 3


class Processes:
    """Runs a simulation in so many processes."""

    is_main = True

    def __init__(self, count: int, placement: Placement | None) -> None:
        self._count = count
        self._placement = placement

    def __str__(self) -> str:
        return f"processes({self._count})"

    def run(self, model: Model, end: int, progress: Progress) -> Result:
        if getattr(multiprocessing.process.current_process(), "_inheriting", False):
            os._exit(_UNGUARDED)  # This is a worker, and its script would start workers: the parent tells.
        workers = place(self._placement, model.names, model.topology, self._count)
        shares = shares_of(model, workers, self._count)
        lookahead = model.topology.lookahead(model.names, workers, self._count)
        with progress, _Staff(shares, lookahead, end) as staff:
            reports = staff.watch(progress)
        return settled(model, reports, end)


class _Staff:
    """The worker processes of one run, from their start to their end, whatever happens."""

    def __init__(self, shares: list[bytes], lookahead: list[list[int]], end: int) -> None:
        self._count = len(shares)
        self._shares = shares
        self._lookahead = lookahead
        self._end = end
        self._processes: list[Any] = []
        self._pipes: list[connection.Connection] = []
        self._reached = [(0, 0)] * self._count
        self._is_over = False

    def __enter__(self) -> _Staff:
        ends: list[dict[int, socket.socket]] = [{} for _ in range(self._count)]
        try:
            # All of them first: if there are too few open files for that, nothing has been started yet.
            for here, there in combinations(range(self._count), 2):
                ends[here][there], ends[there][here] = socket.socketpair()
            context = fork_server(__name__)
            for number, share in enumerate(self._shares):
                mine, theirs = context.Pipe()
                self._pipes.append(mine)
                arguments = (number, self._lookahead, self._end, theirs, ends[number], share)
                process = context.Process(target=_work, args=arguments, name=f"worker {number}", daemon=True)
                process.start()
                self._processes.append(process)
                theirs.close()
                for end in ends[number].values():
                    end.close()
        except (OSError, ValueError) as error:
            self.__exit__()
            raise UsageError(f"{self._count} workers can't be started: {error}", advice="use fewer") from error
        except BaseException:
            self.__exit__()
            raise
        finally:
            for sockets in ends:
                for end in sockets.values():
                    end.close()
        return self

    def __exit__(self, *_: object) -> None:
        """Let everybody go, or make them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_LAST_WORDS_S if self._is_over else 0)
            if process.is_alive():
                process.kill()
                process.join()
            process.close()

    def watch(self, progress: Progress) -> list[Any]:
        """Wait until all have reported; return a part or a failure for each. If one is lost, say which and why."""
        reports: list[Any] = [None] * self._count
        while None in reports:
            ready = connection.wait(self._pipes)
            for number, pipe in enumerate(self._pipes):
                if pipe not in ready:
                    continue
                try:
                    kind, told = pipe.recv()
                except (EOFError, ConnectionError):
                    raise self._end_of_run() from None
                if kind == "reached":
                    self._reached[number] = told
                    now, events = min(now for now, _ in self._reached), sum(events for _, events in self._reached)
                    progress.check(events, now)
                    progress.look(now, events)
                elif kind == "lost":
                    other, at = told
                    self._reached[other] = (max(at, self._reached[other][0]), self._reached[other][1])
                    raise self._end_of_run(other)
                elif kind == "broken":
                    raise _breakdown(number, told)
                else:
                    reports[number] = told
        self._is_over = True
        return reports

    def _end_of_run(self, number: int | None = None) -> WorldlineError:
        """Say why a run can't go on in which somebody is gone: because of what that one has said, or it is lost."""
        for speaker, pipe in enumerate(self._pipes):
            try:
                while pipe.poll():
                    kind, told = pipe.recv()
                    if kind == "broken":
                        return _breakdown(speaker, told)
                    if kind == "failed":
                        error: WorldlineError = told.error
                        return error
            except (EOFError, ConnectionError):
                continue
        return self._loss(number)

    def _culprit(self, suspects: list[int]) -> int:
        """Return the first of the suspects that has ended, and not because another had."""
        until = time.monotonic() + _LAST_WORDS_S
        while True:
            for number in suspects:
                if self._processes[number].exitcode not in (None, _BEREFT):
                    return number
            running = [process.sentinel for process in self._processes if process.exitcode is None]
            if not connection.wait(running, until - time.monotonic()):
                return suspects[0]

    def _loss(self, number: int | None = None) -> WorldlineError:
        """Say what has become of a worker that is gone: that one, unless it went because another had."""
        suspects = list(range(self._count)) if number is None else [number, *range(self._count)]
        number = self._culprit(suspects)
        code = self._processes[number].exitcode
        at = self._reached[number][0]
        if code == _UNGUARDED:
            return UsageError(
                "the script runs the simulation whenever it is loaded, and every worker loads it",
                advice="put what starts the run under: if __name__ == '__main__':",
            )
        how = "is gone" if code is None else f"ended by itself with exit code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        names = list(unpacked_share(self._shares[number]).entities)
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        who = f"worker {number}, with {', '.join(names[:_NAMES_SHOWN]) or 'no entities'}{more}"
        return LossError(f"{who}, {how}", at=at, advice="the run is broken off", worker=number, exit_code=code)


def _breakdown(number: int, trace: str) -> InternalError:
    return InternalError(f"worker {number} broke down: {trace}")


def _work(
    number: int,
    lookahead: list[list[int]],
    end: int,
    pipe: connection.Connection,
    sockets: dict[int, socket.socket],
    share: bytes,
) -> None:
    """Be a worker: the whole life of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent is interrupted too, and ends the workers.
    pacing = Pacing(number, lookahead)
    mesh = Mesh(sockets, pipe)
    try:
        given = unpacked_share(share)
        worker = Worker(_loaded(given), given.workers, number)
        crew = Crew(worker, pacing, mesh, number, len(lookahead))
        failure = crew.run(end, _Looks(pipe))
        if failure is not None:
            pipe.send(("failed", failure_told(failure)))
        else:
            pipe.send(("done", part_told(worker)))
        mesh.linger()
    except PeerGone as gone:
        other = gone.facts["worker"]
        _say(pipe, ("lost", (other, pacing.standings[other].promise)))
        sys.exit(_BEREFT)
    except WorldlineError as error:
        _say(pipe, ("failed", Failure((0, 0, False, "", 0), error)))
    except (BrokenPipeError, EOFError):
        pass  # The parent is gone, and nobody is left who could be told.
    except BaseException:
        _say(pipe, ("broken", traceback.format_exc()))
    finally:
        mesh.close()
        pipe.close()


def _loaded(share: Share) -> Model:
    try:
        return share.model()
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the entities: {error}", advice="define their classes at the top level of a module"
        ) from error


def _say(pipe: connection.Connection, what: object) -> None:
    try:
        pipe.send(what)
    except OSError:
        return  # The parent has seen enough, and is gone or about to end this process.


class _Looks:
    """Tells the parent every now and then how far a worker is, and decides how many events pass in between."""

    def __init__(self, pipe: connection.Connection) -> None:
        self._pipe = pipe
        self._told = self._looked = time.monotonic()
        self._events = _LOOK_AFTER_EVENTS

    def __call__(self, now: int, events: int) -> int:
        clock = time.monotonic()
        if clock - self._looked > _LOOK_EVERY_S:
            self._events = max(1, self._events // 2)
        elif clock - self._looked < _LOOK_EVERY_S / 4:
            self._events = min(2 * self._events, _LOOK_AFTER_EVENTS_MAX)
        self._looked = clock
        if clock - self._told >= _LOOK_EVERY_S:
            self._told = clock
            self._pipe.send(("reached", (now, events)))
        return self._events
