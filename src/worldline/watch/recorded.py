"""A recording as pages see it: read once into the tape, and again where a message or a signal is asked for."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import chain, islice
from typing import Any

from msgspec.structs import replace

from worldline.history.account import Sending
from worldline.model.text import printable
from worldline.recording.reader import Recording, intact, recorded_account, shortcoming, story
from worldline.recording.scan import Record, records
from worldline.recording.signals import decoders_of
from worldline.watch.show import Show, in_background
from worldline.watch.tape import Tape

_BATCH, _CHUNKS = 20_000, 8


class RecordedSource:
    """Finds messages in a recording's file."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def payload(self, row: dict[str, Any]) -> bytes | None:
        scan = self._recording.scan
        chunks = [chunk for chunk in scan.chunks if chunk.earliest <= row["arrival"] <= chunk.latest]
        with self._recording.path.open("rb") as file:
            for _, sent, number, path, payload, _ in records(scan, file, chunks, dict(self._recording.channels)):
                is_it = (sent, number) == (row["sent"], row["number"]) and payload is not None
                if is_it and (printable(path.sender), printable(path.topic)) == (row["sender"], row["topic"]):
                    return payload
        return None

    def sendings(
        self, start: int = 0, stop: int | None = None, topics: Container[str] | None = None
    ) -> Iterable[Sending]:
        return recorded_account(self._recording).sendings


def recorded_show(recording: Recording) -> Show:
    """Return a recording as pages see it, read in the background; refuse one that was altered."""
    header, outcome = intact(recording).header, recording.outcome
    show = Show(
        {
            "name": printable(header.federation or recording.path.stem),
            "room": room_of(recording),
            "seed": header.seed,
            "file": recording.path.name,
            "live": False,
        },
        Tape(rows_max=2**62, notes_max=2**62),
        source=RecordedSource(recording),
        decoder=decoders_of(recording.channels, recording.scan),
    )

    def read() -> None:
        account = recorded_account(recording)
        for name, stay in sorted(account.stays.items()):
            show.tape.member(name, stay.began, stay.ended)
        if account.is_complete and not recording.scan.is_reordered:
            _read_as_it_stands(recording, show.tape)
        else:
            sendings = iter(account.sendings)
            while batch := list(islice(sendings, _BATCH)):
                show.tape.add(batch)
        status: dict[str, Any] = {"phase": "over", "digest": None if outcome is None else outcome.digest}
        if outcome is not None and outcome.cause:
            status |= {
                "phase": "failed",
                "failure": story(replace(outcome, until=None)),
                "failedAt": outcome.at,
                "failedBy": outcome.participant or None,
            }
        elif outcome is None:
            status["failure"] = shortcoming(recording)
        show.status = status

    show.reading = in_background(read, show)
    return show


def _read_as_it_stands(recording: Recording, tape: Tape) -> None:
    """Read a file that is whole, some chunks at a time."""
    scan, channels = recording.scan, dict(recording.channels)
    rest: list[Record] = []
    with recording.path.open("rb") as file:
        for start in range(0, len(scan.chunks), _CHUNKS):
            found = records(scan, file, scan.chunks[start : start + _CHUNKS], channels)
            rest = tape.add_recorded(chain(rest, found))
    tape.add((sent, path.sender, path.topic, payload, [], number) for _, sent, number, path, payload, _ in rest)


def room_of(recording: Recording) -> str:
    """Say which room has made a recording, as far as its topics tell."""
    topics = {channel.topic for channel in recording.channels.values()}
    if "/tf" in topics:
        return "world"
    if "worldline/setting" in topics:
        return "spacetime"
    return "federation"
