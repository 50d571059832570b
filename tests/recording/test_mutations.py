"""Whatever is in a file, a reader comes to a verdict or refuses it: it never falls over, nor takes much memory."""

from __future__ import annotations

import io
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcap.records import Metadata
from mcap.stream_reader import StreamReader
from mcap.writer import Writer

from tests.recording.stage import recorded, write_script
from worldline.cli.info import info
from worldline.model import ModelError, UsageError, WorldlineError
from worldline.recording import Condition, Recording, reader, scan

DATA = recorded(write_script(Random(11), participants=4, acts=20), 1)
METADATA = {each.name: each.metadata for each in StreamReader(io.BytesIO(DATA)).records if isinstance(each, Metadata)}
FIELDS = [(name, key) for name, texts in METADATA.items() for key in texts]


def judged(data: bytes, *, shows: bool = False) -> Condition | None:
    """Read everything there is in a file, in every way there is, and perhaps print it; None: it was refused."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.mcap"
        path.write_bytes(data)
        try:
            recording = Recording(path)
        except UsageError:
            return None
        verdict = recording.verify()
        assert str(verdict).isprintable()
        if shows:
            info(path)
        recording.header.plan()
        recording.counts(), recording.loss_counts(), recording.span()
        for entries in (recording.arrivals, recording.unheard, recording.losses):
            try:
                list(entries())
            except (ModelError, UsageError):
                assert verdict.condition is not Condition.INTACT
        return verdict.condition


def packed(header: dict[str, str], outcome: dict[str, str]) -> bytes:
    """Return a file without messages, all checksums right, that says this."""
    output = io.BytesIO()
    writer = Writer(output, enable_data_crcs=True)
    writer.start()
    writer.add_metadata("worldline", header)
    writer.add_metadata("worldline.outcome", outcome)
    writer.finish()
    return output.getvalue()


def test_the_file_itself_is_intact() -> None:
    assert judged(DATA, shows=True) is Condition.INTACT


NASTY = [
    *("", "null", "true", "0", "-1", "1e999", "nan", "[]", "{}", '""', "[[]]", "\0", "\x1b[2J\r\n", '"\\ud800"'),
    *("9" * 30, "9" * 5_000, "-" + "9" * 4_299, "[" * 5_000, '{"a":' * 3_000, "1." + "0" * 5_000, "é\u202e\u2028"),
    *('{"a":{"started":' + "9" * 5_000 + "}}", '{"a":{"started":-5,"left":1e400,"digest":"zz"}}'),
    *('{"":{"started":0,"left":' + "9" * 25 + ',"digest":""}}', '[["a","b","c",' + "9" * 5_000 + "]]", '[["a","b"]]'),
    '{"default":{"latency":{"type":"fixed","value":-1}}}',
]


@pytest.mark.parametrize("field", FIELDS, ids="-".join)
def test_no_text_in_a_header_or_an_outcome_brings_the_reader_down(field: tuple[str, str]) -> None:
    name, key = field
    for number, text in enumerate(NASTY):
        told = {part: dict(texts) for part, texts in METADATA.items()}
        told[name][key] = text
        condition = judged(packed(told["worldline"], told["worldline.outcome"]), shows=number % 8 == 3)
        assert condition is not Condition.INTACT, text[:50]


@settings(max_examples=30)
@given(st.sampled_from(FIELDS), st.text(max_size=40) | st.integers().map(str) | st.floats().map(str))
def test_nor_does_any_other(field: tuple[str, str], text: str) -> None:
    name, key = field
    told = {part: dict(texts) for part, texts in METADATA.items()}
    if told[name][key] == text:
        return
    told[name][key] = text.encode(errors="replace").decode()
    assert judged(packed(told["worldline"], told["worldline.outcome"])) is not Condition.INTACT


def mutated(random: Random) -> bytes:
    """Flip, overwrite, insert, cut out or cut off, a few times."""
    data = bytearray(DATA)
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(data) + 1)
        kind = random.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            word = random.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, random.getrandbits(64)))
            data[place : place + 8] = struct.pack("<Q", word)
        elif kind == 2:
            data[place:place] = random.randbytes(random.choice((1, 9, 100)))
        elif kind == 3:
            del data[place : place + random.choice((1, 8, 200))]
        elif kind == 4:
            other = random.randrange(len(data) + 1)
            data[place:place] = data[other : other + random.choice((9, 60, 400))]
        elif random.random() < 0.3:
            del data[place:]
        if not data:
            break
    return bytes(data)


@pytest.mark.parametrize("part", range(2))
def test_every_mutation_of_a_file_gets_a_verdict(part: int) -> None:
    random = Random(part)
    files = [data for data in (mutated(random) for _ in range(100)) if data != DATA]
    seen = [judged(data, shows=number % 10 == 0) for number, data in enumerate(files)]
    assert Condition.INTACT not in seen
    assert len(set(seen)) >= 2


# --- Memory ---


def record_of(opcode: int, body: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(body)) + body


def chunk(packed_data: bytes, claimed: int, compression: bytes = b"zstd", crc: int = 0) -> bytes:
    body = struct.pack("<QQQI", 0, 10, claimed, crc) + struct.pack("<I", len(compression)) + compression
    return record_of(0x06, body + struct.pack("<Q", len(packed_data)) + packed_data)


def start() -> bytes:
    """Return a file up to its first chunk."""
    offset = 8
    for _ in range(2):
        offset += 9 + struct.unpack_from("<Q", DATA, offset + 1)[0]
    return DATA[:offset]


def bomb(size: int, *, says_so: bool) -> bytes:
    """Return zeros as zstd packs them, with or without their number."""
    if says_so:
        return zstandard.ZstdCompressor().compress(bytes(size))
    packer = zstandard.ZstdCompressor().compressobj()
    return b"".join([packer.compress(bytes(2**20)) for _ in range(size // 2**20)]) + packer.flush()


SIZE = scan.CHUNK_MAX + 2**20
BOMBS = {
    "large, and says so": chunk(bomb(SIZE, says_so=True), SIZE),
    "large, and its frame alone says so": chunk(bomb(SIZE, says_so=True), 100),
    "large, and doesn't say so": chunk(bomb(SIZE, says_so=False), 100),
    "lz4": chunk(lz4.frame.compress(bytes(SIZE)), 100, b"lz4"),
    "too small": chunk(zstandard.ZstdCompressor().compress(bytes(50)), 100),
    "unknown": chunk(bytes(100), 100, b"brotli\x1b"),
    "plain, of another size": chunk(bytes(100), 101, b""),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_chunk_is_unpacked_to_the_size_that_it_claims_and_no_further(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    path.write_bytes(start() + BOMBS[kind])
    verdict = Recording(path).verify()
    assert verdict.condition is Condition.ALTERED
    assert "chunk" in verdict.text
    assert verdict.text.isprintable()
    with pytest.raises(ModelError, match="was altered"):
        list(Recording(path).arrivals())


@pytest.mark.parametrize("compression", [b"zstd", b"lz4", b""])
def test_chunks_of_every_kind_are_read(compression: bytes, tmp_path: Path) -> None:
    message = record_of(0x04, struct.pack("<HHI", 1, 0, 1) + b"x" + struct.pack("<II", 0, 0))
    data = {b"zstd": zstandard.ZstdCompressor().compress, b"lz4": lz4.frame.compress, b"": bytes}[compression](message)
    path = tmp_path / "run.mcap"
    path.write_bytes(start() + chunk(data, len(message), compression, zlib.crc32(message)))
    assert Recording(path).verify().condition is Condition.CUT_OFF


def in_little_memory(path: Path) -> str:
    """Say what is found in a file by a process that can't have more than half a gigabyte."""
    program = (
        "import sys, pathlib; from worldline.recording import Recording;"
        "from worldline.model import WorldlineError\n"
        "try: print(Recording(pathlib.Path(sys.argv[1])).verify())\n"
        "except WorldlineError as error: print(type(error).__name__, error)"
    )
    limit = 2**29

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True, preexec_fn=bounded
    )
    return done.stdout


