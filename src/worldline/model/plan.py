"""The plan of a run: everything that fixes its history, apart from the participants themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct, structs

from worldline.model.draws.distributions import BitPlace, Chance, Distribution, checked_value
from worldline.model.draws.names import (
    ANY,
    CORRUPTED_BIT,
    CORRUPTED_BIT_OF_COPY,
    CORRUPTION,
    CORRUPTION_OF_COPY,
    DUPLICATION,
    LATENCY,
    LATENCY_OF_COPY,
    LOSS,
    LOSS_AT_SENDER,
    PATH_NAMES,
    PURPOSES,
    TURN,
    check_participants,
    names_in,
)
from worldline.model.draws.table import DrawRow
from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.faults import ParticipantFault, as_faults, check_faults, partitions_of
from worldline.model.latency import Fixed
from worldline.model.links import Link, Network, Outage, check_kinds, check_network, with_each_topic
from worldline.model.message import check_name, exact
from worldline.model.path import Paths
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.reading import as_time
from worldline.model.time import TimeLike, is_time


class Plan(Struct, frozen=True, kw_only=True):
    """Who takes part, over which network, with which seed, until when (None: until all have left).

    `vacancies` is how many more take part from the beginning, under names that they choose. `guests` are names that
    rules and outages may use although they aren't there from the beginning. `draws` are the rows of a table of draws,
    and `faults` the faults of participants.
    """

    roster: tuple[str, ...]
    guests: tuple[str, ...] = ()
    network: Network = Network()
    seed: int = 0
    end: int | None = None
    vacancies: int = 0
    draws: tuple[DrawRow, ...] = ()
    faults: tuple[ParticipantFault, ...] = ()


def network_of(given: Plan) -> Network:
    """Return the network of a run, with all its outages: those that faults are, too."""
    cuts = [
        Outage(verb="partition", start=start, end=end, sender=sender, receiver=receiver)
        for start, end, name in partitions_of(given.faults)
        for sender, receiver in ((name, None), (None, name))
    ]
    return structs.replace(given.network, outages=(*given.network.outages, *cuts)) if cuts else given.network


def plan(
    roster: Iterable[str],
    *,
    guests: Iterable[str] = (),
    network: Network | None = None,
    seed: int = 0,
    until: TimeLike | None = None,
    vacancies: int = 0,
    draws: tuple[DrawRow, ...] = (),
    faults: Iterable[ParticipantFault | str] = (),
) -> Plan:
    """Make a plan and check it completely."""
    names = roster if isinstance(roster, str) else tuple(map(exact, roster))
    guests = tuple(map(exact, guests))
    made = Plan(
        roster=names,  # type: ignore[arg-type] # refused below
        guests=guests,
        network=Network() if network is None else with_each_topic(network, (*names, *guests)),
        seed=seed,
        end=None if until is None else as_time(until, "an end time"),
        vacancies=vacancies,
        draws=draws,
        faults=as_faults(faults),
    )
    check_plan(made)
    return made


def check_plan(checked: Plan) -> None:
    """Refuse a plan that can't be run; the error says which part of it."""
    if isinstance(checked.roster, str):
        raise ConfigurationError(f"the roster {shown(checked.roster)} is one text", advice="give a list of names")
    if type(checked.vacancies) is not int or checked.vacancies < 0:
        raise ConfigurationError(
            f"{shown(checked.vacancies)} isn't a number of participants to wait for", advice="use 1 or more, or names"
        )
    if not checked.roster and not checked.vacancies:
        raise ConfigurationError("the roster is empty", advice="a run needs at least one participant")
    names = (*checked.roster, *checked.guests)
    for name in names:
        check_name(name, "a participant")
    if len(frozenset(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigurationError(f"two participants are named {shown(twice)}", advice="every name is used once")
    if type(checked.seed) is not int or not -(2**63) <= checked.seed < 2**63:
        raise ConfigurationError("the seed isn't a whole number of at most 64 bits")
    if checked.end is not None and (not is_time(checked.end) or checked.end < 1):
        raise ConfigurationError(f"a run can't end at {shown(checked.end)}", advice="use at least 1ns")
    check_kinds(checked.network)
    # A participant that takes a vacancy may have any name.
    mentioned = [each for rule in checked.network.rules for each in (rule.sender, rule.receiver) if each]
    check_network(checked.network, (*names, *mentioned) if checked.vacancies else names)
    check_draws(checked.draws, checked.network, None if checked.vacancies else names)
    check_faults(
        checked.faults, (*names, *(each.participant for each in checked.faults if checked.vacancies)), checked.end
    )


# Checks a table of draws against the run that it is for: before the run as far as possible, and at its end.


def check_draws(rows: Iterable[DrawRow], network: Network, participants: Collection[str] | None) -> None:
    """Refuse rows that can't apply to any draw of a run; `participants` is None if any participant may take part."""
    paths = Paths(network, 0)
    links = (network.default, *(rule.link for rule in network.rules))
    for row in rows:
        if participants is not None:
            check_participants(row.name, participants)
        purpose = row.name.split("/")[0]
        if purpose in _OF_LINK:
            names = names_in(row.name) or ()
            is_one = PURPOSES[purpose][:3] == PATH_NAMES and len(names) > len(PATH_NAMES)
            if is_one and names[2] == names[3]:
                raise ConfigurationError(
                    f"draw {row.name}: no participant receives what it sends itself", advice="name another receiver"
                )
            possible = (paths.link(*names[1:4]),) if is_one else links
            _check_on_links(row, [_OF_LINK[purpose](link) for link in possible])


OwnDraws = Mapping[tuple[str, ...], Distribution | None]
"""What participants are known to draw besides their streams, by how the names of such draws begin; None: they don't."""


def check_own_draws(rows: Iterable[DrawRow], own: OwnDraws) -> None:
    """Refuse rows with a value that no participant can draw: those that name one of whom it is known."""
    for row in rows:
        names = (names_in(row.name) or ())[:2]
        distribution = own.get(names)
        if distribution is not None:
            _check_possible(row, [distribution])
        elif names in own:
            raise ConfigurationError(f"draw {row.name}: {names[1]} doesn't draw that", advice=_UNDRAWN)


def check_topics(rows: Iterable[DrawRow], topics: Collection[str]) -> None:
    """Refuse rows for messages on a topic that isn't among those that are ever published on."""
    for row in rows:
        purpose, *parts = names_in(row.name) or ("",)
        if parts and PURPOSES.get(purpose, ("",))[0] == "topic" and parts[0] not in topics:
            advice = nearest(parts[0], topics) or f"topics are {', '.join(sorted(topics)[:12])}"
            raise ConfigurationError(f"draw {row.name}: no participant publishes {shown(parts[0])}", advice=advice)


def _check_on_links(row: DrawRow, drawn: list[Distribution | None]) -> None:
    """Refuse a row that no link of the network has a draw for, or for which its value is possible."""
    possible = [distribution for distribution in drawn if distribution is not None]
    if not possible:
        raise ConfigurationError(f"draw {row.name}: no link of this network draws that", advice=_WITHOUT)
    _check_possible(row, possible)


def _check_possible(row: DrawRow, possible: Sequence[Distribution]) -> None:
    """Refuse a row whose value none of these could yield."""
    if row.value is None:
        return
    refusals: list[ConfigurationError] = []
    for distribution in possible:
        try:
            checked_value(distribution, row.value)
        except ConfigurationError as error:
            refusals.append(error)
        else:
            return
    raise ConfigurationError(f"draw {row.name}: {refusals[0].problem}", advice=refusals[0].advice)


_UNDRAWN = "a boot time or a clock that is fixed, or that it hasn't, isn't drawn"
_WITHOUT = "fixed latencies, and what never happens, aren't drawn"


def _latency(link: Link) -> Distribution | None:
    return None if isinstance(link.latency, Fixed) else link.latency


def _corruption(link: Link) -> Distribution | None:
    return Chance(link.corruption) if link.corruption else None


def _corrupted_bit(link: Link) -> Distribution | None:
    return BitPlace(8 * PAYLOAD_MAX) if link.corruption else None  # Of the longest payload: others are known later.


_OF_LINK: dict[str, Callable[[Link], Distribution | None]] = {
    LATENCY: _latency,
    LATENCY_OF_COPY: lambda link: _latency(link) if link.duplication else None,
    LOSS: lambda link: Chance(link.loss_at_receiver) if link.loss_at_receiver else None,
    LOSS_AT_SENDER: lambda link: Chance(link.loss_at_sender) if link.loss_at_sender else None,
    DUPLICATION: lambda link: Chance(link.duplication) if link.duplication else None,
    CORRUPTION: _corruption,
    CORRUPTION_OF_COPY: lambda link: _corruption(link) if link.duplication else None,
    CORRUPTED_BIT: _corrupted_bit,
    CORRUPTED_BIT_OF_COPY: lambda link: _corrupted_bit(link) if link.duplication else None,
}


def check_matched(rows: Iterable[DrawRow], matched: Collection[int]) -> None:
    """Refuse rows that no draw of a run has matched; one that is for all draws, or all turns, can't be misspelled."""
    idle = [row.name for place, row in enumerate(rows) if place not in matched and row.name not in (ANY, TURN)]
    if idle:
        others = f", and {len(idle) - 1} more" if len(idle) > 1 else ""
        raise ConfigurationError(
            f"draw {idle[0]}{others}: the run made no such draw", advice="`worldline draws` lists those that it makes"
        )
