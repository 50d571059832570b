"""What may be written where: streams are streamed to, files replaced whole, links followed, all else refused."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from worldline.files.saving import destination, save
from worldline.model import LossError, UsageError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_new_file_is_written_and_nothing_else_is_left(here: Path) -> None:
    assert destination("new.svg").is_new
    save(Path("new.svg"), b"picture")
    assert Path("new.svg").read_bytes() == b"picture"
    assert names(here) == {"new.svg"}


def test_a_file_is_replaced_whole_and_stays_as_accessible_as_it_was(here: Path) -> None:
    file = here / "old.svg"
    file.write_bytes(b"a longer one than the next")
    file.chmod(0o640)
    with file.open("rb") as reader:
        save(file, b"short")
        assert reader.read() == b"a longer one than the next"  # Who has opened it keeps what there was.
    assert file.read_bytes() == b"short"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert names(here) == {"old.svg"}


def test_a_link_stays_and_what_it_leads_to_is_replaced(here: Path) -> None:
    (here / "far").mkdir()
    for name, target in (("link", "far/file"), ("dangling", "far/new"), ("twice", "link")):
        Path(name).symlink_to(target)
    Path("far/file").write_bytes(b"old")
    for number, name in enumerate(("link", "dangling", "twice")):
        save(Path(name), b"%d" % number)
        assert Path(name).is_symlink()
    assert (Path("far/file").read_bytes(), Path("far/new").read_bytes()) == (b"2", b"1")
    assert names(here / "far") == {"file", "new"}
    Path("lost").symlink_to("nowhere/file")
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere"):
        destination("lost")


def test_a_pipe_is_written_to_and_stays(here: Path) -> None:
    os.mkfifo("pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()))
    reader.start()
    save(Path("pipe"), b"x" * 200_000)
    reader.join(30)
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
    assert names(here) == {"pipe"}


def test_devices_are_written_to_and_stay() -> None:
    before = Path("/dev/null").stat()
    save(Path("/dev/null"), b"gone")
    after = Path("/dev/null").stat()
    assert (before.st_ino, before.st_rdev, before.st_mode) == (after.st_ino, after.st_rdev, after.st_mode)
    with pytest.raises(LossError, match="/dev/full can't be written: No space left"):
        save(Path("/dev/full"), b"too much")


def test_an_open_descriptor_is_written_to_even_if_it_is_a_file(here: Path) -> None:
    with Path("out").open("wb") as out:
        for folder in ("/dev/fd", f"/proc/{os.getpid()}/fd", "/proc/self/fd"):
            if Path(folder).is_dir():
                found = destination(f"{folder}/{out.fileno()}")
                assert (found.is_stream, found.descriptor) == (True, out.fileno())
        save(Path(f"/dev/fd/{out.fileno()}"), b"one")
        save(Path(f"/dev/fd/{out.fileno()}"), b"two")
    assert Path("out").read_bytes() == b"onetwo"
    assert destination("/dev/stdout").descriptor == 1
    with pytest.raises(UsageError, match="can't be written"):
        destination("/dev/fd/987")


def test_all_else_is_refused(here: Path) -> None:
    (here / "folder").mkdir()
    Path("to-a-folder").symlink_to("folder")
    Path("circle").symlink_to("circle")
    Path("file").write_bytes(b"precious")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name, words in (
            ("folder", "it is a folder"),
            ("to-a-folder", "it is a folder"),
            ("socket", "it is a socket"),
            ("nowhere/file", "there is no folder nowhere"),
            ("file/file", "Not a directory"),
            ("circle", "symbolic links"),
            ("x" * 300, "File name too long"),
            ("nul\0", "null"),
        ):
            with pytest.raises(UsageError, match=words):
                save(Path(name), b"anything")
    assert Path("file").read_bytes() == b"precious"


def test_what_is_write_protected_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever is root may write anywhere, so the system's answer is given here.
    Path("file").write_bytes(b"precious")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "file")
    with pytest.raises(UsageError, match="file can't be written: it is write-protected"):
        destination("file")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != Path())
    for name in ("file", "new"):
        with pytest.raises(UsageError, match=r"the folder \. is write-protected"):
            destination(name)


def test_what_fails_halfway_leaves_what_was_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = here / "file"
    file.write_bytes(b"precious")

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LossError, match="No space left on device"):
        save(file, b"new")
    assert file.read_bytes() == b"precious"
    assert names(here) == {"file"}