def sparse(path: Path, data: bytes, size: int) -> None:
    """Write a file that is mostly a hole, and takes no room."""
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size)


@pytest.mark.parametrize("opcode", [0x04, 0x05, 0x06, 0x09, 0x0C])
def test_a_record_that_claims_gigabytes_isnt_read(opcode: int, tmp_path: Path) -> None:
    size = 2**36
    sparse(tmp_path / "run.mcap", start() + struct.pack("<BQ", opcode, size), len(start()) + 9 + size)
    said = in_little_memory(tmp_path / "run.mcap")
    assert said.startswith(("altered: ", "cut off: ")), said


def test_a_header_that_claims_gigabytes_isnt_read(tmp_path: Path) -> None:
    size = 2**36
    header = 8 + 9 + struct.unpack_from("<Q", DATA, 9)[0]
    sparse(tmp_path / "run.mcap", DATA[:header] + struct.pack("<BQ", 0x0C, size), header + 9 + size)
    assert "not a recording" in in_little_memory(tmp_path / "run.mcap")


def test_what_is_put_in_order_at_once_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "POOL_MAX", 10)
    path = tmp_path / "run.mcap"
    path.write_bytes(DATA)
    with pytest.raises(WorldlineError, match="ask for a shorter span"):
        list(Recording(path).arrivals())


@example(b"")
@given(st.binary(max_size=60))
def test_what_isnt_a_recording_is_refused(data: bytes) -> None:
    assert judged(data) is None
