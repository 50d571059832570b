"""Faults: what is done to participants, when, and how a seed draws it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, Protocol, get_args

from msgspec import MsgspecError, Struct, json

from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.latency import Latency, as_delay
from worldline.model.message import check_name
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TIME_MAX, TimeLike, format_time, is_time

# Faults of a federation: what is done to its participants, and when.
#
# A fault has a time, or waits for an event: something that the participant itself sends or receives, so that whether it
# happens is known where it happens. It ends after `lasts`, or when its counterpart says so.

# When some faults are milder than others, in any room: nothing is ever amiss that wasn't.

Change = tuple[int, Hashable, bool]
"""From a time on, something is amiss, or is no longer."""


def is_never_worse(
    mild: Sequence[Change], harsh: Sequence[Change], *, at_first: Mapping[Hashable, bool] | None = None
) -> bool:
    """Whether nothing is ever amiss with the first that isn't at that time with the others. Both are in order."""
    times = sorted({change[0] for change in (*mild, *harsh)})
    pairs = zip(_amiss(mild, times, at_first or {}), _amiss(harsh, times, at_first or {}), strict=True)
    return all(here <= there for here, there in pairs)


def _amiss(
    changes: Iterable[Change], times: Sequence[int], at_first: Mapping[Hashable, bool]
) -> Iterator[frozenset[Hashable]]:
    """Yield for each time what is amiss from then on."""
    state = dict(at_first)
    waiting = deque(changes)
    for at in times:
        while waiting and waiting[0][0] <= at:
            _, what, is_amiss = waiting.popleft()
            state[what] = is_amiss
        yield frozenset(what for what, is_amiss in state.items() if is_amiss)


FaultVerb = Literal[
    "crash",
    "recover",
    "hang",
    "resume",
    "slow",
    "fast",
    "dropout",
    "restore",
    "partition",
    "repair",
    "kill",
    "restart",
    "signal",
    "handled",
]
FAULT_VERBS: tuple[str, ...] = tuple(verb for verb in get_args(FaultVerb) if verb != "handled")

ENDED_BY = {
    "crash": "recover",
    "hang": "resume",
    "slow": "fast",
    "dropout": "restore",
    "partition": "repair",
    "kill": "restart",
    "signal": "handled",  # By itself: no fault says so.
}
"""What can go wrong, and what ends it."""

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH", "SIGCONT")

PROCESS_FAULTS = ("kill", "restart", "signal")
"""What happens to the program of a machine, while the machine goes on."""

_BEGUN_BY = {end: begin for begin, end in ENDED_BY.items()}

FAULT_FORMS = (
    '"2s crash planner", "3s recover planner", "1s hang camera 200ms", "1s slow planner 20ms", "4s fast planner", '
    '"1s dropout camera", or "planner sends commit: crash planner 1s"'
)

_FORMS = {
    "crash": '"2s crash planner 1s"',
    "recover": '"3s recover planner"',
    "hang": '"1s hang camera 200ms"',
    "resume": '"1s resume camera"',
    "slow": '"1s slow planner 20ms 3s"',
    "fast": '"4s fast planner"',
    "dropout": '"1s dropout camera image 200ms"',
    "restore": '"2s restore camera"',
    "partition": '"1s partition camera 200ms"',
    "repair": '"2s repair camera"',
    "kill": '"2s kill api 1s"',
    "restart": '"3s restart api"',
    "signal": '"2s signal api SIGTERM"',
    "event": '"planner sends commit 3: crash planner 1s"',
}

_EVENT_VERBS = ("sends", "receives")


class FaultTrigger(Struct, frozen=True):
    """What a fault waits for: that a participant has sent, or is about to be given, its nth message on a topic."""

    participant: str
    verb: Literal["sends", "receives"]
    topic: str
    count: int = 1

    def __str__(self) -> str:
        words = [_quoted(self.participant), self.verb, _quoted(self.topic)]
        return " ".join(words if self.count == 1 else [*words, str(self.count)])


