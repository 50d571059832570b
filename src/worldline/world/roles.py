"""Roles: what a process is in the network of a run, as somebody says it on a command line or in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from worldline.model.errors import ConfigurationError, shown
from worldline.model.nearest import nearest
from worldline.world.discovery.peers import PeerRole

ROLE_VARIABLE = "WORLDLINE_NETWORK_ROLE"
SECONDARIES_VARIABLE = "WORLDLINE_NETWORK_SECONDARIES"


class NetworkPart(NamedTuple):
    """What a process is in the network; without a role, it runs a world alone. Only a primary has `secondaries`."""

    role: PeerRole | None
    secondaries: int
    warnings: tuple[str, ...]


def network_part(role: str | None, secondaries: int | None, environment: Mapping[str, str]) -> NetworkPart:
    """Judge what was said: options come first; the variables are deprecated, and say so."""
    warnings = []
    if role is None and (said := environment.get(ROLE_VARIABLE)):
        role = said
        warnings.append(f"{ROLE_VARIABLE} is deprecated: use --network-role={said.lower()}")
    found = None if role is None else _parse_role(role)
    if secondaries is None and found is PeerRole.PRIMARY and (said := environment.get(SECONDARIES_VARIABLE)):
        warnings.append(f"{SECONDARIES_VARIABLE} is deprecated: use --network-secondaries={said}")
        if not said.isdecimal():
            raise ConfigurationError(f"{SECONDARIES_VARIABLE} is {shown(said)}", advice="it is a number of secondaries")
        secondaries = int(said)
    if found is not PeerRole.PRIMARY and secondaries is not None:
        who = "a secondary doesn't decide" if found is PeerRole.SECONDARY else "only a primary decides"
        raise ConfigurationError(
            f"{who} how many secondaries there are", advice="leave --network-secondaries to --network-role=primary"
        )
    if found is PeerRole.PRIMARY:
        if secondaries is None:
            raise ConfigurationError("a primary has to know how many secondaries to wait for", advice=_COUNT)
        if secondaries < 1:
            raise ConfigurationError(f"a primary can't do with {secondaries} secondaries", advice=_COUNT)
    return NetworkPart(found, secondaries or 0, tuple(warnings))


_COUNT = "--network-secondaries=N, from 1 on: a primary simulates nothing itself"


def _parse_role(text: str) -> PeerRole:
    try:
        return PeerRole(text.strip().lower())
    except ValueError:
        roles = [role.value for role in PeerRole]
        raise ConfigurationError(
            f"there is no network role {shown(text)}",
            advice=nearest(text.lower(), roles) or f"use {' or '.join(roles)}",
        ) from None
