"""What is said on a trunk, byte by byte, as its page says it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.lock import Advance
from worldline.model.errors import PeerError
from worldline.model.frames import Cutter
from worldline.wire.codec import encode_events
from worldline.wire.handshake import Refused
from worldline.wire.trunk import (
    FIRST_LONGEST,
    PIECE_MAX,
    HoldCircuit,
    ResumeCircuit,
    RunningCircuit,
    circuit_of,
    decode_running,
    decode_word,
    is_piece,
    opening,
    piece,
    word,
)

PAGE = (Path(__file__).parents[2] / "docs" / "trunk.md").read_text()


def test_the_page_shows_the_bytes_that_are_sent() -> None:
    (block,) = re.findall(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    shown = "".join("".join(line.split("#")[0].split()) for line in block.splitlines())
    assert shown == (opening() + piece(1, encode_events([Advance(5)])) + piece(1, b"")).hex()
    assert f"{PIECE_MAX:,} bytes" in PAGE
    assert f"at most {FIRST_LONGEST:,} bytes" in PAGE


@pytest.mark.parametrize(
    "said", [HoldCircuit(3), ResumeCircuit(2**31 - 1), Refused("protocol", "no"), RunningCircuit(0, 9)]
)
def test_the_page_names_every_word_with_its_fields(
    said: HoldCircuit | ResumeCircuit | Refused | RunningCircuit,
) -> None:
    tag = said.__struct_config__.tag
    (shown,) = re.findall(rf'`\["{tag}", ([^`]*)\]`', PAGE)
    assert re.findall(r"([a-z_]+):", shown) == list(said.__struct_fields__)
    (body,) = Cutter().feed(word(said))
    assert not is_piece(body)
    decode = decode_running if isinstance(said, RunningCircuit) else decode_word
    assert decode(body) == said


@given(st.integers(0, 2**31 - 1), st.binary(max_size=50))
def test_a_piece_says_whose_it_is(circuit: int, said: bytes) -> None:
    (body,) = Cutter().feed(piece(circuit, said))
    assert is_piece(body)
    assert circuit_of(body) == circuit
    assert body[4:] == said


def test_what_is_no_word_is_refused() -> None:
    for read in (decode_word, decode_running):
        with pytest.raises(PeerError, match="can't be read"):
            read(b"\x92\xa4hold\xa1x")
    with pytest.raises(PeerError, match="too short"):
        circuit_of(b"\0\0\1")
