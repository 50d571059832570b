"""A federation as its file describes it: who takes part and how each is started, over which network.

How a file is read
------------------
1. `toml_document` parses it, puts the changes of the command line into it, and remembers every mistake with its place.
2. The tables of `words` say which keys there are and how the value of each is read. A reader sees its own place only.
3. What several places must agree on is checked here (`_check_...`), as far as all of those places could be read: a
   mistake is reported once, and has no consequences.
4. Only if there are no mistakes, `Plan` and `ParticipantSetup` are made. What the model refuses then, though the checks
   let it pass, is a mistake of the file, too.

Nothing of the user's is run by that: whether an entry is there is read from its source (`startable`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from msgspec import structs

from worldline.federation.participant.declaration import Declaration, Plain
from worldline.federation.server.limits import Limits, LossPolicy
from worldline.launch.file.startable import check_command, check_entry, search_path
from worldline.launch.file.toml_document import Document, TomlPlace, nearest, quoted, said
from worldline.launch.file.topics import Topic
from worldline.launch.file.words import FILE, LINK, PARTICIPANT, TABLES, Mention, Tables
from worldline.model.clock import LocalClock
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.faults import (
    ENDED_BY,
    ParticipantFault,
    as_faults,
    as_participant_fault,
    check_boots,
    check_events,
    check_faults,
    check_machines,
)
from worldline.model.latency import as_delay
from worldline.model.links import (
    UNBOUNDED,
    Buffer,
    Link,
    Network,
    Outage,
    Rule,
    check_estop_latency,
    hold,
    link,
    partition,
)
from worldline.model.message import check_name
from worldline.model.plan import Plan, plan
from worldline.programs.entries import KINDS, read_machine, topics_of


@dataclass(frozen=True, kw_only=True)
class ParticipantSetup:
    """One participant as the file describes it.

    It is started by a Python `entry` or by a `command`; with neither, it is started by hand. `publishes` of None
    means any topic, a `period` of 0 none.
    """

    name: str
    directory: Path
    entry: str | None = None
    command: tuple[str, ...] | None = None
    publishes: tuple[str, ...] | None = None
    subscribes: dict[str, Buffer] = field(default_factory=dict)
    period: int = 0
    clock: LocalClock | None = None
    latency_least: int = 0
    controls: bool = False
    guest: bool = False
    boot: str = "0s"
    durable: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_machine(self) -> bool:
        """Whether it is a computer, with a script or a module as its program."""
        return read_machine(self.entry) is not None


def stated_by(part: ParticipantSetup) -> Plain:
    """Return what a participant's part of the file declares for it."""
    return Declaration(
        publishes=part.publishes,
        subscribes=part.subscribes,
        period=part.period,
        clock=part.clock,
        latency_least=part.latency_least,
        controls=part.controls,
        boot=0 if part.boot == "0s" else part.boot,
        durable=part.durable,
    ).said()


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A federation that has passed all checks; `parts` are sorted by name.

    `warnings` tell of what can be run as it is written, and was hardly meant so. `properties` are what must hold, as
    ``module:function``.
    """

    file: Path
    name: str
    plan: Plan
    parts: dict[str, ParticipantSetup]
    warnings: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    on_loss: LossPolicy = "abort"
    topics: dict[str, Topic] = field(default_factory=dict)
    lcm: tuple[str, ...] = ()
    lcm_serve: str | None = None
    properties: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[ParticipantFault, ...]:
        """What happens to its participants by design."""
        return self.plan.faults

    def with_faults(self, given: Iterable[ParticipantFault | str]) -> Setup:
        """Return it with other faults, checked."""
        faults = as_faults(given)
        check_faults(faults, tuple(self.parts), self.plan.end)
        check_events(faults, {name: part.publishes for name, part in self.parts.items()})
        check_boots(faults, {name: as_delay(part.boot).minimum for name, part in self.parts.items()})
        check_machines(faults, [name for name, part in self.parts.items() if part.is_machine])
        for each in faults:
            if each.verb == "crash" and self.parts[each.participant].entry is None:
                raise ConfigurationError(f"{each}: {_NO_CRASH}", advice=_HANG_INSTEAD)
        return replace(self, plan=structs.replace(self.plan, faults=faults))


_NO_CRASH = "only a Python entry can crash: its program is ended, and started again, in its process"
_HANG_INSTEAD = "let it hang, or give it an entry"

Starts = Callable[[str], bool]
"""Says of a participant, by its name, whether it is to be started here, so that its program has to be here."""


def starts_all(_: str) -> bool:
    """All participants are started here."""
    return True


def starts_none(_: str) -> bool:
    """All participants are started elsewhere."""
    return False


# --- What several places must agree on ---

_OF_MACHINES = {"folder": "has a disk", "volatile": "has a disk", "allow": "is kept from anything"}


def _check_participants(place: TomlPlace, participants: Tables, starts: Starts) -> None:
    owners: dict[str, TomlPlace] = {}
    for participant, described in participants:
        for name, where in _names_of(described):
            if owners.setdefault(name, participant) is not participant:
                where.note(f"two participants are named {quoted(name)} (every name is used once)")
        if any(starts(name) for name, _ in _names_of(described)):
            _check_start(participant, described)
        if read_machine(described.get("entry")) is None:
            for key, what in _OF_MACHINES.items():
                if key in described:
                    participant.at(key).note(f"only a machine {what} (give it a script or a module)")
        elif described.get("volatile") and "folder" not in participant.value:
            participant.at("volatile").note("it has no disk that could be volatile (give it a folder)")
    if not place.value:
        place.note("the roster is empty (a run needs at least one participant)")
    elif len(participants) == len(place.value) and all(described.get("guest") for _, described in participants):
        place.note("all participants are guests (at least one must be there from the beginning)")


def _names_of(described: dict[str, Any]) -> list[Mention]:
    return [described["name"]] if "name" in described else described.get("names", [])


def _check_start(participant: TomlPlace, described: dict[str, Any]) -> None:
    """Look whether the participant can be started: its module or its command must be there."""
    if "directory" in participant.value and "directory" not in described:
        return
    directory = described.get("directory", _home(participant.document.file))
    keys = [key for key in ("entry", *KINDS) if key in participant.value]
    if (entry := described.get("entry")) and len(keys) == 1:  # Otherwise it isn't known which is meant.
        participant.at(keys[0]).read(lambda _: check_entry(entry, directory))
    if command := described.get("command"):
        search = search_path(described.get("environment", {}))
        participant.at("command").read(lambda _: check_command(command[0], directory, search))


def _home(file: Path) -> Path:
    return file.absolute().parent.resolve()


def _check_rules(rules: Tables) -> None:
    seen: dict[tuple[str | None, ...], TomlPlace] = {}
    for place, rule in rules:
        selection = _selection(rule)
        if not any(selection) or any(key not in rule and key not in LINK.keys for key in place.value):
            continue  # It isn't known what it names.
        same = seen.setdefault(selection, place)
        if same is not place:
            place.note(f"it names the same as links[{int(same.steps[-1]) + 1}] (merge them into one)")


def _selection(rule: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    sender, receiver = (rule[key][0] if key in rule else None for key in ("sender", "receiver"))
    return rule.get("topic"), sender, receiver


_ENDS = {"partition": "repair", "hold": "release"}


def _check_outages(outages: Tables) -> None:
    for place, fault in outages:
        verbs = [verb for verb in _ENDS if verb in place.value]
        for verb, end in _ENDS.items():
            if end in place.value and verbs and verb not in verbs:
                place.at(end).note(f"a {verbs[0]} has no {end} (write {_ENDS[verbs[0]]})")
            elif end in fault and fault[end] <= fault.get("start", -1):
                place.at(end).note(f"{said(place.value[end])} isn't after the start, {said(place.value['start'])}")


def _check_faults(
    place: TomlPlace, faults: Sequence[tuple[TomlPlace, ParticipantFault]], top: dict[str, Any], roster: list[str]
) -> None:
    """Look whether faults can happen: each alone, and all together."""
    entries = [described for _, described in top["participants"] if "entry" in described]
    startable = {name for described in entries for name, _ in _names_of(described)}
    machines = {name for each in entries if read_machine(each["entry"]) for name, _ in _names_of(each)}
    publishes = {
        name: described.get("publishes") for _, described in top["participants"] for name, _ in _names_of(described)
    }
    boots = {
        name: as_delay(described.get("boot", 0)).minimum
        for _, described in top["participants"]
        for name, _ in _names_of(described)
    }
    refused = len(place.document.refused)

    def check(*faults: ParticipantFault) -> None:
        check_faults(faults, roster, top.get("until"))
        check_events(faults, publishes)
        check_boots(faults, boots)
        check_machines(faults, machines)

    for where, fault in faults:
        if fault.verb in ENDED_BY:  # The others can't be judged without those before them.
            where.read(lambda each: check(as_participant_fault(each.value)))
        if fault.verb == "crash" and fault.participant in roster and fault.participant not in startable:
            where.note(f"{_NO_CRASH} ({_HANG_INSTEAD})")
    if len(place.document.refused) == refused:
        place.read(lambda _: check(*(fault for _, fault in faults)))


def _check_durable(participants: Tables) -> None:
    for participant, described in participants:
        for topic in described.get("durable", ()):
            if topic not in described.get("subscribes", ()):
                known = list(described.get("subscribes", ()))
                advice = nearest(topic, known, "its topics are") if known else "it subscribes to nothing"
                participant.at("durable").note(f"it doesn't subscribe to {quoted(topic)} ({advice})")


def _check_estop(participants: Tables, estop: int | None) -> None:
    for participant, described in participants:
        if estop is None or "latency_least" not in described:
            continue
        try:
            check_estop_latency("it", described["latency_least"], estop)
        except ConfigurationError as error:
            participant.at("latency_least").note(f"{error.problem} ({error.advice})")


def _check_mentions(mentions: Iterable[Mention], roster: Sequence[str]) -> None:
    for name, place in mentions:
        if name not in roster:
            place.note(f"there is no participant {quoted(name)} ({nearest(name, roster, 'the roster is')})")


def _mentions_of(rules: Tables, outages: Tables) -> list[Mention]:
    """Return every mention of a participant in a link or a fault."""
    ends = [rule[key] for _, rule in rules for key in ("sender", "receiver") if key in rule]
    return ends + [name for _, fault in outages for verb in _ENDS for side in fault.get(verb, ()) for name in side]


def _check_buffers(place: TomlPlace, buffers: Iterable[str], participants: Tables) -> None:
    subscribed = sorted({topic for _, described in participants for topic in described.get("subscribes", ())})
    for topic in buffers:
        if topic not in subscribed:
            advice = nearest(topic, subscribed, "the topics that are subscribed to are")
            place.at(topic).note(f"no participant in this file subscribes to {quoted(topic)} ({advice})")


_WARNINGS_MAX = 8  # More aren't read, and to look for the nearest name takes long where there are many.


def _warn_of_unpublished(document: Document, top: dict[str, Any]) -> None:
    """Warn of topics that are subscribed to, or linked, and that none publishes on, if all say on which."""
    participants = top["participants"]
    if any("publishes" not in described for _, described in participants):
        return
    published = sorted({topic for _, described in participants for topic in described["publishes"]})
    mentions = [
        ((*participant.steps, "subscribes"), topic)
        for participant, described in participants
        for topic in described.get("subscribes", ())
    ]
    mentions += [((*rule.steps, "topic"), said["topic"]) for rule, said in top.get("links", []) if "topic" in said]
    known = set(published)
    unpublished = [(steps, topic) for steps, topic in mentions if topic not in known]
    for steps, topic in unpublished[:_WARNINGS_MAX]:
        advice = (
            nearest(topic, published, "the topics that are published on are")
            if published
            else "no participant publishes anything"
        )
        document.warn(steps, f"no participant publishes on {quoted(topic)} ({advice})")
    if more := len(unpublished[_WARNINGS_MAX:]):
        document.warn((), f"nor on {more:,} more topics that are subscribed to, or linked")


def _check_topics(place: TomlPlace, topics: Iterable[str], participants: Tables) -> None:
    """Note topics that none uses, if it can be told: a participant that doesn't say what it publishes may use any."""
    if not all("publishes" in described for _, described in participants):
        return
    known = {
        topic
        for _, described in participants
        for key in ("publishes", "subscribes")
        for topic in described.get(key, ())
    }
    for topic in topics:
        if topic not in known:
            advice = nearest(topic, sorted(known), "the topics in it are")
            place.at(topic).note(f"no participant in this file uses {quoted(topic)} ({advice})")


