"""Faults: what is done to nodes and links, and when; written down, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.faults import Change, calm_from, draw_span, is_never_worse, parse_counts
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import TimeLike, format_time
from worldline.nodes.topology import Topology

Verb = Literal["crash", "recover", "down", "up", "add", "remove", "partition", "repair"]
VERBS: tuple[str, ...] = get_args(Verb)
_NODES_NAMED = {"crash": 1, "recover": 1, "down": 2, "up": 2, "add": 2, "remove": 2, "repair": 0}

FORMS = (
    '"2s crash 1", "3s recover 1", "1s down 0 2", "2s up 0 2", "1s add 0 3", "1s remove 0 1", "1s partition 0 1", '
    '"2s repair"'
)


class Fault(Struct, frozen=True, order=True):
    """At a time, something is done to nodes.

    `crash` and `recover` name a node; `down`, `up`, `add` and `remove` the two ends of a link; `partition` one group,
    which is cut off from all others until the `repair`.
    """

    at: int
    verb: Verb
    nodes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join((format_time(self.at), self.verb, *map(str, self.nodes)))


def time_of(fault: Fault) -> int:
    """What faults are sorted by. Those at the same time happen in the order in which they are given."""
    return fault.at


def fault(at: TimeLike, verb: Verb, *nodes: int) -> Fault:
    """Write down a fault: ``fault("2s", "crash", 1)``."""
    return Fault(as_time(at), verb, tuple(nodes))


def as_fault(given: Fault | str) -> Fault:
    """Take a fault, or a text such as ``"2s crash 1"``."""
    if isinstance(given, Fault):
        return given
    words = given.split() if isinstance(given, str) else []
    if len(words) < 2 or words[1] not in VERBS or not all(word.isdecimal() and len(word) < 9 for word in words[2:]):
        raise ConfigurationError(f"{shown(given)} isn't a fault", advice=f"write {FORMS}")
    return Fault(as_time(words[0]), words[1], tuple(int(word) for word in words[2:]))  # type: ignore[arg-type]


def check_faults(faults: Iterable[Fault], topology: Topology) -> None:
    """Refuse what names nodes or links that there aren't."""
    links = dict.fromkeys(topology.weights, True)
    for each in sorted(faults, key=time_of):
        if each.verb not in VERBS:
            raise ConfigurationError(f"{shown(each.verb)} isn't a fault", advice=f"there are {', '.join(VERBS)}")
        expected = _NODES_NAMED.get(each.verb)
        if len(each.nodes) != expected if expected is not None else not each.nodes:
            raise ConfigurationError(f"{each}: that isn't the number of nodes it takes", advice=f"write {FORMS}")
        for node in each.nodes:
            if type(node) is not int or not 0 <= node < topology.num_nodes:
                raise ConfigurationError(
                    f"{each}: there is no node {shown(node)}", advice=f"the nodes are 0 to {topology.num_nodes - 1}"
                )
        if each.verb in ("down", "up", "add", "remove"):
            _check_link(each, links)


def _check_link(each: Fault, links: dict[tuple[int, int], bool]) -> None:
    a, b = sorted(each.nodes)
    if a == b:
        raise ConfigurationError(f"{each}: a link has two ends")
    there = links.get((a, b), False)
    if each.verb == "add":
        if there:
            raise ConfigurationError(f"{each}: there is a link between {a} and {b} already")
        links[a, b] = True
    elif not there:
        raise ConfigurationError(f"{each}: there is no link between {a} and {b}")
    elif each.verb == "remove":
        links[a, b] = False


def are_milder(faults: Sequence[Fault], than: Sequence[Fault]) -> bool:
    """Whether nothing is ever amiss that wasn't at that time with the others.

    So outages may be shorter, or not there at all. What ends one can't be left out alone: who stands a crash of a
    second needn't stand one for ever.
    """
    firsts: dict[tuple[int, ...], str] = {}
    for each in sorted(than, key=time_of):
        if each.verb in ("add", "remove"):
            firsts.setdefault(tuple(sorted(each.nodes)), each.verb)
    # A link that is added isn't there before: without it, there is one link less for ever.
    missing: dict[Hashable, bool] = {("add", ends): True for ends, verb in firsts.items() if verb == "add"}
    return is_never_worse(_changes(faults), _changes(than), at_first=missing)


def _changes(faults: Iterable[Fault]) -> list[Change]:
    """Say what is amiss from when on, and what no longer."""
    changes: list[Change] = []
    partitions: list[tuple[int, ...]] = []
    for each in sorted(faults, key=time_of):
        nodes = tuple(sorted(each.nodes))
        if each.verb == "repair":
            changes += [(each.at, ("repair", group), False) for group in partitions]
        elif each.verb in _ENDED_BY:
            changes.append((each.at, (_ENDED_BY[each.verb], nodes), True))
            if each.verb == "partition":
                partitions.append(nodes)
        else:
            changes.append((each.at, (each.verb, nodes), False))
    return changes


_ENDED_BY = {"crash": "recover", "down": "up", "partition": "repair", "remove": "add"}
ENDINGS = ("recover", "up", "repair")


# -- Drawn from a seed

KINDS = ("crash", "partition", "link", "loss", "duplication")
"""What can be asked for; loss and duplication aren't faults at a time but properties of all links."""

SHARES = ("loss", "duplication")

_DEFAULT_COUNTS = {"crash": 2, "partition": 1, "link": 2}


def parse_kinds(text: str) -> dict[str, float]:
    """Read ``"crash=3,partition,loss=0.1"``: how many of each, or which share of the messages."""
    advice = 'write "crash=2,partition=1,link=2,loss=0.1,duplication=0.1", or some of these'
    return parse_counts(text, _DEFAULT_COUNTS, dict.fromkeys(SHARES, 0.1), advice)


def draw_faults(kinds: Mapping[str, float], topology: Topology, until: int, seed: int) -> tuple[Fault, ...]:
    """Draw a schedule of faults that is over before the end of the run."""
    calm = calm_from(until)
    found: list[Fault] = []
    draws = Stream(seed, "faults", "crash")
    for _ in range(int(kinds.get("crash", 0))):
        found += _span("crash", "recover", (draws.randrange(topology.num_nodes),), calm, draws)
    draws = Stream(seed, "faults", "partition")
    if topology.num_nodes > 1:
        for _ in range(int(kinds.get("partition", 0))):
            size = draws.randint(1, topology.num_nodes - 1)
            group = tuple(sorted(draws.sample(range(topology.num_nodes), size)))
            found += _span("partition", "repair", group, calm, draws)
    draws = Stream(seed, "faults", "link")
    edges: Sequence[tuple[int, int]] = topology.edges
    if edges:
        for _ in range(int(kinds.get("link", 0))):
            found += _span("down", "up", draws.choice(edges), calm, draws)
    return tuple(sorted(found, key=time_of))


def _span(begins: Verb, ends: Verb, nodes: tuple[int, ...], calm: int, draws: Stream) -> list[Fault]:
    start, end = draw_span(calm, draws)
    return [Fault(start, begins, nodes), Fault(end, ends, () if ends == "repair" else nodes)]
