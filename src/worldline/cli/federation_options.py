"""What can be said of the run of a federation alone, and what that means for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from worldline.model import UsageError
from worldline.processes.executor import SharedWorkers, as_executor
from worldline.targets import Options

if TYPE_CHECKING:
    from worldline.launch.roles import SpecialRoles
    from worldline.targets import Ready
    from worldline.targets.federation import ReadyFederation


class FederationOptions(NamedTuple):
    """How a federation is run, besides what it is."""

    realtime: float | None
    shake: int | None
    listen: str | None
    lcm: tuple[str, ...] = ()
    lcm_serve: str | None = None
    without: tuple[str, ...] = ()
    token: str | None = None
    debug: tuple[str, ...] = ()
    twin: tuple[str, ...] = ()
    journal: Path | None = None
    draws: str | None = None
    faults: bool = False

    def settled(self, ready: ReadyFederation, *, is_chosen: bool) -> ReadyFederation:
        """Return what is to be run, before anything is touched; unless one `is_chosen`, the address says by what."""
        staged = replace(
            ready,
            pace=self.realtime,
            shake=self.shake,
            listen=self.listen,
            lcm=(*ready.lcm, *self.lcm),
            lcm_serve=self.lcm_serve or ready.lcm_serve,
            journal=self.journal,
        )
        if ready.federation is not None:
            self._refuse_without_processes()
            return staged
        if self.unusual:
            staged = replace(staged, unusual=self._unusual(ready))
        if self.listen is None:
            return staged
        from worldline.federation.address import parse_address

        address = parse_address(self.listen)
        kind = address.kind
        if kind == "unix" and (path := Path(address.place)).exists() and not path.is_socket():
            raise UsageError(f"--listen {self.listen}: {path} exists, and isn't a socket", advice="choose another path")
        if kind == "tls":
            raise UsageError("the participants of `worldline run` are on this machine and need no TLS")
        if isinstance(ready.chosen, SharedWorkers):
            return staged
        if is_chosen and kind != ready.executor:
            raise UsageError(f"--listen {self.listen} isn't for {ready.executor}", advice=f"use --executor {kind}")
        return replace(staged, chosen=as_executor(kind))

    @property
    def unusual(self) -> bool:
        """Whether somebody isn't started like the rest."""
        return bool(self.without or self.debug or self.twin)

    def _unusual(self, ready: ReadyFederation) -> SpecialRoles:
        from worldline.launch.roles import SpecialRoles

        assert ready.setup is not None
        unusual = SpecialRoles(awaited=self.without, token=self.token, debugged=_only(self.debug), twinned=self.twin)
        unusual.check(ready.setup)
        return unusual

    def _refuse_without_processes(self) -> None:
        given = {
            "--journal": self.journal,
            "--realtime": self.realtime,
            "--without": self.without or None,
            "--twin": self.twin or None,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} needs processes")
        if self.listen is not None:
            raise UsageError("--listen needs processes: in-process, nobody connects", advice="leave it out")
        if self.debug:
            raise UsageError("--debug needs processes", advice="in one process, breakpoint() has the terminal anyway")

    def refuse(self, ready: Ready) -> None:
        """Refuse all of it for what isn't a federation."""
        given = {
            "--realtime": self.realtime,
            "--shake": self.shake,
            "--listen": self.listen,
            "--lcm": self.lcm or None,
            "--lcm-serve": self.lcm_serve,
            "--without": self.without or None,
            "--debug": self.debug or None,
            "--twin": self.twin or None,
            "--journal": self.journal,
            "--draws": self.draws,
            "--fault": self.faults or None,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} is for federations, and {ready.name} is of the kind {ready.kind}")


def _only(debugged: Sequence[str]) -> str | None:
    if len(debugged) > 1:
        raise UsageError("--debug is given twice", advice="one participant at a time can have the terminal")
    return debugged[0] if debugged else None


def wanted_run(
    seed: int | None,
    until: str | None,
    settings: Sequence[str] | None,
    draws: str | None,
    fault: Sequence[str] | None,
    faults: str | None,
) -> Options:
    """Return what the options that all commands have for federations say of a run."""
    return Options(
        seed=seed,
        until=until,
        settings=tuple(settings or ()),
        draws=draws,
        faults=tuple(fault or ()),
        drawn_faults=faults,
    )
