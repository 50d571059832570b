"""`worldline why`: say who waits for whom in a run, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.console import PlainConsole, print_json
from worldline.cli.operating import Authority, OwnCertificate, OwnKey, TokenFile, conclude, connected, is_noted
from worldline.federation.operator import Operator
from worldline.lock.situation import Situation
from worldline.model import UsageError
from worldline.model.reading import as_time
from worldline.saving.destination import destination, save
from worldline.waiting.hints import creeps
from worldline.waiting.picture import situation_svg
from worldline.waiting.plain import as_plain
from worldline.waiting.words import in_words
from worldline.wire.operator import RunOver

_EVERY_S = 0.5
_PICTURE = ".svg"
_END = "end"
_NOTED = "Runs that were noted"


def why(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|FILE",
            help="The run's name, the number of its process, or its server's address (default: the only run of yours"
            " on this machine); or FILE.mcap or FILE.timing, a run that was noted with --timing.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; with --follow, one per line.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw who waits for whom.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep looking until the run is over.")] = False,
    every: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="How often to show it, with --follow.")
    ] = _EVERY_S,
    at: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_NOTED, metavar="TIME", help="Show how it stood at this simulated time (or `end`)."
        ),
    ] = None,
    no_advice: Annotated[
        bool,
        typer.Option("--no-advice", rich_help_panel=_NOTED, help="Don't try what would make it wait less."),
    ] = False,
    token_file: TokenFile = None,
    authority: Authority = None,
    certificate: OwnCertificate = None,
    key: OwnKey = None,
) -> None:
    """Say who waits for whom in a running federation, through which links, for how long, and what the holder is doing.

    Looking changes nothing. Of a run that was noted with --timing, it says who waited for whom in all, and what would
    make it wait less: each change is tried, by letting the arbiter run again.
    """
    if svg is not None:
        if not destination(svg).is_stream and svg.suffix != _PICTURE:
            raise UsageError(f"{svg} isn't the name of a picture", advice="it is SVG: FILE.svg")
        if follow:
            raise UsageError("--svg and --follow contradict each other", advice="use one")
    if run is not None and is_noted(run):
        if follow:
            raise UsageError("--follow is for a run that goes on", advice=f"{run} is a file")
        _of_file(run, at, svg, as_json=as_json, advise=not no_advice)
        return
    if at is not None or no_advice:
        raise UsageError("--at and --no-advice are for a run that was noted", advice="name its FILE.mcap")
    with connected(run, token_file, authority, certificate, key) as operator:
        if follow:
            from worldline.cli.why_follow import keep_looking

            conclude(keep_looking(operator, every, as_json=as_json), as_json=as_json)
        situation = look(operator)
        if isinstance(situation, RunOver):
            conclude(situation, as_json=as_json)
    _show(situation, svg, as_json=as_json)


def _of_file(run: str, at: str | None, svg: Path | None, *, as_json: bool, advise: bool) -> None:
    from worldline.cli.why_recorded import account, moment, timing_for

    timing = timing_for(run)
    if at is None and svg is None:
        account(timing, Path(run), as_json=as_json, advise=advise)
    else:
        _show(moment(timing, None if at in (None, _END) else as_time(at, "a time for --at")), svg, as_json=as_json)


def _show(situation: Situation, svg: Path | None, *, as_json: bool) -> None:
    if svg is not None:
        save(svg, situation_svg(situation).encode())
    if as_json:
        print_json(as_plain(situation))
    else:
        for line in in_words(situation):
            PlainConsole().print(line)


def look(operator: Operator) -> Situation | RunOver:
    """Look at the run; if time creeps, also at all links, since one must be in the way."""
    situation = operator.situation()
    if isinstance(situation, Situation) and creeps(situation):
        return operator.situation(links=True)
    return situation
