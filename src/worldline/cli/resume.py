"""`worldline resume`: let a run go on that was paused."""

from __future__ import annotations

from worldline.cli.console import PlainConsole
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, Run, TokenFile, conclude, connected


def resume(
    run: Run = None,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """Let a federation go on that `worldline pause` or `worldline step` holds."""
    with connected(run, token_file, authority, certificate, key) as operator:
        over = operator.resume()
        if over is not None:
            conclude(over)
        PlainConsole().print("resumed")
