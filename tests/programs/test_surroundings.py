"""What a program finds around it is its computer's, and the same in every run: host, processor, files, alarms."""

from __future__ import annotations

import os
import platform
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worldline import Federation, Machine, WorldlineError, run

START_S = 1_767_225_600.0


def seen_by(program: Callable[[], Any], folder: Path | None = None) -> Any:
    """Return what a program returns on a computer of its own, called "box"."""
    seen: list[Any] = []
    run(Federation({"box": Machine(lambda: seen.append(program()), folder=folder)}))
    return seen[0]


def test_a_computer_has_its_name_and_one_core_that_is_never_busy() -> None:
    def look() -> Any:
        time.sleep(2)
        return (
            (platform.node(), platform.uname().node, os.uname().nodename, os.getppid(), platform.processor()),
            (os.cpu_count(), os.sched_getaffinity(0), os.getloadavg()),
            (time.process_time(), time.thread_time_ns(), resource.getrusage(resource.RUSAGE_SELF).ru_utime),
            (time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_BOOTTIME), os.times().elapsed),
        )

    assert seen_by(look) == (
        ("box", "box", "box", 1, ""),
        (1, {0}, (0.0, 0.0, 0.0)),
        (0.0, 0, 0.0),
        (START_S + 2, 2_000_000_000, 2.0),
    )
    assert os.uname().nodename == platform.node() != "box"
    assert time.process_time() > 0


def test_files_are_as_old_as_the_run_or_what_was_written_to_them(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")

    def look() -> Any:
        time.sleep(3)
        Path("new").write_text("x")
        with Path("new").open() as new:
            ages = (Path("old").stat().st_mtime, os.fstat(new.fileno()).st_mtime_ns, Path("new").stat().st_size)
        Path("new").rename("newer")
        return ages, Path("newer").stat().st_mtime, Path("newer").stat()[8], Path(__file__).stat().st_mtime

    assert seen_by(look, tmp_path) == (
        (START_S, int(START_S + 3) * 1_000_000_000, 1),
        START_S + 3,
        int(START_S + 3),
        START_S,
    )


def test_folders_are_sorted(tmp_path: Path) -> None:
    names = [f"{number * 7919 % 100:02}" for number in range(40)]
    for name in names:
        (tmp_path / name).touch()
    assert seen_by(
        lambda: (
            [path.name for path in Path().iterdir()],
            [entry.name for entry in os.scandir()],
            next(os.walk("."))[2],
        ),
        tmp_path,
    ) == (
        sorted(names),
        sorted(names),
        sorted(names),
    )


def test_temporary_files_are_a_programs_own_and_go_with_it() -> None:
    def look() -> Any:
        with tempfile.NamedTemporaryFile("w") as file, tempfile.TemporaryDirectory() as folder:
            file.write("text")
            Path(folder, "more").write_text("text")
            return folder

    first, second = seen_by(look), seen_by(look)
    assert Path(first).name == Path(second).name
    assert not Path(first).parent.exists()


def test_alarms_ring_in_simulated_time() -> None:
    rung: list[float] = []

    def look() -> Any:
        signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        signal.alarm(2)
        time.sleep(5)
        assert signal.setitimer(signal.ITIMER_REAL, 0.5, 0.25) == (0.0, 0.0)
        for _ in range(3):
            signal.pause()
        return signal.getitimer(signal.ITIMER_REAL), signal.setitimer(signal.ITIMER_REAL, 0), signal.alarm(0)

    assert seen_by(look) == ((0.25, 0.25), (0.25, 0.25), 0)
    assert rung == [2.0, 5.5, 5.75, 6.0]


def test_a_signal_to_itself_is_handled_at_once_also_if_a_thread_sends_it() -> None:
    heard: list[Any] = []

    def look() -> Any:
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(len(heard)))
        os.kill(os.getpid(), signal.SIGUSR1)
        first = list(heard)
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        signal.pause()
        return first, list(heard), time.monotonic()

    assert seen_by(look) == ([0], [0, 1], 1.0)


def test_input_is_at_its_end() -> None:
    assert seen_by(lambda: (sys.stdin.read(), sys.stdin.readline(), list(sys.stdin), sys.stdin.isatty())) == (
        *("", "", []),
        False,
    )


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda: Path("/dev/urandom").read_bytes(), "it opens /dev/urandom"),
        (lambda: signal.sigwait([signal.SIGUSR1]), "it waits for a signal without a handler"),
    ],
)
def test_what_would_differ_or_hang_is_refused(does: Callable[[], Any], said: str) -> None:
    with pytest.raises(WorldlineError, match=said):
        seen_by(does)
