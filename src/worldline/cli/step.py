"""`worldline step`: let a run go on a little, and pause it again."""

from __future__ import annotations

from typing import Annotated

import typer

from worldline.cli.console import PlainConsole
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, Run, TokenFile, conclude, connected
from worldline.federation.operator import Operator
from worldline.lock.situation import Situation
from worldline.model import LossError, UsageError, format_time
from worldline.model.reading import as_time
from worldline.waiting.words import in_words
from worldline.wire.operator import RunOver

_PATIENCE_S = 10.0


def step(
    run: Run = None,
    by: Annotated[str | None, typer.Option(metavar="TIME", help="How far to go, in simulated time: 10ms.")] = None,
    to: Annotated[str | None, typer.Option(metavar="TIME", help="Where to stop, in simulated time: 12.5s.")] = None,
    wait: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="How long to wait for everybody to get there.")
    ] = _PATIENCE_S,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """Let a federation go on, to the next time at which anybody acts or as far as you say, and hold it there.

    The command ends when everybody stands there. The run's result stays the same.
    """
    if by is not None and to is not None:
        raise UsageError("--by and --to contradict each other", advice="use one")
    far = None if by is None else as_time(by, "a time for --by")
    target = None if to is None else as_time(to, "a time for --to")
    with connected(run, token_file, authority, certificate, key) as operator:
        try:
            reached = operator.step(by=far, to=target, within_s=wait)
        except LossError as error:
            raise _not_there(operator, wait) from error
        if isinstance(reached, RunOver):
            conclude(reached)
        PlainConsole().print(f"at {format_time(reached)}")


def _not_there(operator: Operator, waited_s: float) -> LossError:
    """Say who hasn't come as far as that: they go on all the same."""
    situation = operator.situation()
    if isinstance(situation, Situation):
        for line in in_words(situation):
            PlainConsole().print(line)
    return LossError(f"not everybody was there within {waited_s:g} seconds", advice="they are on their way")
