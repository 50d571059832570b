"""The journal's file: what was written is there whatever happens to the process, and what was altered is noticed."""

from __future__ import annotations

import errno
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from worldline.federation.server import run_journal
from worldline.federation.server.run_journal import FollowedJournal, RecordKind, RunJournal
from worldline.model import LossError, UsageError

HEADER = {"federation": "cell", "plan": {"seed": 1, "roster": ["a", "b"]}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.journal"


def filled(path: Path | None, count: int = 3) -> RunJournal:
    made = RunJournal(path, HEADER)
    for number in range(count):
        made.heard("a", b"said %d" % number)
        made.heard("b", b"also %d" % number)
        made.answered("a", b"answer %d" % number)
    return made


def told(journal: RunJournal) -> list[tuple[RecordKind, str, bytes]]:
    return [(record.kind, record.name, record.body) for record in journal.records()]


def test_what_was_written_is_read_by_the_next_one(path: Path) -> None:
    first = filled(path)
    expected = told(first)
    first.close()
    second = RunJournal(path, HEADER)
    assert second.is_resumed
    assert told(second) == expected
    assert len(expected) == 9
    second.operated(b"held")
    second.close()
    third = RunJournal(path, HEADER)
    assert told(third) == [*expected, (RecordKind.OPERATED, "", b"held")]
    third.remove()
    assert not path.exists()


def test_nothing_needs_to_be_closed_for_it(path: Path) -> None:
    """As after a kill: the file is as long as the room that was taken, and ends with nothing."""
    first = filled(path)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    assert copy.stat().st_size > first.size
    second = RunJournal(copy, HEADER)
    assert told(second) == told(first)
    for journal in (first, second):
        journal.close()


def test_a_file_without_a_name_is_gone_with_its_process() -> None:
    journal = filled(None)
    assert len(told(journal)) == 9
    assert not journal.is_resumed
    journal.remove()


def test_a_participants_records_are_found_without_the_others(path: Path) -> None:
    journal = filled(path, 4)
    bodies = [journal.record(place).body for place in journal.places("b")]
    assert bodies == [b"also 0", b"also 1", b"also 2", b"also 3"]
    assert journal.places("c") == []
    second = journal.place_of_answer("a", 2)
    assert second is not None
    assert journal.record(second).body == b"answer 1"
    after = [journal.record(place).body for place in journal.places("a", second)]
    assert after == [b"said 2", b"answer 2", b"said 3", b"answer 3"]
    assert journal.place_of_answer("a", 0) == 0
    assert journal.place_of_answer("a", 5) is None
    assert journal.place_of_answer("a", -1) is None
    journal.close()


def test_one_that_was_lost_before_its_start_begins_anew(path: Path) -> None:
    journal = filled(path, 1)
    journal.lost("a", b"gone")
    assert journal.places("a") == []
    assert journal.place_of_answer("a", 1) is None
    journal.heard("a", b"again")
    assert [journal.record(place).body for place in journal.places("a")] == [b"again"]
    journal.close()
    resumed = RunJournal(path, HEADER)
    assert [resumed.record(place).body for place in resumed.places("a")] == [b"again"]
    assert resumed.place_of_answer("a", 1) is None
    resumed.close()


@pytest.mark.parametrize("size", [10, 2**16, 3 * 2**20])
def test_it_grows_as_it_needs_to(path: Path, size: int) -> None:
    journal = RunJournal(path, HEADER)
    bodies = [bytes([number]) * size for number in range(5)]
    for body in bodies:
        journal.heard("a", body)
    journal.close()
    resumed = RunJournal(path, HEADER)
    assert [body for _, _, body in told(resumed)] == bodies
    resumed.close()


def test_however_long_it_is_little_of_it_is_kept_in_memory(path: Path) -> None:
    """What was written since it was mapped last is, until it is mapped anew, a few MB further on."""
    journal = RunJournal(path, HEADER)
    rooms = []
    for _ in range(640):
        journal.heard("a", bytes(2**16))
        rooms.append(path.stat().st_size)
    assert max(after - before for before, after in pairwise(rooms)) <= 2**22
    journal.remove()


def test_the_last_snapshot_of_each_is_found_and_the_code_that_it_had(path: Path) -> None:
    journal = filled(path, 1)
    for number in range(3):
        journal.restorable("a", b"state %d" % number)
        journal.heard("a", b"more")
    journal.coded("b", "abcd")
    journal.close()
    resumed = RunJournal(path, HEADER)
    assert list(resumed.snapshots) == ["a"]
    last = resumed.record(resumed.snapshots["a"])
    assert (last.kind, last.body) == (RecordKind.SNAPSHOT, b"state 2")
    assert resumed.codes == {"b": "abcd"}
    resumed.close()


# --- What may be wrong with it ---


def test_a_journal_of_another_version_is_refused_and_left_as_it_is(path: Path) -> None:
    filled(path).close()
    written = path.read_bytes().replace(b"worldline journal 3", b"worldline journal 7")
    path.write_bytes(written)
    with pytest.raises(UsageError, match=r"was written by another version of Worldline \(resume it with that version"):
        RunJournal(path, HEADER)
    assert path.read_bytes() == written


def test_a_header_with_a_bit_flipped_is_damaged_and_not_of_another_run(path: Path) -> None:
    filled(path).close()
    written = path.read_bytes()
    start = written.index(b"\n") + 1
    for place in range(start, start + 8 + int.from_bytes(written[start : start + 4], "little")):
        for bit in range(8):
            flipped = bytearray(written)
            flipped[place] ^= 1 << bit
            path.write_bytes(flipped)
            with pytest.raises(UsageError, match="is damaged at its very beginning"):
                RunJournal(path, HEADER)
            assert path.read_bytes() == flipped


@pytest.mark.parametrize("is_new", [True, False])
def test_a_link_stays_and_what_it_leads_to_is_removed(path: Path, is_new: bool) -> None:
    file = path.with_name("elsewhere")
    path.symlink_to(file)
    if not is_new:
        filled(path).close()
        assert file.exists()
    filled(path).remove()
    assert path.is_symlink()
    assert not file.exists()


def test_a_file_that_was_put_in_its_place_isnt_removed(path: Path) -> None:
    journal = filled(path)
    path.unlink()
    path.write_text("my diary")
    journal.remove()
    assert path.read_text() == "my diary"


def test_what_cant_be_removed_has_transcript_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", denied)
        filled(path).remove()
    again = RunJournal(path, {"another": "run"})
    assert not again.is_resumed
    again.remove()
    assert not path.exists()


def test_another_run_is_refused_with_what_differs(path: Path) -> None:
    filled(path).close()
    with pytest.raises(UsageError, match=r"is of another run: plan\.seed: 1 → 2.*begin a new journal"):
        RunJournal(path, {**HEADER, "plan": {"seed": 2, "roster": ["a", "b"]}})


def test_what_isnt_a_journal_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("my diary")
    with pytest.raises(UsageError, match="isn't a journal, and would be overwritten"):
        RunJournal(path, HEADER)
    assert path.read_text() == "my diary"


@pytest.mark.parametrize("body", [b"more", bytes(range(256)) * 8], ids=["short", "long"])
def test_half_a_record_counts_as_not_written_wherever_its_writer_was_killed(path: Path, body: bytes) -> None:
    journal = filled(path)
    expected, place = told(journal), journal.size
    journal.heard("a", body)
    whole, end = path.read_bytes(), journal.size
    journal.close()
    length, kind = range(place + 12, place + 16), place + 19
    places = [*length, *(each for each in range(place, end) if each not in (*length, kind))]  # As they are written.
    for count in {*range(30), len(places) // 2, len(places)}:
        half = bytearray(whole)
        half[place:end] = bytes(end - place)
        for each in places[:count]:
            half[each] = whole[each]
        path.write_bytes(half)
        resumed = RunJournal(path, HEADER)
        assert told(resumed) == expected
        resumed.answered("b", b"it goes on")
        resumed.close()
        again = RunJournal(path, HEADER)
        assert told(again) == [*expected, (RecordKind.ANSWERED, "b", b"it goes on")]
        again.close()


@pytest.mark.parametrize("size", [3, 20, 22, 40])
def test_a_file_that_was_cut_off_in_its_header_is_refused(path: Path, size: int) -> None:
    filled(path).close()
    os.truncate(path, size)
    with pytest.raises(UsageError, match=r"isn't a journal|is damaged at its very beginning"):
        RunJournal(path, HEADER)


def test_a_file_that_was_cut_off_says_how_to_keep_what_is_whole(path: Path) -> None:
    first = filled(path)
    size = first.size
    first.close()
    os.truncate(path, size - 3)
    with pytest.raises(UsageError, match="ends in the middle of record 11, at byte") as caught:  # Two are names.
        RunJournal(path, HEADER)
    assert path.stat().st_size == size - 3  # Nothing is lost that somebody might know how to mend.
    place = re.search(r"`truncate -s (\d+) ", str(caught.value))
    assert place is not None
    os.truncate(path, int(place[1]))
    cut = RunJournal(path, HEADER)
    assert len(told(cut)) == 8
    cut.answered("a", b"another")
    cut.close()
    resumed = RunJournal(path, HEADER)
    assert told(resumed)[-1] == (RecordKind.ANSWERED, "a", b"another")
    resumed.close()


def test_every_byte_that_is_altered_is_noticed(path: Path) -> None:
    """Whichever it is: of the header, a body, a head, a checksum or a length."""
    journal = filled(path, 2)
    journal.close()
    intact = path.read_bytes()
    for place in range(journal.size):
        path.write_bytes(intact[:place] + bytes([intact[place] ^ 0x41]) + intact[place + 1 :])
        with pytest.raises(UsageError):
            RunJournal(path, HEADER)
    path.write_bytes(intact)
    RunJournal(path, HEADER).close()


def test_the_first_altered_record_is_named(path: Path) -> None:
    filled(path).close()
    data = bytearray(path.read_bytes())
    place = data.index(b"also 1")
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"was altered, in record 7, at byte \d+ \(`truncate -s \d+ "):
        RunJournal(path, HEADER)


def test_two_servers_cant_have_one(path: Path) -> None:
    journal = filled(path)
    with pytest.raises(UsageError, match="is in use by another server"):
        RunJournal(path, HEADER)
    journal.close()


def test_a_folder_or_a_pipe_cant_be_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be opened: Is a directory"):
        RunJournal(tmp_path, HEADER)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="isn't a plain file"):
        RunJournal(tmp_path / "pipe", HEADER)
    with pytest.raises(UsageError, match="can't be opened: No such file"):
        RunJournal(tmp_path / "missing" / "journal", HEADER)


def test_a_full_disk_ends_it_with_all_that_was_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = filled(path)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as limited:
        limited.setattr(run_journal.os, "posix_fallocate", full)
        with pytest.raises(LossError, match=r"can't be written: No space left on device \(make room, and start"):
            journal.heard("a", bytes(2**21))
    journal.close()
    resumed = RunJournal(path, HEADER)
    assert len(told(resumed)) == 9
    resumed.heard("a", bytes(2**21))
    assert len(told(resumed)) == 10
    resumed.close()


def test_a_journal_can_be_read_along_by_another_process_as_it_is_written(path: Path) -> None:
    journal = RunJournal(path, HEADER)
    followed = FollowedJournal(path)
    assert followed.next() is None
    for number in range(2000):  # More than is read at a time,
        journal.heard("ab"[number % 2], b"%d" % number * 20)
        if number % 7 == 0 or number > 1900:  # and read at any moment.
            while (record := followed.next()) is not None:
                assert record == journal.record(record.place)
    journal.heard("a", bytes(2**20))
    found = followed.next()
    assert found is not None
    assert len(found.body) == 2**20
    followed.close()
    journal.close()
