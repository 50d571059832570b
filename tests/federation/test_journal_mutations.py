"""Whatever is in a file, a server takes it up as a journal or refuses it, in a word: it never falls over, nor hangs."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.soaking import later
from tests.wire.peers import House, journaled_host
from worldline.federation.server.host import Host
from worldline.federation.server.run_journal import HeavyPayloads, RecordKind
from worldline.model import Interrupted, Network, UsageError, WorldlineError, link, plan

MS = 10**6
PLAN = plan(["a", "b"], network=Network(default=link("1ms")), until="50ms", vacancies=1)
MAGIC = b"worldline journal 3\n"
NAMES = ("a", "b", "c")
HEAVY = bytes(2**16)


def started(path: Path) -> Host:
    return journaled_host(PLAN, path, rejoins=True)


def written() -> bytes:
    """Return a journal with records of all kinds."""
    with TemporaryDirectory() as folder:
        house = House("unused")
        house.host = host = started(Path(folder) / "run.journal")
        assert host.journal is not None
        host.journal.listened("tcp://127.0.0.1:7000")
        house.join("a", None, [["x"]]).hang_up()
        peers = {name: house.join(name, None, [["x"]]) for name in NAMES}
        host.journal.coded("a", "0123abcd")
        host.hold_at(20 * MS)
        peers["a"].say(["publish", "x", HEAVY, 0], ["snapshot", b"so far"], ["advance", 2 * MS])
        for now in range(3):
            for name in "bc":
                peers[name].say(["publish", "x", b"%d" % now, now * MS], ["advance", now * MS + MS])
        peers["a"].say(["subscribe", ["y", {"limit": 3}], 2 * MS, 2 * MS], ["next", 30 * MS])
        peers["b"].say(["leave", 3 * MS, b"0" * 16])
        host.let_go()
        assert host.failure is None
        return (Path(folder) / "run.journal").read_bytes()


@dataclass(frozen=True)
class Record:
    """A record as it may be forged: without a place, it points to its participant's record before it."""

    kind: int
    number: int
    body: bytes
    before: int | None = None
    length: int | None = None


def taken_apart(data: bytes) -> tuple[bytes, list[Record]]:
    length, _ = struct.unpack_from("<II", data, len(MAGIC))
    place = len(MAGIC) + 8 + length
    header, records = data[place - length : place], []
    while place < len(data):
        _, _, size, mixed = struct.unpack_from("<IQII", data, place)
        records.append(Record(mixed >> 24, mixed & 0xFFFFFF, data[place + 20 : place + size]))
        place += size
    return header, records


def put_together(header: bytes, records: list[Record]) -> bytes:
    """Return a journal that says this, with all checksums right."""
    check = crc32(header)
    data = bytearray(MAGIC + struct.pack("<II", len(header), check) + header)
    last: dict[int, int] = {}
    for record in records:
        place = len(data)
        before = last.get(record.number, 0) if record.before is None else record.before % 2**64
        length = (20 + len(record.body) if record.length is None else record.length) % 2**32
        mixed = (record.kind << 24 | record.number) % 2**32
        check = crc32(record.body, (check ^ mixed ^ before ^ before >> 32 ^ length << 7) & 0xFFFFFFFF)
        data += struct.pack("<IQII", check, before, length, mixed) + record.body
        last[record.number] = place
    return bytes(data)


DATA = written()
HEADER, RECORDS = taken_apart(DATA)


