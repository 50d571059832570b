"""The processes of one measurement: started apart, watched together, and gone afterwards whatever happened.

Every child leads a session of its own, so that what it starts itself can be ended with it. A child talks to us only by
lines on its standard output that begin with `REPORT`; anything else it prints is kept for error messages. Output goes
to files and not to pipes: a library that logs much must not block on us.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

POLL_S = 0.002
_PROCESSOR_TIME = 2  # Of Linux's clocks of a process: what all of its threads have taken.
STDERR_SHOWN_MAX = 4000

Report = dict[str, Any]


class PeerError(RuntimeError):
    """A measurement that gave no result; the text has the children's own words."""


def report(**facts: Any) -> None:
    """Tell the parent something; called in the child."""
    sys.stdout.write("REPORT " + json.dumps(facts) + "\n")
    sys.stdout.flush()


def stopwatch() -> Callable[[], Report]:
    """Return what tells how long it took since now: by the clock, and of the processor, for this child's threads."""
    _sample(True)
    start, processor = time.perf_counter(), time.process_time()

    def taken() -> Report:
        report = {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - processor}
        _sample(False)
        return report

    return taken


PERF_CONTROL = "BENCHMARK_PERF_CONTROL"
"""The environment variable that names the pipe over which `perf` is told when to take samples, if it is to."""


def _sample(takes_samples: bool) -> None:
    if pipe := os.environ.get(PERF_CONTROL):
        Path(pipe).write_text("enable\n" if takes_samples else "disable\n", encoding="utf-8")


def end_after(seconds: float) -> None:
    """End this child after so long by itself, in case that the parent was killed and can't; called in the child."""
    signal.alarm(max(1, round(seconds)))


@dataclass
class Child:
    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    killed: bool = False
    cpu_s: float = 0.0

    def note_processor_time(self) -> None:
        if self.process.returncode is None:  # Otherwise it is what was seen last.
            self.cpu_s = time.clock_gettime(~self.process.pid << 3 | _PROCESSOR_TIME)

    def reports(self) -> list[Report]:
        # The last piece is a line only once its end is there.
        *lines, _ = _content(self.stdout).split(b"\n")
        return [json.loads(line[len(b"REPORT ") :]) for line in lines if line.startswith(b"REPORT ")]

    def said(self) -> str:
        text = _content(self.stderr) or _content(self.stdout)
        return text[-STDERR_SHOWN_MAX:].decode(errors="replace").strip()


def _content(file: IO[bytes]) -> bytes:
    # The file position is shared with the child, so it must not be moved.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


class Children:
    """The children of one measurement; leaving the `with` block kills those that are still there."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children.values():
            # The group may outlive its leader, so it is ended even when the leader has been.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
        for child in self._children.values():
            child.process.wait()
            child.stdout.close()
            child.stderr.close()

    def start(self, name: str, command: Sequence[str]) -> None:
        stdout, stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
        self._children[name] = Child(process, stdout, stderr)

    def cpu_s(self, name: str) -> float:
        """How much processor time a child has taken, as of when reports were last looked for."""
        return self._children[name].cpu_s

    def kill(self, name: str) -> float:
        """`kill -9` one child; returns when."""
        child = self._children[name]
        child.killed = True
        now = time.monotonic()
        os.kill(child.process.pid, signal.SIGKILL)
        return now

    def reports(self, names: Iterable[str], count: int = 1, wait_s: float = math.inf) -> dict[str, Report]:
        """The last of so many reports of each of these; a TimeoutError if that takes longer than `wait_s`."""
        wanted = list(names)
        came = dict(self._come(wanted, count, time.monotonic() + wait_s))
        return {name: came[name] for name in wanted}

    def reports_as_they_come(self, names: Iterable[str]) -> Iterator[Report]:
        """The first report of each of these, for those who needn't hear them all."""
        for _, said in self._come(list(names), 1, math.inf):
            yield said

    def _come(self, waiting: list[str], count: int, until: float) -> Iterator[tuple[str, Report]]:
        waiting = list(waiting)
        while True:
            # Looked at before the reports: whoever ends with an error after its report has still measured.
            trouble = self._trouble(waiting)
            for child in self._children.values():
                child.note_processor_time()
            for name in list(waiting):
                said = self._children[name].reports()
                if len(said) >= count:
                    waiting.remove(name)
                    yield name, said[count - 1]
            if not waiting:
                return
            if trouble:
                raise PeerError(trouble)
            if time.monotonic() > until:
                raise TimeoutError(", ".join(waiting))
            time.sleep(POLL_S)

    def _trouble(self, waiting: Sequence[str]) -> str | None:
        for name, child in self._children.items():
            code = child.process.poll()
            if code and not child.killed:
                return f"{name} ended with exit code {code}:\n{child.said()}"
            if code == 0 and name in waiting:
                return f"{name} ended without a word of what it measured:\n{child.said()}"
        if time.monotonic() > self._deadline:
            said = "\n".join(f"{name}: {child.said() or 'nothing'}" for name, child in self._children.items())
            return f"no word from {', '.join(waiting)} within {self.timeout_s:g} s; they said:\n{said}"
        return None