def _is_known(document: Document, *keys: str) -> bool:
    """Whether these keys of all participants could be read: only then can it be said that something isn't there.

    A key that doesn't exist may be one of them, misspelled.
    """
    unread = [steps for steps in document.refused if steps[:1] == ("participants",)]
    return not any(len(steps) < 3 or steps[2] in keys or steps[2] not in PARTICIPANT.keys for steps in unread)


# --- The setup ---


def read_setup(
    file: Path,
    *,
    changes: Iterable[str] = (),
    options: Mapping[str, str] | None = None,
    starts: Starts = starts_all,
) -> Setup:
    """Read a federation from its file, with `changes` such as ``link.latency=5ms``; report all mistakes at once.

    `options` says of changes that were written as another option than --set which one that is, by the key.
    The program of a participant that others start, elsewhere, needn't be here; `starts` says whose must.
    """
    if isinstance(changes, str):
        raise UsageError(f"{shown(changes)} is one text, and settings are a list", advice=f"write [{changes!r}]")
    document = Document(Path(file), TABLES, changes, options)
    top = document.root.table(FILE)
    for _, described in top.get("participants", ()):
        for kind in KINDS:  # A machine's program is its entry.
            if kind in described:
                described["entry"] = described.pop(kind)
    if "name" not in document.root.value:
        top["name"] = document.file.stem
        try:
            check_name(top["name"], "a federation")
        except ConfigurationError as error:
            document.note(("name",), f"{error}; the file's name is used if there is none")
    _check_whole(document, top, starts)
    document.demand_no_mistakes()
    try:
        made = _plan(top)
    except ConfigurationError as error:  # What the model refuses and the checks above let pass.
        document.note((), str(error))
        document.demand_no_mistakes()
        raise
    parts = _parts(top, _home(document.file))
    _warn_of_unpublished(document, top)
    return Setup(
        file=document.file,
        name=top["name"],
        plan=made,
        parts=dict(sorted(parts.items())),
        warnings=tuple(document.warnings),
        limits=_limits(top.get("limits", {}), waits_for_people=not all(map(starts, parts))),
        on_loss=top.get("on_loss", "abort"),
        topics=top.get("topics", {}),
        lcm=top.get("lcm", {}).get("public", ()),
        lcm_serve=top.get("lcm", {}).get("serve"),
        properties=top.get("properties", ()),
    )


