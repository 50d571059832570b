"""Participants that share processes: the same outcome, the same words, and nobody is to blame for another's end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.test_launcher import launch
from tests.soaking import later
from worldline import Server, plan, run
from worldline.federation.environment import ADDRESS
from worldline.launch.file.setup import ParticipantSetup, Setup, read_setup
from worldline.launch.launcher import Launch, LaunchOptions, ProcessShares, federation_of, shares
from worldline.launch.worker import (
    TimeStamps,
    failed_in_share,
    running_mark,
    work,
    write_share,
)
from worldline.model import MS, LossError, ModelError, UsageError

pytestmark = pytest.mark.usefixtures("tidy")

HERE, THERE = Path("/here"), Path("/there")


# --- Who shares a process with whom ---


def parts(*given: ParticipantSetup) -> dict[str, ParticipantSetup]:
    return {part.name: part for part in given}


def entry(name: str, directory: Path = HERE, **more: object) -> ParticipantSetup:
    return ParticipantSetup(name=name, directory=directory, entry="module:function", **more)  # type: ignore[arg-type]


def names(found: dict[str, list[ParticipantSetup]]) -> dict[str, list[str]]:
    return {worker: [part.name for part in share] for worker, share in found.items()}


def test_participants_are_dealt_out_in_the_order_of_their_names() -> None:
    everybody = parts(*map(entry, "edbca"))
    assert names(shares(everybody, 2)) == {"worker 1": ["a", "c", "e"], "worker 2": ["b", "d"]}
    assert names(shares(everybody, 1)) == {"worker 1": ["a", "b", "c", "d", "e"]}


def test_there_are_no_more_workers_than_participants() -> None:
    assert names(shares(parts(entry("a"), entry("b")), 5)) == {"worker 1": ["a"], "worker 2": ["b"]}
    assert shares({}, 5) == {}


def test_commands_and_those_with_an_environment_or_a_directory_of_their_own_share_nothing() -> None:
    everybody = parts(
        entry("a"),
        entry("b", THERE),
        entry("c"),
        entry("d", environment={"HOME": "elsewhere"}),
        ParticipantSetup(name="e", directory=HERE, command=("sleep", "1")),
    )
    assert names(shares(everybody, 1)) == {"worker 1": ["a", "c"]}


def test_a_worker_has_a_name_that_nobody_else_has() -> None:
    assert names(shares(parts(entry("worker 1"), entry("worker 2")), 2)) == {
        "worker 1'": ["worker 1"],
        "worker 2'": ["worker 2"],
    }


@pytest.fixture
def trio() -> Iterator[tuple[ProcessShares, set[str], Path]]:
    """Three who share a process; who of them has left; and the file that says who is there."""
    left: set[str] = set()
    found = ProcessShares(parts(*map(entry, "abc")), 1, tokens=dict.fromkeys("abc"), has_left=left.__contains__)
    found.folder()
    (process,) = found.processes()
    assert process.entry is not None
    yield found, left, Path(process.entry.removeprefix("@"))
    found.close()


def test_the_one_that_runs_is_counted_among_those_who_were_started(trio: tuple[ProcessShares, set[str], Path]) -> None:
    found, left, file = trio
    left.add("a")
    assert found.of("worker 1") == ["a", "b", "c"]  # It has left, but its process is the same.
    found.prepare("worker 1")
    running_mark(file)(0)
    assert found.runner("c") == "b"
    found.note_end("worker 1")
    assert found.failed_in("worker 1") == ["b"]
    assert found.named("b") == "its process, which it shared with c,"


def test_of_a_process_that_is_started_again_only_its_new_life_counts(
    trio: tuple[ProcessShares, set[str], Path],
) -> None:
    found, _, file = trio
    running_mark(file)(1)
    assert found.runner("a") == "b"
    file.write_text('{"a": 1}')
    found.note_end("worker 1")
    assert (found.runner("a"), found.failed_in("worker 1")) == ("b", ["a"])
    found.prepare("worker 1")
    assert (found.runner("a"), found.failed_in("worker 1")) == (None, [])
    found.note_end("worker 1")  # That of the process before, which was noticed late.
    running_mark(file)(2)
    assert found.runner("a") == "c"


# --- In processes ---

PROGRAMS = """
import os, signal, sys

print("loaded")

def chat(self):
    if self.name == "a":
        self.invite("guest", at="9ms")
    draws = self.stream("talk")
    while self.now < 30_000_000:
        self.publish("talk", draws.choice([b"hello", b"hi"]) + self.name.encode())
        for message in self.next(until=self.now + draws.randrange(1_000_000, 5_000_000)):
            self.publish(f"to {message.sender}", message.payload[::-1])
    print("done at", self.now)

def fail(self):
    self.advance(to="3ms")
    print("begun", end="")
    raise ValueError("no more")

def die(self):
    self.advance(to="3ms")
    self.next(until="20ms")
    os.kill(os.getpid(), signal.SIGKILL)

def vanish(self):
    self.advance(to="3ms")
    os._exit(5)

def fail_later(self):
    self.advance(to="3ms")
    self.leave()
    raise ValueError("too late")

def quit(self):
    self.advance(to="3ms")
    sys.exit()