class ParticipantFault(Struct, frozen=True, kw_only=True):
    """At a time, or after an event, something is done to a participant.

    `crash` ends its program; `hang` keeps it from doing anything; `slow` makes it act `delay` later than it would;
    `dropout` loses what it sends, on one `topic` or on all; `partition` also loses what others send it. `kill` ends the
    program of a machine, and the machine goes on; `signal` sends it the signal of that name. Each but that `lasts` for
    a while, or, if that is None, until `recover`, `resume`, `fast`, `restore`, `repair` or `restart`, if there is one.
    A fault that waits for an event has no time (`at` is 0).
    """

    at: int = 0
    verb: FaultVerb
    participant: str
    delay: int = 0
    lasts: int | None = None
    topic: str | None = None
    after: FaultTrigger | None = None
    signal: str = ""

    def __str__(self) -> str:
        when = format_time(self.at) if self.after is None else f"{self.after}:"
        words = [when, self.verb, _quoted(self.participant)]
        if self.topic is not None:
            words.append(_quoted(self.topic))
        if self.signal:
            words.append(self.signal)
        words += [format_time(time) for time in (self.delay or None, self.lasts) if time is not None]
        return " ".join(words)


def order_of(fault: ParticipantFault) -> tuple[bool, int, str]:
    """What faults are sorted by: those at a time by their times, and then those that wait for an event."""
    return fault.after is not None, fault.at, str(fault)


# -- As text

_WORD = re.compile(r'"(?:[^"\\]|\\.)*":?|[^\s"]+')


class _Word(NamedTuple):
    text: str
    is_quoted: bool
    ends_event: bool = False  # Whether a colon follows.

    @property
    def time(self) -> int | None:
        try:
            return None if self.is_quoted else as_time(self.text)
        except ConfigurationError:
            return None


def _quoted(name: str) -> str:
    """Write a name so that it is read as one word, and as nothing but a name."""
    is_plain = re.fullmatch(r'[^\s":][^\s"]*', name) and not name.endswith(":") and not name.isdecimal()
    return name if is_plain and _Word(name, False).time is None else json.encode(name).decode()


def as_participant_fault(given: ParticipantFault | str) -> ParticipantFault:
    """Take a fault, or a text such as ``"2s crash planner"`` or ``"planner sends commit: hang planner 200ms"``."""
    if isinstance(given, ParticipantFault):
        return given
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(f"{shown(given)} isn't a fault", advice=f"write {FAULT_FORMS}")
    try:
        return _parsed(given)
    except ConfigurationError as error:
        raise ConfigurationError(f"{shown(given)} isn't a fault: {error.problem}", advice=error.advice) from None


def as_faults(given: Iterable[ParticipantFault | str]) -> tuple[ParticipantFault, ...]:
    """Take faults and texts, and return them sorted."""
    check_listed(given)
    return tuple(sorted(map(as_participant_fault, given), key=order_of))


def check_listed(given: object) -> None:
    """Refuse a single text, whose letters would be taken for faults."""
    if isinstance(given, str):
        raise ConfigurationError(f"{shown(given)} is one text", advice="faults are a list")


def _misread(problem: str, form: str, advice: str | None = None) -> ConfigurationError:
    return ConfigurationError(problem, advice=f"{advice} Write {form}" if advice else f"write {form}")


def _parsed(text: str) -> ParticipantFault:
    if _WORD.sub("", text).strip():
        raise _misread("a quotation mark is missing", _FORMS["event"])
    words = [_word(found) for found in _WORD.findall(text)]
    colon = next((place for place, each in enumerate(words) if each.ends_event), None)
    if colon is not None:
        after = _parsed_trigger([each for each in words[: colon + 1] if each.text or each.is_quoted])
        return _parsed_fault(words[colon + 1 :], 0, after)
    if len(words) > 1 and words[1].text in _EVENT_VERBS:
        raise _misread("there is no colon after the event", _FORMS["event"])
    if words[0].text in FAULT_VERBS:
        raise _misread("it doesn't begin with a time or an event", _FORMS[words[0].text])
    verb = words[1].text if len(words) > 1 else ""
    return _parsed_fault(words[1:], _time_in(words[0], _FORMS.get(verb, _FORMS["crash"])), None)


