"""`worldline replay`: play a recording, or run members of it again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.console import PlainConsole, print_json, remark, warn, words_aside
from worldline.cli.interruption import interruptible
from worldline.cli.options import Quiet
from worldline.cli.public_lcm import LcmServe, LcmTargets
from worldline.cli.replay_show import Pace, ShownPart, show, speed_of
from worldline.model import UsageError, format_time
from worldline.model.reading import as_time
from worldline.model.text import printable
from worldline.model.time import FOREVER
from worldline.recording import Recording
from worldline.recording.accounting import shortcoming

_DIFFERS = 1
_LIVE = "To run members again"
_PLAY = "To play it"


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording.")],
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Simulated seconds per real second, or max (default: 1, and max with --only or --until-differs).",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            rich_help_panel=_LIVE,
            metavar="NAME",
            help="Run this member's code, given what it was given, and compare what it does. May be repeated.",
        ),
    ] = None,
    until_differs: Annotated[
        bool,
        typer.Option(
            "--until-differs",
            rich_help_panel=_LIVE,
            help="Run everybody again, or those of --only, and show only what differs.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_LIVE,
            metavar="TARGET",
            help="Where the code is, as for `worldline run` (default: the recording's own, here or next to it).",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            rich_help_panel=_LIVE,
            metavar="NAME=VALUE",
            help="A setting of the recorded run that chooses code: a recording alone doesn't. May be repeated.",
        ),
    ] = None,
    debug: Annotated[
        bool,
        typer.Option(
            "--pdb", rich_help_panel=_LIVE, help="Stop in pdb: at the first line, and where it differs or fails."
        ),
    ] = False,
    go_on: Annotated[
        bool, typer.Option("--go-on", rich_help_panel=_LIVE, help="Don't stop a participant where it first differs.")
    ] = False,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", rich_help_panel=_PLAY, metavar="NAME", help="Show this topic only. May be repeated."),
    ] = None,
    start: Annotated[str | None, typer.Option(rich_help_panel=_PLAY, metavar="TIME", help="Show from here on.")] = None,
    until: Annotated[
        str | None, typer.Option(rich_help_panel=_PLAY, metavar="TIME", help="Show up to here (default: all).")
    ] = None,
    lcm: LcmTargets = None,
    lcm_serve: LcmServe = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, of what was compared.")] = False,
    quiet: Quiet = False,
) -> None:
    """Play a recording, or run members of it again on their own and compare what they do.

    With --only or --until-differs, the exit code is 0 if they do the same as in the recording, 1 if not.
    """
    recording = Recording(file)
    is_live = bool(only) or until_differs
    rate = (None if is_live else 1.0) if speed is None else speed_of(speed)
    if is_live:
        played = {"--topic": topics, "--start": start, "--until": until, "--lcm": lcm, "--lcm-serve": lcm_serve}
        for option, given in played.items():
            if given is not None:
                raise UsageError(f"{option} is for playing a recording", advice="leave out --only and --until-differs")
        pace = None if rate is None else Pace(rate)
        code = (target, tuple(settings or ()))
        _run_again(recording, only or [], code, debug, go_on, until_differs, pace, as_json=as_json, quiet=quiet)
        return
    for option, is_given in (
        ("--target", target),
        ("--set", settings),
        ("--pdb", debug),
        ("--go-on", go_on),
        ("--json", as_json),
    ):
        if is_given:
            raise UsageError(f"{option} is for running members again", advice="name them: --only NAME")
    part = ShownPart(
        frozenset(topics or ()),
        0 if start is None else as_time(start, "the start"),
        FOREVER if until is None else as_time(until, "the end"),
    )
    if missing := shortcoming(recording):
        warn(missing)
    if topics:
        next(recording.arrivals(topics=topics), None)  # Refuses a topic that isn't there.
    with interruptible():
        show(recording, part, rate, say=PlainConsole().print, quiet=quiet, lcm=tuple(lcm or ()), lcm_serve=lcm_serve)


def _run_again(
    recording: Recording,
    names: list[str],
    code: tuple[str | None, tuple[str, ...]],
    debug: bool,
    go_on: bool,
    until_differs: bool,
    pace: Pace | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from worldline.cli.replay_debugger import ReplayDebugger
    from worldline.cli.replay_live import LiveOptions, run_again

    if debug and as_json:
        raise UsageError("--pdb and --json both need standard output")
    is_mute = (quiet or until_differs) and not debug
    say = PlainConsole().print
    with words_aside(None, wanted=as_json), _muted() if is_mute else nullcontext(), interruptible():
        options = LiveOptions(
            go_on=go_on,
            debugger=ReplayDebugger(say) if debug else None,
            pace=pace,
            logged=lambda name, at, text: print(printable(f"{format_time(at)} {name}: {text}")),
            warn=warn,
            remark=remark,
        )
        target, settings = code
        report = run_again(recording, names, target, options, settings)
    if as_json:
        print_json(report.as_json())
    else:
        console = PlainConsole()
        if not until_differs or not report.differences:
            for member in report.members:
                console.print(str(member))
        if report.differences:
            console.print("first difference:")
        for difference in report.differences[:1]:
            for line in difference.lines():
                console.print(f"  {line}")
        others = [each for each in report.differences[1:] if each.member != report.differences[0].member]
        for name in dict.fromkeys(each.member for each in others):
            first = next(each for each in others if each.member == name)
            console.print(f"{name} differs at {format_time(first.first.at)}: {first}")
        if report.summary:
            console.print(report.summary)
    if report.differences:
        raise typer.Exit(_DIFFERS)


@contextmanager
def _muted() -> Iterator[None]:
    """Let members print into nothing."""
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
        yield