def check_startable(setup: Setup, starts: Starts = starts_all) -> None:
    """Refuse a federation that leaves it to others to start a participant that is to be started here."""
    for name, part in setup.parts.items():
        if part.entry is None and part.command is None and starts(name):
            raise UsageError(
                f"{setup.file} doesn't say how to start {name}",
                advice=f"give it an entry or a command, or use --without {shlex.quote(name)} or `worldline serve`",
            )


def check_name_in(setup: Setup, name: str) -> None:
    """Refuse the name of a participant that isn't in the file."""
    if name not in setup.parts:
        advice = nearest(name, list(setup.parts), "the roster is")
        raise UsageError(f"there is no participant {quoted(name)} in {setup.file}", advice=advice)


def unused_name(name: str, parts: Mapping[str, ParticipantSetup]) -> str:
    """Return a name that no participant has, for a process that isn't one's own."""
    while name in parts:
        name += "'"
    return name


def check_names(setup: Setup, names: Sequence[str], option: str) -> None:
    """Refuse names for an option that the file doesn't have, or that are given twice."""
    for place, name in enumerate(names):
        check_name_in(setup, name)
        if name in names[:place]:
            raise UsageError(f"{option} names {name} twice")


JOIN_S = 600.0
"""How long `worldline run` waits for the participants that it has started, unless the file says otherwise.

A simulator that has to load a world may take minutes; after ten, its user has gone. Where people start
participants, whenever they like, it waits for ever, as `worldline serve` does.
"""


