"""`worldline why`: say who waits for whom in a run, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from worldline.cli.console import PlainConsole
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, TokenFile, conclude, connected
from worldline.federation.operator import Operator
from worldline.lock.situation import Situation
from worldline.model import UsageError
from worldline.saving.destination import destination, save
from worldline.waiting.hints import creeps
from worldline.waiting.picture import situation_svg
from worldline.waiting.plain import as_plain
from worldline.waiting.words import in_words
from worldline.wire.operator import RunOver

_EVERY_S = 0.5
_PICTURE = ".svg"


def why(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN",
            help="The run's name, the number of its process, or its server's address (default: the only run of yours"
            " on this machine).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; with --follow, one per line.")] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw who waits for whom.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep looking until the run is over.")] = False,
    every: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="How often to show it, with --follow.")
    ] = _EVERY_S,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """Say who waits for whom in a running federation, through which links, for how long, and what the holder is doing.

    Looking changes nothing.
    """
    if svg is not None:
        if not destination(svg).is_stream and svg.suffix != _PICTURE:
            raise UsageError(f"{svg} isn't the name of a picture", advice="it is SVG: FILE.svg")
        if follow:
            raise UsageError("--svg and --follow contradict each other", advice="use one")
    with connected(run, token_file, authority, certificate, key) as operator:
        if follow:
            from worldline.cli.why_follow import keep_looking

            conclude(keep_looking(operator, every, as_json=as_json))
        situation = look(operator)
        if isinstance(situation, RunOver):
            conclude(situation)
    if svg is not None:
        save(svg, situation_svg(situation).encode())
    if as_json:
        print(msgspec.json.encode(as_plain(situation)).decode())
    else:
        for line in in_words(situation):
            PlainConsole().print(line)


def look(operator: Operator) -> Situation | RunOver:
    """Look at the run; if time creeps, also at all links, since one must be in the way."""
    situation = operator.situation()
    if isinstance(situation, Situation) and creeps(situation):
        return operator.situation(links=True)
    return situation
