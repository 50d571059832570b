"""What a power failure leaves of a disk: what was synced, and of the rest what is drawn."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline import Federation, Machine, WorldlineError, run
from worldline.model.errors import ConfigurationError
from worldline.programs.disk import Disk


def found_after_a_crash(writes: Callable[[], Any], folder: Path, seeds: int = 30) -> set[str]:
    """Return what a program may find after a crash, file by file, over some seeds."""
    found: set[str] = set()

    def program() -> None:
        if time.monotonic() < 1:
            writes()
            time.sleep(5)
        files = sorted(str(each) for each in Path().rglob("*") if each.is_file())
        found.add(" ".join(f"{each}={Path(each).read_text()}" for each in files))

    for seed in range(seeds):
        machine = Machine(program, folder=folder, volatile=True)
        run(Federation({"box": machine}, faults=("1s crash box 1s",), seed=seed, until="4s"))
    return found


def put(path: str, text: str, mode: str = "w", *, sync: bool = False) -> None:
    with Path(path).open(mode) as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file)


def sync_folder() -> None:
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return tmp_path


def test_what_is_synced_stays(empty: Path) -> None:
    assert found_after_a_crash(lambda: put("log", "abc", sync=True), empty) == {"log=abc"}


def test_what_isnt_synced_may_be_lost_in_whole_or_from_its_end(empty: Path) -> None:
    def writes() -> None:
        put("log", "a", sync=True)
        put("log", "bc", "a")

    assert found_after_a_crash(writes, empty) == {"log=a", "log=ab", "log=abc"}
    assert found_after_a_crash(lambda: put("new", "a"), empty) == {"", "new=", "new=a"}


def test_a_file_that_stays_open_is_only_as_safe_as_its_last_sync(empty: Path) -> None:
    def writes() -> None:
        with Path("log").open("w") as file:
            for text, sync in (("a", os.fsync), ("b", os.fdatasync), ("c", None)):
                file.write(text)
                file.flush()
                if sync is not None:
                    sync(file.fileno())
            time.sleep(5)

    assert found_after_a_crash(writes, empty) == {"log=ab", "log=abc"}


def test_a_rename_happens_or_not_and_whole_only_if_the_file_was_synced(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("old")

    def writes(*, sync: bool, folder: bool = False) -> Callable[[], None]:
        def replace() -> None:
            put("new", "now", sync=sync)
            Path("new").replace("state")
            if folder:
                sync_folder()

        return replace

    torn = {"state=", "state=n", "state=no"}
    careless = found_after_a_crash(writes(sync=False), tmp_path, seeds=40)
    assert {"state=old", "state=now"} < careless <= {"state=old", "state=now"} | torn
    assert found_after_a_crash(writes(sync=True), tmp_path) == {"new=now state=old", "state=now"}
    assert found_after_a_crash(writes(sync=True, folder=True), tmp_path) == {"state=now"}


def test_a_file_is_itself_also_by_the_descriptor_of_its_folder(empty: Path) -> None:
    def writes(*, sync: bool) -> Callable[[], None]:
        def write() -> None:
            Path("below").mkdir()
            folder = os.open("below", os.O_RDONLY)
            file = os.open("log", os.O_CREAT | os.O_WRONLY, dir_fd=folder)
            os.write(file, b"a")
            if sync:
                os.fsync(file)
            os.close(file)
            os.close(folder)

        return write

    assert found_after_a_crash(writes(sync=True), empty) == {"below/log=a"}
    assert found_after_a_crash(writes(sync=False), empty) == {"", "below/log=", "below/log=a"}


def test_no_file_elsewhere_is_changed_by_the_descriptor_of_its_folder(empty: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    def program(act: Callable[[int], Any]) -> None:
        act(os.open(outside, os.O_RDONLY))

    for act in (
        lambda folder: os.open("log", os.O_CREAT | os.O_WRONLY, dir_fd=folder),
        lambda folder: os.mkdir("log", dir_fd=folder),
    ):
        with pytest.raises(WorldlineError, match="outside/log, which isn't on its disk"):
            run(Federation({"box": Machine(partial(program, act), folder=empty)}))
    assert not list(outside.iterdir())


def test_what_isnt_a_folders_descriptor_is_refused_as_on_linux(empty: Path) -> None:
    def program() -> None:
        for act in (
            lambda: os.open("log", os.O_RDONLY, dir_fd=999),
            lambda: os.mkdir("log", dir_fd=999),
            lambda: os.unlink("log", dir_fd=999),
        ):
            with pytest.raises(OSError, match="Bad file descriptor") as refused:
                act()
            assert "/proc" not in str(refused.value)

    run(Federation({"box": Machine(program, folder=empty)}))


def test_sync_makes_all_safe_and_a_kill_loses_nothing(empty: Path) -> None:
    def writes() -> None:
        put("one", "1")
        put("two", "2")
        os.sync()

    assert found_after_a_crash(writes, empty) == {"one=1 two=2"}

    def program() -> None:
        seen.append(Path("log").exists())
        put("log", "a")
        time.sleep(5)

    for seed in range(5):
        seen: list[bool] = []
        machine = Machine(program, folder=empty, volatile=True)
        run(Federation({"box": machine}, faults=("1s kill box 1s",), seed=seed, until="4s"))
        assert seen == [False, True]


def test_a_folder_that_is_renamed_or_removed_takes_along_what_is_known_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "log").write_text("a")

    def writes(*, then: Callable[[], Any]) -> Callable[[], None]:
        def write() -> None:
            put("one/log", "b", "a", sync=True)
            put("one/log", "c", "a")
            then()

        return write

    renamed = found_after_a_crash(writes(then=lambda: Path("one").rename("two")), tmp_path)
    assert renamed == {"two/log=ab", "two/log=abc"}
    assert found_after_a_crash(writes(then=lambda: shutil.rmtree("one")), tmp_path) == {""}


def test_a_file_that_makes_room_for_something_else_doesnt_come_back(empty: Path) -> None:
    def writes(*, then: Callable[[], Any]) -> Callable[[], None]:
        def write() -> None:
            put("file", "a", sync=True)
            put("other", "bcd", sync=True)
            Path("file").unlink()
            then()

        return write

    link = found_after_a_crash(writes(then=lambda: Path("file").symlink_to("other")), empty)
    assert link == {"file=bcd other=bcd"}
    assert found_after_a_crash(writes(then=lambda: Path("file").mkdir()), empty) == {"other=bcd"}


def test_a_folder_makes_room_for_a_file(empty: Path) -> None:
    def writes() -> None:
        Path("place").mkdir()
        put("place/log", "a", sync=True)
        Path("place/log").unlink()
        Path("place").rmdir()
        put("place", "b")

    assert found_after_a_crash(writes, empty) == {"", "place=", "place=b"}


def test_a_symbolic_link_that_replaces_another_changes_no_file(empty: Path) -> None:
    def writes() -> None:
        for each in ("one", "two"):
            put(each, each, sync=True)
        Path("current").symlink_to("one")
        Path("new").symlink_to("two")
        Path("new").replace("current")

    assert found_after_a_crash(writes, empty) == {"current=two one=one two=two"}


def test_another_name_for_a_file_may_be_lost_with_what_isnt_synced(empty: Path) -> None:
    def writes() -> None:
        put("draft", "a")
        os.link("draft", "mail")
        Path("draft").unlink()

    assert found_after_a_crash(writes, empty) == {"", "mail=", "mail=a"}


@pytest.mark.parametrize(
    "attach", [None, "ATTACH 'store' AS other", "ATTACH 'file:store' AS other", "ATTACH ? AS other"]
)
def test_a_file_that_becomes_a_database_is_sqlites(attach: str | None, empty: Path) -> None:
    def program() -> None:
        if time.monotonic() < 1:
            Path("store").touch()
            with closing(sqlite3.connect("store" if attach is None else ":memory:", uri=True)) as connection:
                if attach is not None:
                    connection.execute(attach, ("store",) if "?" in attach else ())
                connection.execute(f"create table {'' if attach is None else 'other.'}numbers as select 7")
            time.sleep(5)
        with closing(sqlite3.connect("store")) as connection:
            found.extend(connection.execute("select * from numbers"))

    for seed in range(8):
        found: list[Any] = []
        machine = Machine(program, folder=empty, volatile=True)
        run(Federation({"box": machine}, faults=("1s crash box 1s",), seed=seed, until="4s"))
        assert found == [(7,)]


def test_only_what_is_on_the_disk_is_taken_back(empty: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "log"

    def program() -> None:
        if time.monotonic() < 1:
            put(str(outside), "a", sync=True)
            put(str(outside), "b", "a")
            time.sleep(5)

    for seed in range(8):
        machine = Machine(program, folder=empty, volatile=True, allow=["files"])
        run(Federation({"box": machine}, faults=("1s crash box 1s",), seed=seed, until="4s"))
        assert outside.read_text() == "ab"


def test_a_name_neednt_be_text(empty: Path) -> None:
    assert "\udcff=a" in found_after_a_crash(lambda: put(os.fsdecode(b"\xff"), "a"), empty, seeds=8)


def test_nothing_is_kept_of_files_that_are_gone_for_good(empty: Path) -> None:
    disk = Disk(empty.resolve(), {}, True)
    for number in range(20):
        new, state = (str(disk.folder / name) for name in (f"new-{number}", "state"))
        disk.change(new)
        put(new, "a")
        disk.sync(new)
        disk.rename(new, state)
        Path(new).replace(state)
        disk.sync(str(disk.folder))
    assert len(disk.stable) == 1


def test_a_file_that_couldnt_be_made_isnt_there_after_a_crash(empty: Path) -> None:
    def writes() -> None:
        with pytest.raises(FileNotFoundError):
            put("nowhere/log", "a")
        os.sync()

    assert found_after_a_crash(writes, empty, seeds=8) == {""}


def test_what_is_no_file_cant_be_synced(empty: Path) -> None:
    import socket

    def program() -> None:
        for descriptor in (socket.socket(), 9_999):
            try:
                os.fsync(descriptor)
            except OSError as error:
                said.append(error.strerror)

    said: list[Any] = []
    run(Federation({"box": Machine(program, folder=empty, volatile=True)}))
    assert said == ["Invalid argument", "Bad file descriptor"]


def test_only_a_disk_can_be_volatile() -> None:
    with pytest.raises(ConfigurationError, match="it has no disk that could be volatile"):
        Machine(lambda: None, volatile=True)


# --- Beside a file system of names that lead to files ---

NAMES = ("a", "b", "c")


class Inode:
    def __init__(self) -> None:
        self.now = self.synced = b""


class FileSystem:
    """What there is, and what a power failure leaves that takes back all it can."""

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self.safe: dict[str, Inode] = {}

    def write(self, name: str, text: bytes) -> None:
        self.names.setdefault(name, Inode()).now = text

    def rename(self, name: str, to: str) -> None:
        self.names[to] = self.names.pop(name)

    def remove(self, name: str) -> None:
        del self.names[name]

    def sync(self, name: str) -> None:
        inode = self.names[name]
        inode.synced = inode.now
        self.safe[name] = inode
        for other in [each for each, leads_to in self.safe.items() if leads_to is inode]:
            if self.names.get(other) is not inode:
                del self.safe[other]

    def sync_folder(self) -> None:
        self.safe = dict(self.names)

    def left(self) -> dict[str, bytes]:
        return {name: inode.synced for name, inode in self.safe.items()}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "rename", "remove", "sync", "sync_folder")),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.binary(max_size=3),
    ),
    max_size=12,
)


def played(steps: list[tuple[str, str, str, bytes]], folder: Path) -> tuple[FileSystem, Disk]:
    model, disk = FileSystem(), Disk(folder, {}, True)
    for number, (step, name, to, text) in enumerate(steps):
        if step != "write" and step != "sync_folder" and name not in model.names:
            continue
        path, target, content = str(folder / name), str(folder / to), text + bytes([number])  # Of each write another.
        if step == "write":
            model.write(name, content)
            disk.change(path)
            Path(path).write_bytes(content)
        elif step == "rename" and name != to:
            model.rename(name, to)
            disk.rename(path, target)
            Path(path).replace(target)
        elif step == "remove":
            model.remove(name)
            disk.remove(path)
            Path(path).unlink()
        elif step == "sync":
            model.sync(name)
            disk.sync(path)
        elif step == "sync_folder":
            model.sync_folder()
            disk.sync(str(folder))
    return model, disk


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@given(STEPS)
def test_a_power_failure_that_takes_all_it_can_leaves_what_was_synced(
    steps: list[tuple[str, str, str, bytes]],
) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place).resolve()
        model, disk = played(steps, folder)
        disk.recover(lambda _: True, lambda _: 0)
        assert contents(folder) == model.left()


@given(STEPS)
def test_a_power_failure_that_takes_nothing_leaves_all(steps: list[tuple[str, str, str, bytes]]) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place).resolve()
        model, disk = played(steps, folder)
        disk.recover(lambda _: False, lambda _: 0)
        assert contents(folder) == {name: inode.now for name, inode in model.names.items()}
        assert not disk.stable