def _word(found: str) -> _Word:
    text = found.removesuffix(":")
    if not found.startswith('"'):
        return _Word(text, False, text != found)
    try:
        return _Word(json.decode(text, type=str), True, text != found)
    except MsgspecError:
        return _Word(found, False)


def _time_in(word: _Word, form: str) -> int:
    if word.time is not None:
        return word.time
    if re.fullmatch(r"[0-9.]+", word.text):
        raise _misread(f"{word.text} needs a unit, such as {word.text}ms", form)
    raise _misread(f"{shown(word.text)} isn't a time", form)


def _parsed_trigger(words: list[_Word]) -> FaultTrigger:
    form = _FORMS["event"]
    if len(words) not in (3, 4) or words[1].text not in _EVENT_VERBS:
        raise _misread("what is before the colon isn't an event", form)
    count = words[3].text if len(words) == 4 else "1"
    if not count.isdecimal() or len(count) > 9 or int(count) < 1:
        raise _misread(f"{shown(count)} doesn't say which message: they count from 1", form)
    return FaultTrigger(words[0].text, words[1].text, words[2].text, int(count))  # type: ignore[arg-type]


def _parsed_fault(words: list[_Word], at: int, after: FaultTrigger | None) -> ParticipantFault:
    verb = words[0].text if words else ""
    if verb not in FAULT_VERBS:
        problem = f"there is no {shown(verb)}" if words else "it doesn't say what happens"
        raise _misread(problem, f"one of {', '.join(FAULT_VERBS)}", nearest(verb, FAULT_VERBS))
    form = _FORMS[verb] if after is None else _FORMS["event"]
    if len(words) < 2:
        raise _misread(f"it doesn't say to whom the {verb} happens", form)
    rest = words[2:]
    topic, signal = None, ""
    if verb == "dropout" and rest and rest[0].time is None:
        topic = rest.pop(0).text
    if verb == "signal":
        signal = rest.pop(0).text if rest else ""
        if signal not in SIGNALS:
            problem = f"there is no signal {shown(signal)}" if signal else "it doesn't say which signal"
            raise _misread(problem, form, nearest(signal.upper(), SIGNALS, prefix="SIG"))
    times = [_time_in(each, form) for each in rest]
    delays = 1 if verb == "slow" else 0
    if len(times) < delays:
        raise _misread("it doesn't say by how much it is slow", form)
    if len(times) > delays + (verb in ENDED_BY and verb != "signal"):
        raise _misread(f"{rest[-1].text} is one time too many", form)
    return ParticipantFault(
        at=at,
        verb=verb,  # type: ignore[arg-type]
        participant=words[1].text,
        delay=times[0] if delays else 0,
        lasts=times[delays] if len(times) > delays else None,
        topic=topic,
        after=after,
        signal=signal,
    )


# -- Checked


def check_faults(faults: Sequence[ParticipantFault], names: Sequence[str], end: int | None) -> None:
    """Refuse what can't happen: to a participant that there isn't, after the end, or without something that it ends."""
    if not isinstance(faults, tuple | list):
        raise ConfigurationError(
            f"{shown(faults)} isn't a tuple of faults", advice='write faults=("2s crash planner",)'
        )
    for each in faults:
        if not isinstance(each, ParticipantFault):
            raise ConfigurationError(f"{shown(each)} isn't a fault", advice=f"write {FAULT_FORMS}")
        _check_fault(each, names, end)
    for participant, verb in dict.fromkeys((each.participant, _BEGUN_BY.get(each.verb, each.verb)) for each in faults):
        _check_sequence(faults, participant, verb)
    for participant in dict.fromkeys(each.participant for each in faults):
        _check_alive(faults, participant)


