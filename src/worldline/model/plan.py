"""The plan of a run: everything that fixes its history, apart from the participants themselves."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from worldline.model.draws.checks import check_draws
from worldline.model.draws.table import DrawRow
from worldline.model.errors import ConfigurationError, shown
from worldline.model.faults import ParticipantFault, as_faults, check_faults, partitions_of
from worldline.model.links import Network, Outage, check_kinds, check_network, with_each_topic
from worldline.model.message import check_name, exact
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
