"""`worldline end`: end a run."""

from __future__ import annotations

from typing import Annotated

import typer

from worldline.cli.console import PlainConsole
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, Run, TokenFile, conclude, connected
from worldline.model import LossError, UsageError, format_time
from worldline.model.reading import as_time
from worldline.wire.operator import RunOver

_PATIENCE_S = 10.0


def end(
    run: Run = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When, in simulated time (default: as soon as possible).")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Break it off, as Ctrl-C would: it has no result, and everybody is told why.")
    ] = False,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """End a federation in good order: it has a result, as if it had been run with --until that time."""
    if at is not None and now:
        raise UsageError("--at and --now contradict each other", advice="use one")
    when = None if at is None else as_time(at, "a time for --at")
    with connected(run, token_file, authority, certificate, key) as operator:
        ends = operator.end(at=when, now=now)
        if isinstance(ends, RunOver):
            conclude(ends)
        if ends is not None:
            PlainConsole().print(f"it ends at {format_time(ends)}")
        try:
            over = operator.last_word(_PATIENCE_S)
        except LossError:  # It ends when everybody is there: whoever wants to know how can ask again.
            return
        conclude(over)
