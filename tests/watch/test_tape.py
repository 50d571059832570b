"""The tape: what a page is told, in pieces, is what was sent."""

from __future__ import annotations

import json
import re
from array import array
from base64 import b64decode
from typing import Any
from zlib import decompress

from hypothesis import given
from hypothesis import strategies as st

from worldline.history.account import Sending
from worldline.recording.scan import Record, RecordedPath
from worldline.watch.tape import Tape

NAMES = st.sampled_from(["ann", "bob", "eve", "<b>", ""])
FATES = st.lists(
    st.tuples(st.integers(1, 9), NAMES, st.just(0), st.sampled_from([None, "lost on its way", "down"])), max_size=3
)
SENDINGS = st.lists(
    st.tuples(
        st.integers(0, 2**50), NAMES, st.sampled_from(["pose", "worldline/log"]), st.binary(max_size=9), FATES,
        st.integers(0, 2**32 - 1),
    ),
    max_size=30,
)  # fmt: skip


def told(news: bytes) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Read news as the page does."""
    length = int.from_bytes(news[:4], "little")
    head = json.loads(news[4 : 4 + length])
    offset, columns = 4 + length, []
    for _, code in head["columns"]:
        column = array(code)
        size = head["count"] * column.itemsize
        column.frombytes(news[offset : offset + size])
        columns.append(column)
        offset += -(-size // 8) * 8
    assert offset == len(news)
    return head, list(zip(*columns, strict=True))


def packed_in(page: str) -> Any:
    """Return what a page that is a file has in it of its run."""
    data = json.loads(re.findall(r'<script id="data" type="application/json">(.*?)</script>', page)[0])
    return json.loads(decompress(b64decode(data["packed"])))[0]


@given(SENDINGS, st.integers(1, 30))
def test_a_page_that_asks_again_and_again_gets_everything_once(sendings: list[Sending], at_once: int) -> None:
    tape = Tape()
    have = {"rows": 0, "notes": 0, "members": 0, "topics": 0, "reasons": 0}
    names: dict[str, list[str]] = {"members": [], "topics": [], "reasons": []}
    rows, notes = [], []
    for start in range(0, len(sendings) + 1, at_once):
        tape.add(sendings[start : start + at_once])
        more = True
        while more:
            head, found = told(tape.since(have, {}, rows_max=7))
            for name, known in names.items():
                known += head[name]
                have[name] = len(known)
            rows += found
            notes += head["notes"]
            have |= {"rows": len(rows), "notes": len(notes)}
            more = head["more"]
    members, topics, reasons = names.values()
    expected = [
        (sent, sender, topic, number, *fate[:2], fate[3])
        for sent, sender, topic, _, fates, number in sendings
        for fate in fates or ([] if topic == "worldline/log" else [(sent, None, 0, None)])
    ]
    assert [
        (
            int(sent), members[sender], topics[topic], number, int(arrival),
            None if receiver < 0 else members[receiver], None if lost < 0 else reasons[lost],
        )
        for sent, arrival, sender, receiver, topic, number, lost in rows
    ] == expected  # fmt: skip
    assert len(notes) == sum(not each[4] and each[2] == "worldline/log" for each in sendings)


def test_a_long_tape_loses_its_beginning_and_keeps_its_counts() -> None:
    tape = Tape(rows_max=100)
    tape.add([(at, "ann", "pose", b"", [(at + 1, "bob", 0, "down")], at) for at in range(250)])
    head, rows = told(tape.since({}, {}))
    assert head["first"] + head["count"] == 250
    assert 75 <= head["count"] <= 100
    assert rows[-1][0] == 249
    assert head["losses"] == [["down", 250]]
    assert tape.row(0) is None
    last = tape.row(249)
    assert last is not None
    assert last["receiver"] == "bob"


@given(SENDINGS, st.integers(1, 4))
def test_a_recording_read_as_it_stands_is_what_was_sent(sendings: list[Sending], at_once: int) -> None:
    sent, read = Tape(), Tape()
    sendings = [(*each[:4], [fate for fate in each[4] if fate[1]], each[5]) for each in sendings]  # All have a name.
    sent.add(sendings)
    records: list[Record] = []
    for at, sender, topic, payload, fates, number in sendings:
        if all(lost is not None for *_, lost in fates):
            records.append((at, at, number, RecordedPath(topic, sender, "", 0), payload, None))
        for arrival, receiver, copy, lost in fates:
            path = RecordedPath(topic, sender, receiver, copy)
            records.append((arrival, at, number, path, None if lost else payload, lost))
    rest: list[Record] = []
    for start in range(0, len(records), at_once):
        rest = read.add_recorded([*rest, *records[start : start + at_once]])
    read.add((at, path.sender, path.topic, payload, [], number) for _, at, number, path, payload, _ in rest)
    assert content(read) == content(sent)


def content(tape: Tape) -> Any:
    """Return what a tape has, by names: they may be numbered otherwise."""
    head, rows = told(tape.since({}, {}, 2**62))
    members, topics, reasons = ([*head[name], None] for name in ("members", "topics", "reasons"))
    notes = [(at, members[who], topics[topic], *rest) for at, who, topic, *rest in head["notes"]]
    return [
        (*row[:2], members[row[2]], members[row[3]], topics[row[4]], row[5], reasons[row[6]]) for row in rows
    ], notes