def _limits(described: dict[str, Any], *, waits_for_people: bool) -> Limits:
    """Return the server's limits: those that the file says, and the usual ones."""
    said: dict[str, Any] = {} if waits_for_people else {"join_s": JOIN_S}
    for key, value in described.items():
        said[f"{key}{'_s' if key in _TIMES else '_max'}"] = None if value == inf else value
    return Limits(**said)


_TIMES = ("unreachable", "silence", "handshake", "join", "rejoin")


def _check_whole(document: Document, top: dict[str, Any], starts: Starts) -> None:
    participants, rules = (top.get(key, []) for key in ("participants", "links"))
    outages, faults = _outages_in(top), _participant_faults_in(top)
    _check_rules(rules)
    _check_outages(outages)
    _check_durable(participants)
    _check_estop(participants, top.get("estop", {}).get("latency"))
    if "participants" not in top:
        return
    if participants and _is_known(document, "name", "names"):
        roster = sorted({name for _, described in participants for name, _ in _names_of(described)})
        _check_mentions(_mentions_of(rules, outages), roster)
        if faults:
            _check_faults(document.root.at("faults"), faults, top, roster)
    if "buffers" in top and _is_known(document, "subscribes"):
        _check_buffers(document.root.at("buffers"), top["buffers"], participants)
    if "topics" in top and _is_known(document, "publishes", "subscribes"):
        _check_topics(document.root.at("topics"), top["topics"], participants)
    _check_participants(document.root.at("participants"), participants, starts)