"""

FILE = """
name = "chat"
seed = 3
[link]
latency = "uniform(2ms, 7ms)"
loss = 0.1
[[participants]]
names = ["a", "b", "c"]
entry = "MODULE:chat"
subscribes = ["talk", "to a", "to b"]
controls = true
[[participants]]
name = "guest"
entry = "MODULE:chat"
subscribes = ["talk"]
guest = true
[[participants]]
name = "odd"
entry = "MODULE:ENTRY"
"""

COMMAND = f"""
[[participants]]
name = "command"
command = ["{sys.executable}", "-c", "import worldline; worldline.connect().__enter__().leave()"]
"""


def written(folder: Path, odd: str = "quit", more: str = "") -> Setup:
    module = f"chat_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(PROGRAMS)
    (folder / "unloadable.py").write_text("run = 1 / 0\n")
    (folder / "vanishing.py").write_text("import os\nos._exit(5)\nrun = None\n")
    file = folder / "chat.toml"
    text = FILE.replace("MODULE:ENTRY", odd if ":" in odd else f"MODULE:{odd}")
    file.write_text((text + more).replace("MODULE", module))
    return read_setup(file)


@pytest.mark.long
@pytest.mark.parametrize(("workers", "shake"), [(2, 5), *later([(1, None), (3, 6)])])
def test_shared_workers_give_what_one_process_gives(tmp_path: Path, workers: int, shake: int | None) -> None:
    setup = written(tmp_path)
    expected = run(federation_of(setup))
    assert expected.times["guest"] > 9 * MS
    done = sorted(f"{name} at {at}: done at {at}" for name, at in expected.times.items() if name != "odd")
    outcome, said = launch(setup, workers=workers, shake=shake)
    assert (outcome.digest, outcome.times, outcome.dropped) == (expected.digest, expected.times, expected.dropped)
    assert [line for line in said if "done" in line] == done
    # A module is loaded once in a process, by the first who needs it.
    assert [line for line in said if "loaded" in line] == [f"{name} at None: loaded" for name in "abc"[:workers]]


@pytest.mark.long
def test_those_who_share_processes_and_those_who_dont_take_part_in_one_run(tmp_path: Path) -> None:
    setup = written(tmp_path, more=COMMAND)
    (own, _), (shared, _) = launch(setup), launch(setup, workers=2, address=f"unix://{tmp_path}/socket")
    assert (shared.digest, shared.times) == (own.digest, own.times)


def failure(setup: Setup, **options: object) -> tuple[Exception, list[str]]:
    heard: list[str] = []
    launched = Launch(setup, LaunchOptions(hear=lambda name, now, text: heard.append(f"{name}: {text}"), **options))  # type: ignore[arg-type]
    try:
        launched.check_ends(launched.run())
    except (LossError, ModelError, UsageError) as error:
        return error, heard
    raise AssertionError("it ended well")


def test_one_that_fails_says_what_it_would_say_in_a_process_of_its_own(tmp_path: Path) -> None:
    setup = written(tmp_path, "fail")
    shared, said = failure(setup, workers=2)
    own, said_alone = failure(setup)
    assert type(shared) is type(own) is ModelError
    assert str(shared) == str(own)
    assert "odd at 3ms: its program raised ValueError: no more" in str(own)
    for name in ("a", "b", "c", "odd"):
        first, *rest = [line for line in said_alone if line.startswith(name)]
        assert first == f"{name}: loaded"
        assert [line for line in said if line.startswith(name) and line != first] == rest


def test_who_shares_a_process_with_one_that_dies_dies_with_it(tmp_path: Path) -> None:
    error, _ = failure(written(tmp_path, "die"), workers=2)
    assert isinstance(error, LossError)
    assert error.participant == "odd"
    assert "(its process, which it shared with a, c, was killed by SIGKILL)" in str(error)


@pytest.mark.parametrize("workers", [1, 2])
def test_one_that_ends_the_process_at_once_is_named(tmp_path: Path, workers: int) -> None:
    error, _ = failure(written(tmp_path, "vanish"), workers=workers)
    assert isinstance(error, LossError)
    assert (error.participant, error.at) == ("odd", 3 * MS)
    assert "ended with exit code 5" in str(error)


def test_one_that_ends_the_process_while_it_is_loaded_is_named(tmp_path: Path) -> None:
    error, _ = failure(written(tmp_path, "vanishing:run"), workers=2)
    assert "odd: its process, which it shared with a, c, ended with exit code 5 before it had joined" in str(error)


def test_one_that_fails_after_it_has_left_is_named(tmp_path: Path) -> None:
    error, _ = failure(written(tmp_path, "fail_later"), workers=1)
    assert str(error) == (
        "odd: its process, which it shared with a, b, c and 1 more, ended with exit code 1 after it had left "
        "(its last line was: ValueError: too late)"
    )


ODD = """
import asyncio

def bad(me):
    me.advance(to="1ms")
    raise asyncio.CancelledError("stop it")

def good(me):
    me.advance(to="1ms")
"""


def test_whatever_one_raises_ends_that_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only exceptions that programs are expected to raise: the others of its process end as anywhere else."""
    (tmp_path / "odd.py").write_text(ODD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "worldline.federation.participant.call.be_brief", lambda: None
    )  # That's for a process of its own.
    share = tmp_path / "share.json"
    write_share(share, [("a", "odd:bad", ""), ("b", "odd:good", "")])
    with Server(plan(["a", "b"])) as server:
        monkeypatch.setenv(ADDRESS, str(server.address))
        assert work(share, TimeStamps()) == 1
        assert "its program raised CancelledError: stop it" in str(server.host.failure)
    assert failed_in_share(share)[0] == "a"


def test_one_that_cant_be_loaded_is_named_before_anybody_joins(tmp_path: Path) -> None:
    error, _ = failure(written(tmp_path, "unloadable:run"), workers=2)
    assert isinstance(error, UsageError)
    assert "odd: its process, which it shared with a, c, ended with exit code 2 before it had joined" in str(error)
    assert "unloadable can't be imported: ZeroDivisionError: division by zero" in str(error)