def _check_fault(each: ParticipantFault, names: Sequence[str], end: int | None) -> None:
    if each.verb not in FAULT_VERBS:
        raise ConfigurationError(f"{shown(each.verb)} isn't a fault", advice=f"there are {', '.join(FAULT_VERBS)}")
    check_name(each.participant, "a participant")
    mentioned = [each.participant] if each.after is None else [each.participant, each.after.participant]
    for name in mentioned:
        if name not in names:
            there = sorted(names)
            advice = nearest(name, there) or f"the roster is {', '.join(there[:12])}"
            raise ConfigurationError(f"{each}: there is no participant {shown(name)}", advice=advice)
    if not is_time(each.at):
        raise ConfigurationError(f"{shown(each.at)} isn't a time for a fault")
    for time in (each.delay, each.lasts):
        if time is not None and not is_time(time):
            raise ConfigurationError(f"{each}: {shown(time)} isn't a time")
    if end is not None and each.at >= end:
        raise ConfigurationError(f"{each}: the run ends at {format_time(end)}", advice="faults happen before the end")
    if each.lasts == 0 or (each.verb == "slow" and not each.delay):
        raise ConfigurationError(f"{each}: it takes no time", advice="use at least 1ns")
    if each.after is not None:
        _check_trigger(each, each.after)


def _check_trigger(each: ParticipantFault, after: FaultTrigger) -> None:
    if after.participant != each.participant:
        raise ConfigurationError(
            f"{each}: only what {each.participant} itself sends or receives can trigger that",
            advice=f"what {after.participant} does is known there later; name one of {each.participant}'s own topics",
        )
    if each.verb in ("dropout", "partition", *_BEGUN_BY):
        is_end = each.verb in _BEGUN_BY
        why = f": it ends a {_BEGUN_BY[each.verb]}" if is_end else ""
        advice = f"say how long the {_BEGUN_BY[each.verb]} lasts" if is_end else "give it a time"
        raise ConfigurationError(f"{each}: a {each.verb} can't wait for an event{why}", advice=advice)
    check_name(after.topic, "a topic")


def check_events(faults: Iterable[ParticipantFault], publishes: Mapping[str, Iterable[str] | None]) -> None:
    """Refuse what waits for a message that no participant can send, or loses what its participant never sends.

    `publishes` is what each participant may; None means any topic. Whether one subscribes to what it is to receive
    isn't known before the run: it may do so later.
    """
    for each in faults:
        if each.participant not in publishes or (each.after is None and each.verb != "dropout"):
            continue
        is_sent = each.after is None or each.after.verb == "sends"
        senders = [name for name in publishes if (name == each.participant) == is_sent]
        topics: set[str] | None = set()
        for name in senders:
            declared = publishes[name]
            topics = None if topics is None or declared is None else topics.union(declared)
        topic = each.topic if each.after is None else each.after.topic
        if topics is None or (topic in topics if topic is not None else topics):
            continue
        known = sorted(topics)
        problem = f"{each.participant} doesn't publish" if is_sent else "no other participant publishes"
        they = "it publishes" if is_sent else "others publish"
        listed = f"{they} {', '.join(known[:12]) or 'nothing'}"
        advice = "its `publishes` is empty" if topic is None else nearest(topic, known) or listed
        raise ConfigurationError(f"{each}: {problem} {'anything' if topic is None else shown(topic)}", advice=advice)


def _check_sequence(faults: Sequence[ParticipantFault], participant: str, verb: str) -> None:
    """Look whether what is begun and what is ended go together, for one participant."""
    begun: list[ParticipantFault] = []
    are_open = False  # Whether some of them haven't been ended, and don't end by themselves.
    for each in sorted(faults, key=order_of):
        if each.participant != participant or each.verb not in (verb, ENDED_BY[verb]) or each.after is not None:
            continue
        if each.verb == verb:
            if verb == "crash":
                _check_up(each, begun)
            are_open = are_open or each.lasts is None
        elif are_open:
            are_open = False
        else:
            limited = next((one for one in reversed(begun) if one.lasts is not None), None)
            if limited is None:
                raise ConfigurationError(f"{each}: there is no {verb} before that it could end")
            raise ConfigurationError(
                f"{each}: there is no {verb} before that it could end: {shown(str(limited))} has an end of its own",
                advice=f"leave out how long it lasts, or the {each.verb}",
            )
        begun.append(each)