def _plan(top: dict[str, Any]) -> Plan:
    names = [
        (name, described.get("guest", False))
        for _, described in top["participants"]
        for name, _ in _names_of(described)
    ]
    return plan(
        sorted(name for name, guest in names if not guest),
        guests=sorted(name for name, guest in names if guest),
        network=_network(top),
        seed=top.get("seed", 0),
        until=top.get("until"),
        faults=[fault for _, fault in _participant_faults_in(top)],
    )


def _outages_in(top: dict[str, Any]) -> Tables:
    return [(place, fault) for place, fault in top.get("faults", []) if isinstance(fault, dict)]


def _participant_faults_in(top: dict[str, Any]) -> list[tuple[TomlPlace, ParticipantFault]]:
    return [(place, fault) for place, fault in top.get("faults", []) if isinstance(fault, ParticipantFault)]


def _network(top: dict[str, Any]) -> Network:
    usual = Network()
    rules = []
    for _, rule in top.get("links", []):
        topic, sender, receiver = _selection(rule)
        rules.append(Rule(link=_link(rule), topic=topic, sender=sender, receiver=receiver))
    outages: list[Outage] = []
    for _, fault in _outages_in(top):
        verb, cut = ("partition", partition) if "partition" in fault else ("hold", hold)
        left, right = ([name for name, _ in side] for side in fault[verb])
        outages += cut(left, right, fault["start"], fault.get(_ENDS[verb]))
    return Network(
        default=_link({"latency": usual.default.latency, **top.get("link", {})}),
        rules=tuple(rules),
        outages=tuple(outages),
        control_latency=top.get("control_latency", usual.control_latency),
        estop=top.get("estop", {}).get("latency"),
    )


def _link(described: dict[str, Any]) -> Link:
    return link(**{key: value for key, value in described.items() if key in LINK.keys})


def _parts(top: dict[str, Any], home: Path) -> dict[str, ParticipantSetup]:
    buffers = top.get("buffers", {})
    names = tuple(sorted(name for _, described in top["participants"] for name, _ in _names_of(described)))
    parts = {}
    for _, described in top["participants"]:
        chosen = described.get("subscribes", {})
        subscribes = {
            topic: buffers.get(topic, UNBOUNDED) if buffer is None else buffer for topic, buffer in chosen.items()
        }
        alike = {key: value for key, value in described.items() if key not in ("name", "names")}
        machine = read_machine(described.get("entry"))
        if machine is not None:
            folder, allow = alike.pop("folder", None), alike.pop("allow", ())
            disk = None if folder is None else str(folder)
            volatile = alike.pop("volatile", False)
            alike["entry"] = str(structs.replace(machine, names=names, folder=disk, allow=allow, volatile=volatile))
        for name, _ in _names_of(described):
            own = {} if machine is None else dict.fromkeys(topics_of(name), UNBOUNDED)
            parts[name] = ParticipantSetup(
                **{"directory": home, **alike, "name": name, "subscribes": {**subscribes, **own}}
            )
    return parts
