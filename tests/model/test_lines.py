"""Lines: however what is printed is cut up on its way, the same lines come out of it."""

from __future__ import annotations

import pytest

from worldline.model.text import LineSplitter

PRINTED = "one\n\ntwö\r\nthree\r\r\n four".encode()
LINES = ["one", "", "twö", "three", " four"]


@pytest.mark.parametrize("first", range(len(PRINTED) + 1))
def test_every_split_gives_the_same_lines(first: int) -> None:
    for second in range(first, len(PRINTED) + 1):
        splitter = LineSplitter()
        pieces = (PRINTED[:first], PRINTED[first:second], PRINTED[second:])
        lines = [line for piece in pieces for line in splitter.feed(piece)]
        assert [*lines, *splitter.finish()] == LINES


def test_a_line_comes_when_it_has_ended_and_not_before() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"on") == []
    assert splitter.feed(b"e\ntwo\nth") == ["one", "two"]
    assert splitter.finish() == ["th"]
    assert splitter.finish() == []


def test_what_has_ended_leaves_nothing_for_the_end() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\n") == ["one"]
    assert splitter.finish() == []


def test_a_line_that_never_ends_is_given_in_parts() -> None:
    splitter = LineSplitter(longest=4)
    assert splitter.feed(b"1234") == []
    assert splitter.feed(b"5") == ["12345"]
    assert splitter.feed(b"6\n") == ["6"]
    assert splitter.feed(b"123456\n") == ["123456"]  # It has ended: nobody has to wait for the rest of it.
    assert LineSplitter().feed(b"x" * 100_000) == []


def test_what_is_no_text_is_replaced() -> None:
    assert LineSplitter().feed(b"\xff!\n") == ["\ufffd!"]