def _check_up(crash: ParticipantFault, before: Sequence[ParticipantFault]) -> None:
    """Look whether a participant is up that is to crash."""
    for start, end, because in spans_of(before, crash.participant, "crash"):
        if start <= crash.at < end:
            raise ConfigurationError(f"{crash}: it is down then already, because of {shown(str(because))}")


def _check_alive(faults: Sequence[ParticipantFault], participant: str) -> None:
    """Look whether a participant that is to hang or to be slow hasn't crashed for good."""
    for start, end, because in spans_of(faults, participant, "crash"):
        for each in faults:
            is_after = each.participant == participant and each.after is None and start <= each.at
            if end == FOREVER and is_after and each.verb in ("hang", "slow"):
                raise ConfigurationError(
                    f"{each}: it has crashed for good by then, because of {shown(str(because))}",
                    advice="let it recover before, or leave one of them out",
                )


def check_boots(faults: Iterable[ParticipantFault], boots: Mapping[str, int]) -> None:
    """Refuse a crash of a participant that hasn't booted by then. `boots` is the least time that takes."""
    for each in faults:
        least = boots.get(each.participant, 0)
        if each.verb == "crash" and each.after is None and each.at < least:
            raise ConfigurationError(
                f"{each}: {each.participant} boots until {format_time(least)}, and is down then already",
                advice="let it crash later, or boot for longer",
            )


def check_machines(faults: Iterable[ParticipantFault], machines: Collection[str]) -> None:
    """Refuse what only happens to the program of a machine, where a participant isn't one."""
    for each in faults:
        if each.verb in PROCESS_FAULTS and each.participant not in machines:
            raise ConfigurationError(
                f"{each}: only the program of a machine, a script or a module, can be killed or sent a signal",
                advice="let it crash",
            )


# -- What they come to


def spans_of(
    faults: Iterable[ParticipantFault], participant: str, verb: str
) -> list[tuple[int, int, ParticipantFault]]:
    """Return from when to when something happens to a participant at stated times, and the fault that says so."""
    spans: list[tuple[int, int, ParticipantFault]] = []
    for each in sorted(faults, key=order_of):
        if each.participant != participant or each.after is not None:
            continue
        if each.verb == verb:
            spans.append((each.at, FOREVER if each.lasts is None else min(each.at + each.lasts, FOREVER), each))
        elif each.verb == ENDED_BY[verb]:
            spans = [
                (start, each.at if end == FOREVER and begun.lasts is None else end, begun)
                for start, end, begun in spans
            ]
    return spans


class Dropout(NamedTuple):
    """A time span [start, end) in which what a participant sends is lost, on one topic or on all."""

    start: int
    end: int
    sender: str
    topic: str | None


def dropouts_of(faults: Iterable[ParticipantFault]) -> tuple[Dropout, ...]:
    """Return the time spans that drop-outs come to."""
    faults = tuple(faults)
    return tuple(
        Dropout(start, end, name, begun.topic)
        for name in dict.fromkeys(each.participant for each in faults)
        for start, end, begun in spans_of(faults, name, "dropout")
    )


def partitions_of(faults: Iterable[ParticipantFault]) -> list[tuple[int, int, str]]:
    """Return from when to when participants are cut off from all others."""
    faults = tuple(faults)
    names = dict.fromkeys(each.participant for each in faults if each.verb == "partition")
    return [(start, end, name) for name in names for start, end, _ in spans_of(faults, name, "partition")]


