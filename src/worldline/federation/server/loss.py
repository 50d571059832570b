"""What becomes of a run when one of its participants is lost, or its server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from worldline.federation.server.host import Host
from worldline.model.errors import ConfigurationError, shown

LossPolicy = Literal["abort", "rejoin"]
"""What a server does when a participant is lost: end the run, or wait for it to come back."""

POLICIES: tuple[str, ...] = get_args(LossPolicy)


def check_policy(policy: str) -> LossPolicy:
    """Return a policy, if it is one."""
    if policy in POLICIES:
        return policy  # type: ignore[return-value] # It is one of them.
    raise ConfigurationError(f"{shown(policy)} isn't a policy for losses", advice=f"use {' or '.join(POLICIES)}")


def host_for(on_loss: LossPolicy, journal: Path | str | None) -> Callable[..., Host]:
    """Return what makes a host that does so: one that keeps no journal needs nothing of it."""
    check_policy(on_loss)
    if on_loss == "abort" and journal is None:
        return Host
    from worldline.federation.server.journaled_host import JournaledHost

    return partial(JournaledHost, journal=journal, rejoins=on_loss == "rejoin")
