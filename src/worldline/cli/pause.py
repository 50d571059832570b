"""`worldline pause`: hold a run where it is."""

from __future__ import annotations

from worldline.cli.console import PlainConsole
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, Run, TokenFile, conclude, connected
from worldline.model import format_time
from worldline.wire.operator import RunOver


def pause(
    run: Run = None,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """Hold a running federation where it is; its result stays the same.

    Those who were allowed to go on already do so; nobody is allowed any more. `worldline resume` lets them go on.
    """
    with connected(run, token_file, authority, certificate, key) as operator:
        held = operator.pause()
        if isinstance(held, RunOver):
            conclude(held)
        PlainConsole().print(f"paused at {format_time(held)}")
