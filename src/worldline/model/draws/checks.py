"""Checks a table of draws against the run that it is for: before the run as far as possible, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
from worldline.model.latency import Fixed
from worldline.model.links import Link, Network
from worldline.model.path import Paths
from worldline.model.payload import PAYLOAD_MAX


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
