"""Says which participants of a run aren't started like the rest: others start one, one is debugged, one has a twin."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from worldline.federation.participant.declaration import Plain
from worldline.federation.server.limits import Limits, LossPolicy
from worldline.launch.file.setup import ParticipantSetup, Setup, check_names, stated_by
from worldline.model import UsageError

WITHOUT, DEBUG, TWIN = "--without", "--debug", "--twin"


class Terminal(Protocol):
    """What a debugged participant is given; it is given back when the participant's process ends."""

    def make_way(self) -> Sequence[int]:
        """Show nothing on it from now on; return the standard input, output and error for somebody who has it."""

    def lend(self, group: int) -> None:
        """It belongs to this group of processes from now on."""

    def give_back(self) -> None:
        """Nobody needs it any more. From any thread, and more than once."""


@dataclass(frozen=True, kw_only=True)
class UnusualParts:
    """Who isn't started like the rest.

    Others start those in `awaited`, here or elsewhere, and present the `token`, if there is one. The one that is
    `debugged` has the terminal. Each of those in `twinned` has a twin.
    """

    awaited: tuple[str, ...] = ()
    token: str | None = None
    debugged: str | None = None
    twinned: tuple[str, ...] = ()

    def check(self, setup: Setup) -> None:
        """Refuse whom the file doesn't have, and what can't be done together."""
        check_names(setup, self.awaited, WITHOUT)
        if self.debugged is not None:
            check_names(setup, (self.debugged,), DEBUG)
            if self.debugged in self.awaited:
                raise UsageError(
                    f"{DEBUG} and {WITHOUT} both name {self.debugged}",
                    advice="whoever is started with `worldline join` has a terminal already",
                )
        check_names(setup, self.twinned, TWIN)
        for name in self.twinned:
            if setup.parts[name].entry is None:
                raise UsageError(f"{name} can't have a twin: it isn't a Python entry")
            for option, others in ((WITHOUT, self.awaited), (DEBUG, (self.debugged,))):
                if name in others:
                    raise UsageError(f"{TWIN} and {option} both name {name}", advice="use one of them at a time")

    def starts(self, name: str) -> bool:
        """Whether a participant is started here."""
        return name not in self.awaited

    @property
    def apart(self) -> tuple[str, ...]:
        """Those who share their process with nobody."""
        return self.twinned if self.debugged is None else (*self.twinned, self.debugged)

    def started(self, setup: Setup) -> dict[str, ParticipantSetup]:
        return {name: part for name, part in setup.parts.items() if self.starts(name)}

    def tokens(self, setup: Setup) -> dict[str, str | None]:
        """Return what each has to present: of those who are started here nobody can take another's name."""
        return {name: secrets.token_hex(16) if self.starts(name) else self.token for name in setup.parts}

    def declared(self, setup: Setup) -> dict[str, Plain]:
        """Return what the file declares. It has the last word on who controls the run, where others start somebody."""
        return {
            name: stated_by(part) if self.starts(name) else {**stated_by(part), "controls": part.controls}
            for name, part in setup.parts.items()
        }

    def on_loss(self, setup: Setup) -> LossPolicy:
        """Return what happens when somebody is lost. Whoever is debugged was ended by a person, and stays so."""
        return setup.on_loss if self.debugged is None else "abort"

    def limits(self, setup: Setup) -> Limits:
        """Return the limits of the run. By the wall clock there are none for somebody in a debugger."""
        if self.debugged is None:
            return setup.limits
        return replace(setup.limits, silence_s=None, join_s=None, handshake_s=inf)