def are_milder(faults: Sequence[ParticipantFault], than: Sequence[ParticipantFault]) -> bool:
    """Whether nothing ever happens that doesn't happen at that time with the others: fewer, shorter or lesser ones."""
    delays = sorted({each.delay for each in (*faults, *than)})
    return is_never_worse(_changes(faults, delays), _changes(than, delays))


def _changes(faults: Sequence[ParticipantFault], delays: Sequence[int]) -> list[Change]:
    spans: dict[Hashable, list[tuple[int, int]]] = {}
    for name, verb in dict.fromkeys((each.participant, each.verb) for each in faults if each.verb in ENDED_BY):
        for start, end, begun in spans_of(faults, name, verb):
            for delay in delays[: bisect_right(delays, begun.delay)]:  # Who is slow by 3 ms is so by 2 ms as well.
                spans.setdefault((name, verb, delay, begun.topic), []).append((start, end))
    for each in faults:
        if each.after is not None:  # After the event, whenever that is.
            for delay in delays[: bisect_right(delays, each.delay)]:
                awaited = (str(each.after), each.participant, each.verb, delay)
                spans.setdefault(awaited, []).append((0, FOREVER if each.lasts is None else each.lasts))
    changes = [
        change
        for what, own in spans.items()
        for start, end in _merged(own)
        for change in ((start, what, True), (end, what, False))
    ]
    return sorted(changes, key=lambda change: (change[0], change[2]))


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the same without overlaps, and without what is over at once."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


# Faults of a federation that are drawn from a seed: at random times, or after random events.
#
# A fault at a random time hardly ever hits the moment that matters, and never the one between a message and the
# program's next line. A fault that waits for an event does. Events are drawn from the topics that participants declare,
# so they are known before anything runs, and are the same on every executor. Some never happen, nor do their faults.

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


_AT_TIMES: dict[str, FaultVerb] = {
    "crash": "crash",
    "hang": "hang",
    "slow": "slow",
    "dropout": "dropout",
    "partition": "partition",
    "kill": "kill",
}
_AFTER_EVENTS: dict[str, FaultVerb] = {
    "crash-after": "crash",
    "hang-after": "hang",
    "slow-after": "slow",
    "kill-after": "kill",
}
KINDS = (*_AT_TIMES, *_AFTER_EVENTS)
_TRIES_MAX = 16  # Who is down for most of the run has little room for another crash, or none.
_COUNT_MAX = 32  # Which event it is: a fifth of the faults wait for the first, and as many for the 16th to the 31st.
_SHOWN_MAX = 12

Event = tuple[str, Literal["sends", "receives"], str]


class DeclaredTopics(Protocol):
    """What a participant sends and receives, how long it boots, and whether it is a machine, which can be killed.

    `publishes` of None means any topic.
    """

    @property
    def publishes(self) -> Iterable[str] | None: ...

    @property
    def subscribes(self) -> Iterable[str]: ...

    @property
    def boot(self) -> Latency | TimeLike: ...

    @property
    def is_machine(self) -> bool: ...


def parse_fault_kinds(text: str) -> dict[str, float]:
    """Read ``"crash=1,hang-after=2"``: how many of each."""
    usual = dict.fromkeys(KINDS, 1)
    advice = 'write "crash=1,hang=2,slow=1,dropout=1,partition=1,kill=1,crash-after=1", or some of these'
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
    able_to: dict[str, Mapping[str, DeclaredTopics]] = {
        "crash": {name: part for name, part in parts.items() if name not in lasting},
        "kill": {name: part for name, part in parts.items() if part.is_machine},
    }
    found: list[ParticipantFault] = []
    for kind, verb in {**_AT_TIMES, **_AFTER_EVENTS}.items():
        draws = Stream(seed, "faults", kind)
        able = able_to.get(verb, parts)
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
            if kind in ("kill", "kill-after"):
                why = "only the programs of machines can be killed"
            elif kind in _AFTER_EVENTS:
                why = "events are those of topics that participants declare"
            else:
                why = "there is no room for more"
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
