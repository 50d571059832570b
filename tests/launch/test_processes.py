"""Participants' processes: what they are given, what they say, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.federation.transports import PATIENCE_S, PROMPT_S, Strand, eventually
from tests.liveness import is_running
from worldline.federation.environment import ADDRESS, NAME, OUTPUT, LaunchEnvironment
from worldline.launch.file.setup import ParticipantSetup
from worldline.launch.processes import ParticipantProcesses
from worldline.model import UsageError
from worldline.processes.tied import describe_exit

Heard = list[tuple[str, int | None, str]]


@pytest.fixture
def heard() -> Heard:
    return []


@pytest.fixture
def processes(heard: Heard) -> Iterator[ParticipantProcesses]:
    made = ParticipantProcesses(lambda name, now, text: heard.append((name, now, text)))
    yield made
    made.finish(0)


@pytest.fixture
def start(processes: ParticipantProcesses, tmp_path: Path) -> Callable[..., None]:
    """Start Python programs by name, then listen to them."""

    def start_all(**programs: str) -> None:
        for name, program in programs.items():
            part = ParticipantSetup(name=name, directory=tmp_path, command=(sys.executable, "-S", "-c", program))
            processes.start(part, LaunchEnvironment(address="tcp://127.0.0.1:1", name=name))

    return start_all


def test_lines_are_passed_on_with_name_and_time(
    start: Callable[..., None], processes: ParticipantProcesses, heard: Heard
) -> None:
    start(
        a="print('one'); print('\\x1e5000\\x1ftwo'); print('\\x1eno time\\x1fthree'); print('no end', end='')",
        b="import sys; sys.stderr.write('aside\\r\\n'); sys.stdout.buffer.write(b'not \\xff text\\n')",
    )
    processes.finish(PROMPT_S)
    assert [entry for entry in heard if entry[0] == "a"] == [
        ("a", None, "one"),
        ("a", 5000, "two"),
        ("a", None, "\x1eno time\x1fthree"),
        ("a", None, "no end"),
    ]
    assert sorted(entry[2] for entry in heard if entry[0] == "b") == ["aside", "not \ufffd text"]
    assert processes.failed() == {}
    assert sorted(processes.exited()) == ["a", "b"]


def test_one_that_is_given_up_isnt_waited_for(start: Callable[..., None], processes: ParticipantProcesses) -> None:
    start(a="pass", twin="import time; time.sleep(1000)")
    processes.finish(1000, given_up=["twin"])
    assert processes.ended() == ["twin"]


def test_endless_lines_are_passed_on_in_parts(
    start: Callable[..., None], processes: ParticipantProcesses, heard: Heard
) -> None:
    start(a="print('x' * 1_000_000)")
    processes.finish(PROMPT_S)
    assert sum(len(text) for _, _, text in heard) == 1_000_000
    assert max(len(text) for _, _, text in heard) <= 2**17


def test_the_end_waits_until_all_that_was_written_is_heard(tmp_path: Path) -> None:
    heard: list[str] = []
    finishing = threading.Event()

    def hear(_: str, __: int | None, text: str) -> None:
        assert finishing.wait(PATIENCE_S)  # Nothing is passed on before everybody is to have ended.
        heard.append(text)

    processes = ParticipantProcesses(hear)
    program = "for number in range(3000): print(number, 'x' * 10)"
    processes.start(
        ParticipantSetup(name="a", directory=tmp_path, command=(sys.executable, "-S", "-c", program)),
        LaunchEnvironment(),
    )
    eventually(lambda: not finishing.wait(0) and processes.last_words("a"))
    end = Strand(lambda: processes.finish(PATIENCE_S))
    finishing.set()
    end.result()
    assert heard == [f"{number} xxxxxxxxxx" for number in range(3000)]
    assert processes.failed() == {}


def test_the_last_words_are_kept(start: Callable[..., None], processes: ParticipantProcesses) -> None:
    start(a="for n in range(100): print(n)\nraise SystemExit(7)")
    processes.finish(PROMPT_S)
    assert processes.last_words("a") == ["95", "96", "97", "98", "99"]
    assert processes.last_words("nobody") == []
    assert processes.failed() == {"a": "ended with exit code 7"}


def test_a_process_is_given_its_surroundings(
    processes: ParticipantProcesses, heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(OUTPUT, raising=False)
    (tmp_path / "home").mkdir()
    program = f"import os; print(os.getcwd()); [print(os.environ[v]) for v in ('{ADDRESS}', '{NAME}', '{OUTPUT}', 'X')]"
    part = ParticipantSetup(
        name="a",
        directory=tmp_path / "home",
        command=(sys.executable, "-S", "-c", program),
        environment={"X": "y", NAME: "own"},
    )
    processes.start(part, LaunchEnvironment(address="unix:///nowhere", name="a"))
    processes.finish(PROMPT_S)
    assert [text for _, _, text in heard] == [str(tmp_path / "home"), "unix:///nowhere", "own", str(tmp_path), "y"]


def test_what_cant_be_started_is_a_usage_error(processes: ParticipantProcesses, tmp_path: Path) -> None:
    part = ParticipantSetup(name="a", directory=tmp_path, command=("./no-such-program", "--fast"))
    with pytest.raises(UsageError, match=r"a can't be started: .*no-such-program --fast"):
        processes.start(part, LaunchEnvironment())


def test_those_who_dont_end_are_ended_with_all_they_have_started(
    start: Callable[..., None], processes: ParticipantProcesses, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.launch.processes._TERM_S", 0.5)
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    start(
        polite="import os, time; print(os.getpid()); time.sleep(1000)",
        stubborn=f"import os, signal, time; {stubborn}; print(os.getpid()); time.sleep(1000)",
        parent="import os, subprocess; print(subprocess.Popen(['sleep', '1000']).pid)",
    )
    eventually(lambda: len(heard) == 3)
    pids = {name: int(text) for name, _, text in heard}
    eventually(lambda: "parent" in processes.exited())
    assert is_running(pids["parent"])  # Its child goes on, and holds its output open.
    begun = time.monotonic()
    processes.finish(0.1)
    assert time.monotonic() - begun < PROMPT_S * 2
    assert not any(map(is_running, pids.values()))
    assert processes.ended() == ["polite", "stubborn"]
    assert processes.failed() == {}  # What the launcher did itself is no failure of theirs.
    assert [text for name, _, text in heard if name == "parent"][1:] == [
        "worldline: it left this running; it was ended: sleep 1000"
    ]


def test_a_process_has_a_group_of_its_own(
    start: Callable[..., None], processes: ParticipantProcesses, heard: Heard
) -> None:
    start(a="import os; print(os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid())")
    processes.finish(PROMPT_S)
    assert heard == [("a", None, "True True")]
    assert os.getpgrp() != 0


def test_an_exit_is_described() -> None:
    assert describe_exit(3) == "ended with exit code 3"
    assert describe_exit(-signal.SIGKILL) == "was killed by SIGKILL"
    assert describe_exit(-signal.SIGRTMAX) == "was killed by SIGRTMAX"
    assert describe_exit(-63) == "was killed by signal 63"
