"""What can be said of the run of a federation alone, and what that means for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from worldline.model import UsageError
from worldline.workers.executor import SharedWorkers, as_executor

if TYPE_CHECKING:
    from worldline.targets import Ready
    from worldline.targets.federation import ReadyFederation


class FederationOptions(NamedTuple):
    """How a federation is run, besides what it is."""

    realtime: float | None
    shake: int | None
    listen: str | None
    lcm: tuple[str, ...] = ()
    lcm_serve: str | None = None

    def settled(self, ready: ReadyFederation, *, is_chosen: bool) -> ReadyFederation:
        """Return what is to be run, before anything is touched; unless one `is_chosen`, the address says by what."""
        staged = replace(
            ready,
            pace=self.realtime,
            shake=self.shake,
            listen=self.listen,
            lcm=(*ready.lcm, *self.lcm),
            lcm_serve=self.lcm_serve or ready.lcm_serve,
        )
        if ready.federation is not None:
            if self.realtime is not None:
                raise UsageError("--realtime needs processes")
            if self.listen is not None:
                raise UsageError("--listen needs processes: in-process, nobody connects", advice="leave it out")
            return staged
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

    def refuse(self, ready: Ready) -> None:
        """Refuse all of it for what isn't a federation."""
        given = {
            "--realtime": self.realtime,
            "--shake": self.shake,
            "--listen": self.listen,
            "--lcm": self.lcm or None,
            "--lcm-serve": self.lcm_serve,
        }
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} is for federations, and {ready.name} is of the kind {ready.kind}")
