"""What a program finds around it is its computer's, and the same in every run: host, processor, files, alarms."""

from __future__ import annotations

import os
import platform
import re
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


def test_alarms_come_while_a_program_looks_at_the_clock_and_go_with_it() -> None:
    def look() -> Any:
        rung: list[float] = []
        signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.25)
        while len(rung) < 2:
            time.monotonic()
        return [round(at, 2) for at in rung]

    assert seen_by(look) == [0.5, 0.75]  # And the run has ended.


def test_looking_at_the_processors_clock_takes_processor_time() -> None:
    def look() -> Any:
        while time.process_time() < 0.01:
            pass
        return time.process_time() <= time.monotonic(), os.times().user > 0

    assert seen_by(look) == (True, True)


def test_a_module_that_was_edited_is_loaded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    values = []
    for value in (1, 2):
        (tmp_path / "part.py").write_text(f"V = {value}\n")
        os.utime(tmp_path / "part.py", (value, value))
        (tmp_path / "main.py").write_text("import part, sys\nsys.exit(part.V)\n")
        with pytest.raises(WorldlineError) as caught:
            run(Federation({"box": Machine("main.py", directory=tmp_path)}))
        values.append(re.findall(r"SystemExit: (\d)", str(caught.value)))
    assert values == [["1"], ["2"]]


def test_ages_outlive_a_program_that_is_killed(tmp_path: Path) -> None:
    ages: list[float] = []

    def look() -> None:
        if not Path("kept").exists():
            time.sleep(5)
            Path("kept").touch()
            time.sleep(1)
            Path("kept").touch()
            os.utime("kept", (7, 7))
            Path("made").touch()
        ages.extend(entry.stat().st_mtime for entry in os.scandir())
        time.sleep(10)

    run(Federation({"box": Machine(look, folder=tmp_path)}, faults=("8s kill box 1s",), until="12s"))
    assert ages == [7.0, START_S + 6] * 2


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
