"""Tells a observer, such as a recorder, what has happened in a run; and makes records again of what it has kept.

A observer counts whole nanoseconds. Lab times are read as seconds and rounded to the nearest one; what is before 0 is
told as 0, and what is absorbed within the nanosecond in which it was sent, as absorbed in the next. The exact
coordinates are in the payloads, which are JSON: its numbers give the same floats back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import MsgspecError, Struct, json

from worldline.history.observer import Observer
from worldline.model.errors import UsageError
from worldline.model.time import SECOND, TIME_MAX
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.build import LambdaField
from worldline.spacetime.simulation import ForwardSimulation
from worldline.spacetime.space import Minkowski
from worldline.spacetime.story import Record

SETTING, LOG, META = "worldline/setting", "worldline/log", "worldline/meta"
"""The topics of what wasn't sent: where it all takes place, lines that agents have written, and all else they did."""

UNDER_WAY = "still under way at the end"
DEAD = "its target was dead"

_encode = json.Encoder(order="deterministic").encode


class Wall(Struct, frozen=True):
    """A boundary as it was: its plane, and what it is called."""

    normal: tuple[float, ...]
    offset: float
    name: str

    def boundary(self) -> Boundary:
        """Return one to look at; what it does to agents isn't kept."""
        return Boundary(self.normal, self.offset, name=self.name)


class Setting(Struct, frozen=True):
    """What a run takes place in: n dimensions, the lambda field, boundaries, until when."""

    n: int
    R: tuple[float, ...] | None
    c: float
    until: float
    walls: tuple[Wall, ...] = ()

    @property
    def space(self) -> Minkowski:
        return Minkowski(self.n)

    @property
    def field(self) -> LambdaField:
        return LambdaField(self.R, self.c)

    @property
    def boundaries(self) -> list[Boundary]:
        return [wall.boundary() for wall in self.walls]


class _Sent(Struct, frozen=True, omit_defaults=True):
    """The payload of what was sent: the record of it, and that of its absorption if there is one."""

    sent: Record
    absorbed: Record | None = None


def setting_of(simulation: ForwardSimulation, until: float) -> Setting:
    field = simulation.field
    given: Any = field.R
    walls = tuple(
        Wall(each.normal.coordinates(), each.offset, each.name) for each in simulation.boundaries if not each.is_end
    )
    return Setting(simulation.space.n, None if given is None else tuple(given), field.c, until, walls)


def nanoseconds(lab_time: float) -> int:
    """Return a lab time as a observer counts it."""
    return max(0, round(lab_time * SECOND))


def check_end(until: float) -> None:
    """Refuse an end that no observer can count to."""
    if until * SECOND >= TIME_MAX:
        raise UsageError(
            f"a run until {until:g} can't be recorded: recordings end at {TIME_MAX / SECOND:.4g}",
            advice="lab times are recorded as seconds; choose another unit for them",
        )


def testify(
    setting: Setting, records: Sequence[Record], chains: Iterable[tuple[str, int, bytes]], observer: Observer
) -> None:
    """Tell all that has happened in a run that was traced: who took part, what was sent, and what became of it.

    Topics are what was sent, by the names of functions. Without `chains`, nobody has got to the end: the run failed.
    """
    sent = {(record.channel, record.order) for record in records if record.kind == "sent"}
    absorbed = {(record.channel, record.order): record for record in records if record.kind == "absorbed"}
    died = {record.agent for record in records if record.kind == "died"}
    for name, first in _firsts(records).items():
        observer.began(name, nanoseconds(first.at[0]))
    end = nanoseconds(setting.until) + 1
    observer.sent("", 0, SETTING, 0, _encode(setting), end)
    sequences: dict[str, int] = {}
    for record in records:
        sender, at = record.agent, nanoseconds(record.at[0])
        if record.kind == "absorbed" and (record.channel, record.order) in sent:
            continue  # It is told together with that.
        sequence = sequences.get(sender, 0)
        sequences[sender] = sequence + 1
        if record.kind != "sent":
            topic = LOG if record.kind == "log" else META
            observer.sent(sender, sequence, topic, at, _encode(record), at)
            continue
        taken = absorbed.get((record.channel, record.order))
        arrival = max(at + 1, end if taken is None else nanoseconds(taken.at[0]))
        observer.sent(sender, sequence, record.what, at, _encode(_Sent(record, taken)), arrival)
        lost = None if taken is not None else DEAD if record.peer in died else UNDER_WAY
        observer.arrives(sender, sequence, record.peer, arrival, 0, lost)
    for name, at, chain in chains:
        observer.ended(name, at, chain)


def _firsts(records: Iterable[Record]) -> dict[str, Record]:
    """Return the first record of everybody; they are in the order of lab time."""
    found: dict[str, Record] = {}
    for record in records:
        found.setdefault(record.agent, record)
    return found


def recall(kept: Iterable[tuple[str, bytes]]) -> tuple[Setting, list[Record]]:
    """Return what was told: the setting and all records in their order, of topics and payloads in any order."""
    setting: Setting | None = None
    records: list[Record] = []
    try:
        for topic, payload in kept:
            if topic == SETTING:
                setting = json.decode(payload, type=Setting)
            elif topic in (LOG, META):
                records.append(json.decode(payload, type=Record))
            else:
                told = json.decode(payload, type=_Sent)
                records += [told.sent] if told.absorbed is None else [told.sent, told.absorbed]
    except MsgspecError as error:
        raise UsageError(f"it doesn't hold a run through spacetime: {error}") from error
    if setting is None:
        raise UsageError("it doesn't hold a run through spacetime", advice="record one with --record")
    return setting, sorted(records, key=lambda record: (record.at[0], record.agent, record.number))
