"""Faults of a federation that are drawn from a seed: at random times, or after random events.

A fault at a random time hardly ever hits the moment that matters, and never the one between a message and the program's
next line. A fault that waits for an event does. Events are drawn from the topics that participants declare, so they are
known before anything runs, and are the same on every executor. Some of them never happen, nor do their faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, Protocol

from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.faults.faults import (
    FaultTrigger,
    FaultVerb,
    ParticipantFault,
    check_boots,
    check_events,
    check_faults,
    order_of,
)
from worldline.model.latency import Latency, as_delay
from worldline.model.randomness import Stream
from worldline.model.time import TIME_MAX, TimeLike

# How many faults of which kind are asked for, in any room.

_COUNT_OF_A_KIND_MAX = 10_000


def parse_counts(text: str, counts: Mapping[str, int], shares: Mapping[str, float], advice: str) -> dict[str, float]:
    """Read ``"crash=3,partition,loss=0.1"``: how many of each kind, or which share of the messages.

    `counts` and `shares` are the kinds that there are, each with what is meant without a number.
    """
    kinds: dict[str, float] = {}
    usual = {**counts, **shares}
    for word in filter(None, (part.strip() for part in text.split(","))):
        kind, equals, value = (part.strip() for part in word.partition("="))
        refused = f"{shown(word)} can't be drawn"
        if kind not in usual:
            raise ConfigurationError(
                f"{refused}: there is no kind {shown(kind)}", advice=nearest(kind, usual) or advice
            )
        if kind in kinds:
            raise ConfigurationError(f"{refused}: {kind} is there twice", advice=advice)
        try:
            number = float(value) if equals else usual[kind]
        except ValueError:
            number = -1.0
        if not 0 <= number <= (1 if kind in shares else _COUNT_OF_A_KIND_MAX):  # Nothing is compared with NaN.
            wanted = "a share from 0 to 1" if kind in shares else f"a number from 0 to {_COUNT_OF_A_KIND_MAX:,}"
            raise ConfigurationError(f"{refused}: {shown(value)} isn't {wanted}", advice=advice)
        if kind in counts and number != int(number):
            raise ConfigurationError(f"{refused}: {shown(value)} isn't a whole number", advice=advice)
        kinds[kind] = number
    return kinds


# From when to when something goes wrong in a run, drawn from a seed, in any room.

_SHORTEST = 0.01  # The shortest fault, as a share of the time there is.
_CALM_FROM = 0.7  # By then all is well again, so that what has to come in the end can come.


def calm_from(until: int) -> int:
    """Return the time by which all drawn faults of a run are over."""
    return max(1, int(until * _CALM_FROM))


def draw_span(calm: int, draws: Stream) -> tuple[int, int]:
    """Draw when something goes wrong, and until when: as often for hundredths as for tenths of the time there is.

    Bugs hide in faults of every length: some take one that covers an election, some one that is over in no time.
    """
    length = draw_length(calm, draws)
    unit = _unit(calm)
    start = draws.randrange(max(1, (calm - length) // unit)) * unit
    return start, start + length


def draw_length(calm: int, draws: Stream) -> int:
    """Draw how long something goes wrong."""
    unit = _unit(calm)
    return max(1, int(calm // unit * _SHORTEST ** draws.random())) * unit


def _unit(calm: int) -> int:
    """Return what times are drawn in: whole milliseconds where there is room for that."""
    return 10**6 if calm > 10**9 else 1


_AT_TIMES: dict[str, FaultVerb] = {"crash": "crash", "hang": "hang", "slow": "slow", "dropout": "dropout"}
_AFTER_EVENTS: dict[str, FaultVerb] = {"crash-after": "crash", "hang-after": "hang", "slow-after": "slow"}
KINDS = (*_AT_TIMES, *_AFTER_EVENTS)
_TRIES_MAX = 16  # Who is down for most of the run has little room for another crash, or none.
_COUNT_MAX = 32  # Which event it is: a fifth of the faults wait for the first, and as many for the 16th to the 31st.
_SHOWN_MAX = 12

Event = tuple[str, Literal["sends", "receives"], str]


class DeclaredTopics(Protocol):
    """What a participant sends and receives, and how long it boots; `publishes` of None means any topic."""

    @property
    def publishes(self) -> Iterable[str] | None: ...

    @property
    def subscribes(self) -> Iterable[str]: ...

    @property
    def boot(self) -> Latency | TimeLike: ...


def parse_fault_kinds(text: str) -> dict[str, float]:
    """Read ``"crash=1,hang-after=2"``: how many of each."""
    usual = dict.fromkeys(KINDS, 1)
    advice = 'write "crash=1,hang=2,slow=1,dropout=1,crash-after=1", or some of these'
    kinds = parse_counts(text, usual, {}, advice)
    if not kinds:
        raise ConfigurationError(f"{shown(text)} names no faults to draw", advice=advice)
    return kinds


def draw_participant_faults(
    kinds: Mapping[str, float],
    parts: Mapping[str, DeclaredTopics],
    end: int | None,
    seed: int,
    *,
    given: Sequence[ParticipantFault] = (),
    lasting: Collection[str] = (),
) -> tuple[ParticipantFault, ...]:
    """Draw faults of participants, of which those named in `lasting` can't crash.

    Those at a time are over before the end of the run. All of them can happen besides the `given` ones: what can't is
    drawn again, and left out if there is hardly room for it.
    """
    if end is None:
        raise ConfigurationError(
            "faults can't be drawn for a run that has no end", advice="say when it ends: --until 10s"
        )
    calm = calm_from(end)
    mortal = {name: part for name, part in parts.items() if name not in lasting}
    found: list[ParticipantFault] = []
    for kind, verb in {**_AT_TIMES, **_AFTER_EVENTS}.items():
        draws = Stream(seed, "faults", kind)
        able = mortal if verb == "crash" else parts
        endless = (
            _at_times(verb, sorted(able), calm, draws)
            if kind in _AT_TIMES
            else _after_events(verb, _events_of(able, parts), calm, draws)
        )
        for _ in range(int(kinds.get(kind, 0))):
            tries = islice(endless, _TRIES_MAX)
            found += islice((one for one in tries if _fits(one, (*given, *found), parts)), 1)
    return tuple(sorted(found, key=order_of))


def said_of_drawn(drawn: Sequence[ParticipantFault]) -> list[str]:
    """Say which faults were drawn, a line for each as long as there are few enough to read."""
    more = len(drawn) - _SHOWN_MAX
    return [*(f"drawn: {each}" for each in drawn[:_SHOWN_MAX]), *([f"drawn: {more:,} more"] if more > 0 else [])]


def said_of_undrawn(kinds: Mapping[str, float], drawn: Iterable[ParticipantFault]) -> list[str]:
    """Say of which kinds there are fewer than were asked for."""
    there = Counter(each.verb if each.after is None else f"{each.verb}-after" for each in drawn)
    said = []
    for kind, wanted in kinds.items():
        if there[kind] < wanted:
            many = f"only {there[kind]:,}" if there[kind] else "none"
            why = (
                "events are those of topics that participants declare"
                if kind in _AFTER_EVENTS
                else "there is no room for more"
            )
            said.append(f"{kind}={wanted:.0f}: {many} of {wanted:,.0f} could be drawn, since {why}")
    return said


def _at_times(verb: FaultVerb, able: list[str], calm: int, draws: Stream) -> Iterator[ParticipantFault]:
    while able:
        start, over = draw_span(calm, draws)
        name, lasts = draws.choice(able), over - start
        yield ParticipantFault(at=start, verb=verb, participant=name, delay=_delay(verb, lasts), lasts=lasts)


def _after_events(verb: FaultVerb, events: list[Event], calm: int, draws: Stream) -> Iterator[ParticipantFault]:
    while events:
        lasts = draw_length(calm, draws)
        name, does, topic = draws.choice(events)
        after = FaultTrigger(name, does, topic, int(_COUNT_MAX ** draws.random()))
        yield ParticipantFault(verb=verb, participant=name, delay=_delay(verb, lasts), lasts=lasts, after=after)


def _delay(verb: FaultVerb, lasts: int) -> int:
    return max(1, min(lasts // 10, TIME_MAX)) if verb == "slow" else 0


def _events_of(able: Mapping[str, DeclaredTopics], parts: Mapping[str, DeclaredTopics]) -> list[Event]:
    """Return what the able may do. One that doesn't say what it sends may send all that others listen to."""
    heard = sorted({topic for part in parts.values() for topic in part.subscribes})
    events: list[Event] = []
    for name, part in sorted(able.items()):
        events += [(name, "sends", topic) for topic in (heard if part.publishes is None else sorted(part.publishes))]
        events += [(name, "receives", topic) for topic in sorted(part.subscribes)]
    return events


def _fits(one: ParticipantFault, others: Sequence[ParticipantFault], parts: Mapping[str, DeclaredTopics]) -> bool:
    """Whether it isn't there already, and can be."""
    name = one.participant
    try:
        check_faults((*(each for each in others if each.participant == name), one), [name], None)
        check_boots([one], {name: as_delay(parts[name].boot).minimum})
        check_events([one], {other: part.publishes for other, part in parts.items()})
    except ConfigurationError:
        return False
    return one not in others