def judged(data: bytes) -> str:
    """Take a journal up, and let everybody come back to it; return what became of that."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.journal"
        path.write_bytes(data)
        house = House("unused")
        try:
            house.host = host = started(path)
        except WorldlineError as error:
            refusal: WorldlineError | None = error
        else:
            refusal = None
        if refusal is not None:
            assert str(refusal).isprintable()
            return "refused" if isinstance(refusal, UsageError) else "unlike"
        host.remarks(), host.status().waits
        for name in host.lost():
            if host.over:  # What one has said before isn't what it says now.
                break
            peer = house.admit(name)
            peer.say(["join", None, [["x"]]])
            if peer.read()[0][0] == "start" and not host.over:
                peer.say(["recall"])
        failure = host.failure
        host.let_go()
        return "taken up" if failure is None else type(failure).__name__


def test_the_file_itself_is_taken_up() -> None:
    assert judged(DATA) == "taken up"
    assert {record.kind for record in RECORDS} == set(RecordKind)
    assert put_together(HEADER, RECORDS) == DATA


def test_a_signal_while_it_is_heard_isnt_taken_for_a_fault_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise Interrupted("interrupted by SIGTERM")

    path = tmp_path / "run.journal"
    path.write_bytes(DATA)
    monkeypatch.setattr(HeavyPayloads, "note", interrupted)
    with pytest.raises(Interrupted, match=r"^interrupted by SIGTERM$"):
        started(path)
    assert path.read_bytes() == DATA


DEEP = b"\x91" * 100_000
NASTY = [
    *(b"", b"\0", b"\xff" * 9, DEEP, b"\x90", b"\xc0", b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", HEAVY),
    *(b"\n", b" a", b"x" * 5_000, b"\xed\xa0\x80", "\u202eforged".encode(), b"\x1b[2J", b"a", b""),
    *map(
        msgspec.msgpack.encode,
        (
            [["join"]], [["leave", b""]], [["stop", -1]], [["stop", 2**63]], [["fail", "x"]], [["resume", 1]], [[]],
            ["barrier", -1], ["barrier", 2**64 - 1], ["stop", 0], ["lost", "a", "\n"], ["lost", "nobody", ""],
            ["join", None, [["x"]]], [0, 0, b""], [["a", 0, []], [[0, 0, 0]]], [["publish", "x", bytes(2**16), 0]],
        ),
    ),
]  # fmt: skip


ONE_OF_A_KIND = {record.kind: place for place, record in enumerate(RECORDS)}.values()


@pytest.mark.parametrize(
    "place",
    [
        *ONE_OF_A_KIND,
        *(pytest.param(place, marks=pytest.mark.long) for place in range(len(RECORDS)) if place not in ONE_OF_A_KIND),
    ],
)
def test_nothing_that_a_record_may_say_brings_a_server_down(place: int) -> None:
    for body in NASTY:
        records = list(RECORDS)
        records[place] = replace(records[place], body=body)
        assert judged(put_together(HEADER, records)) in ("refused", "unlike", "taken up")


def test_a_record_that_points_to_itself_or_elsewhere_is_altered() -> None:
    place = len(put_together(HEADER, RECORDS[:-1]))
    for before in (place, place + 1, 2**64 - 1, len(MAGIC), place - 1, 0):
        data = put_together(HEADER, [*RECORDS[:-1], replace(RECORDS[-1], before=before)])
        assert judged(data) == "refused", before


@pytest.mark.parametrize(
    "header", [b"", b"\xc0", b"\x93", DEEP, b"\x81\xa4plan" + DEEP, msgspec.msgpack.encode({"federation": "\n\x1b"})]
)
def test_nor_does_any_header(header: bytes) -> None:
    assert judged(put_together(header, RECORDS)) == "refused"


FORGED = st.builds(
    Record,
    kind=st.sampled_from(RecordKind) | st.integers(0, 255),
    number=st.integers(0, 5) | st.integers(0, 2**24 - 1),
    body=st.sampled_from([*NASTY, *(record.body for record in RECORDS)]) | st.binary(max_size=40),
    before=st.none() | st.integers(0, 2**64 - 1) | st.integers(0, len(DATA)),
    length=st.none() | st.none() | st.integers(0, 40),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, len(RECORDS)), st.integers(0, 2), FORGED), min_size=1, max_size=3))
def test_nor_do_forged_records(forged: list[tuple[int, int, Record]]) -> None:
    records = list(RECORDS)
    for place, removed, record in forged:
        records[place : place + removed] = [record]
    judged(put_together(HEADER, records))


def mutated(random: Random) -> bytes:
    """Forge records, or only the bytes of a file."""
    if random.random() < 0.3:
        data = bytearray(DATA)
        for _ in range(random.choice((1, 1, 2, 5))):
            place = random.randrange(len(data))
            kind = random.randrange(4)
            if kind == 0:
                data[place] ^= 1 << random.randrange(8)
            elif kind == 1:
                data[place : place + 8] = struct.pack("<Q", random.choice((0, 1, 2**32 - 1, random.getrandbits(64))))
            elif kind == 2:
                del data[place : place + random.choice((1, 20, 200))]
            else:
                data[place:place] = random.randbytes(random.choice((1, 20)))
        return bytes(data)
    records = list(RECORDS)
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(records))
        record = records[place]
        body = bytearray(record.body)
        match random.randrange(8):
            case 0:
                records[place] = replace(record, kind=random.choice((0, 11, 255, *RecordKind)))
            case 1:
                records[place] = replace(record, number=random.choice((0, 1, 2, 3, 4, 2**24 - 1)))
            case 2:
                records[place] = replace(record, before=random.choice((0, random.randrange(len(DATA)), 2**63)))
            case 3:
                records[place] = replace(record, body=random.choice(NASTY))
            case 4 if body:
                body[random.randrange(len(body))] ^= 1 << random.randrange(8)
                records[place] = replace(record, body=bytes(body))
            case 5:
                records[place] = replace(record, body=random.choice(RECORDS).body)
            case 6:
                other = random.randrange(len(records))
                records[place], records[other] = records[other], record
            case _:
                records[place : place + random.randrange(2)] = [random.choice(RECORDS)]
    return put_together(HEADER, records)


@pytest.mark.parametrize("part", [0, 1, *later(range(2, 42))])
def test_every_mutation_of_a_journal_is_taken_up_or_refused(part: int) -> None:
    random = Random(part)
    seen = Counter(judged(mutated(random)) for _ in range(100 if part < 2 else 1000))
    print(seen)
    assert len(seen) >= 2
