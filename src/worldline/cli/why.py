"""`worldline why`: say who waits for whom in a run, and what would help."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import msgspec
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from worldline.cli.console import PlainConsole, cell, print_json, warn
from worldline.cli.operate import ACCESS, conclude, connected, is_noted
from worldline.cli.options import AccessOptions, takes
from worldline.federation.operator import Operator
from worldline.files.saving import destination, save
from worldline.lock.states import State
from worldline.lock.why.advice import (
    HEARD_MAX,
    Advice,
    Advisor,
    account_as_plain,
    account_in_words,
    account_of,
    advice_in_words,
    changes,
    slower_in_words,
)
from worldline.lock.why.heard import WaitingTally, situation_at
from worldline.lock.why.reasons import Situation, Standing
from worldline.lock.why.words import (
    as_plain,
    chains,
    creeps,
    headline,
    hints,
    holder_in_words,
    holds,
    in_words,
    seconds,
    way,
)
from worldline.model import UsageError, format_time
from worldline.model.reading import as_time
from worldline.model.time import SECOND
from worldline.pictures.waits import situation_svg
from worldline.recording import Recording
from worldline.recording.output import TIMING_SUFFIX
from worldline.recording.timing import Timing
from worldline.wire.operator import RunOver

# `worldline why FILE`: who waited for whom in a run that was noted, and what would help.

_RECORDING = ".mcap"


def timing_for(run: str) -> Timing:
    """Open the timing that is meant, or that is beside the recording that is meant."""
    path = Path(run)
    if path.suffix != _RECORDING:
        return Timing(path)
    beside = path.with_suffix(TIMING_SUFFIX)
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if not beside.exists():
        raise UsageError(
            f"{path} says what happened, and not how long participants waited",
            advice="run it again with --timing: the result is the same",
        )
    return Timing(beside)


def moment(timing: Timing, at: int | None) -> Situation:
    """Return how the run stood at a simulated time, or at the end."""
    return situation_at(timing.header.plan, timing.header.name, timing.heard(), at)


def account(timing: Timing, recording: Path | None, *, as_json: bool, advise: bool) -> None:
    """Say who waited for whom in all, and what would help."""
    plan, name = timing.header.plan, timing.header.name
    run = account_of(plan, timing.heard())
    _check_same(timing, recording)
    console = PlainConsole()
    if not as_json:
        for line in account_in_words(name, run):
            console.print(line)
        if timing.end is None:
            if timing.is_cut_off:
                warn(f"{timing.path} is cut off, or just being written")
            console.print("")
            console.print("the run wasn't over when this was noted; this is how it stood:")
            for line in in_words(moment(timing, None)):
                console.print(line)
        if advise:
            console.print("")
    advice: list[Advice] = []
    if advise and run.waiting.waited:
        advice = Advisor(plan, list(islice(timing.heard(), HEARD_MAX)), run.habits).advice()
    if as_json:
        print_json(account_as_plain(name, run, advice))
    elif advise:
        for line in advice_in_words(advice):
            console.print(line)


def compare(first: str, second: str, *, as_json: bool) -> None:
    """Say what got slower from one run to the other."""
    timings = timing_for(first), timing_for(second)
    before, after = (account_of(each.header.plan, each.heard()) for each in timings)
    if all(each.end for each in timings) and timings[0].end != timings[1].end:
        warn("their digests differ: they aren't the same run, so one may have more to do than the other")
    if as_json:
        told = [{"what": each.what, "before": each.before, "after": each.after} for each in changes(before, after)]
        print_json({"took": [before.took, after.took], "changes": told})
        return
    for line in slower_in_words((first, second), before, after):
        PlainConsole().print(line)


def _check_same(timing: Timing, recording: Path | None) -> None:
    """Warn of a timing that was noted in another run than the recording beside it."""
    if recording is None or timing.end is None or recording.suffix != _RECORDING:
        return
    outcome = Recording(recording).outcome
    if outcome is not None and timing.end and outcome.digest != timing.end:
        warn(f"{timing.path} was noted in another run than {recording}: their digests differ")


# `worldline why --follow`: keeps looking at a run, and shows what it sees as `top` does.
#
# It looks more often than it shows, so that what is added up is fair; but never for more than a sixtieth of the time. A
# look costs a small run a tenth of a millisecond, and one of two hundred participants much more.

_LOOKS_PER_SECOND = 8.0
_SPARED = 60  # So many times as long as a look takes, the run is left alone.
_APART_S_MAX = 10.0
_LINKS_SHOWN = 12

Show = Callable[[Situation, WaitingTally], None]


def keep_looking(operator: Operator, every_s: float, *, as_json: bool) -> RunOver:
    """Show the run until it is over; return how it has ended."""
    console = PlainConsole()
    if as_json or not console.is_terminal:
        return _looks(operator, every_s, _print_json if as_json else _print_line)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        return _looks(operator, every_s, lambda situation, sample: live.update(page(situation, sample), refresh=True))


def _looks(operator: Operator, every_s: float, show: Show) -> RunOver:
    sample = WaitingTally()
    shown = looked = time.monotonic()
    links = False
    while True:
        asked = time.monotonic()
        situation = operator.situation(links=links)
        if isinstance(situation, RunOver):
            return situation
        now = time.monotonic()
        sample.sample(situation, round((now - looked) * 1e9))
        looked = now
        if now - shown >= every_s:
            shown = now
            show(situation, sample)
        links = creeps(situation)
        apart_s = max(min(every_s, 1 / _LOOKS_PER_SECOND), min(_SPARED * (now - asked), _APART_S_MAX))
        time.sleep(apart_s)


def _print_line(situation: Situation, _: WaitingTally) -> None:
    found = holds(situation)
    told = holder_in_words(found[0], situation) if found else "no participant waits"
    PlainConsole().print(f"{headline(situation)}; {told}")


def _print_json(situation: Situation, sample: WaitingTally) -> None:
    plain = as_plain(situation)
    plain["waited"] = [
        {**msgspec.to_builtins(each.hop), "seconds": round(each.waited / SECOND, 3)} for each in sample.links()
    ]
    print_json(plain)
    sys.stdout.flush()


# --- On a terminal ---


def page(situation: Situation, sample: WaitingTally) -> Group:
    """Lay out what is shown of a run."""
    found = holds(situation)
    parts: list[Text | Table] = [Text(headline(situation), style="bold")]
    parts += [Text(cell(holder_in_words(hold, situation)), style="yellow") for hold in found[:3]]
    parts += [Text(""), _participants(situation), Text(""), _links(sample)]
    parts += [Text(cell(hint), style="cyan") for hint in hints(situation)]
    parts.append(Text("Ctrl-C ends this view, and leaves the run alone", style="dim"))
    return Group(*parts)


def _participants(situation: Situation) -> Table:
    roots = {chain[0].participant: chain[-1].holder for chain in chains(situation.whys)}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("participant", "time", "state", "for", "waits for", "process"):
        table.add_column(title, justify="right" if title in ("time", "for") else "left")
    for standing in situation.standings:
        table.add_row(*_row(standing, roots.get(standing.name)), style=_style(standing, roots))
    return table


def _row(standing: Standing, root: str | None) -> tuple[str, ...]:
    activity = standing.activity
    since = "" if activity.seconds is None else seconds(activity.seconds)
    process = "" if activity.process is None else f"{activity.process} {activity.condition}"
    now = format_time(standing.now) if standing.exact else f"≥ {format_time(standing.now)}"
    return cell(standing.name), now, standing.state.value, since, cell(root or ""), process


def _style(standing: Standing, roots: dict[str, str | None]) -> str:
    if standing.name in roots.values():
        return "bold yellow"
    return "dim" if standing.state is State.LEFT else ""


def _links(sample: WaitingTally) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("waited for, per link")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for each in sample.links()[:_LINKS_SHOWN]:
        share = each.waited / sample.waited if sample.waited else 0.0
        table.add_row(cell(way((each.hop,))), f"{each.waited / SECOND:.1f}", f"{share:.0%}")
    return table


_EVERY_S = 0.5
_PICTURE = ".svg"
_END = "end"


@takes(
    """
    run: RUN|FILE  The run's name, the number of its process, or its server's address (default: the only run of yours on
        this machine); or FILE.mcap or FILE.timing, a run that was noted with --timing.
    other: FILE  With a run that was noted: a second one, to say what got slower from the first to it.
    as_json: --json  Print one JSON object; with --follow, one per line.
    --svg FILE.svg  Draw who waits for whom.
    --follow, -f  Keep looking until the run is over.
    --every SECONDS at least 0.05  How often to show it, with --follow.
    """,
    ACCESS,
    """
    Runs that were noted:
    --at TIME  Show how it stood at this simulated time (or `end`); of machines, also which end of a connection waits.
    --no-advice  Don't try what would make it wait less.
    """,
)
def why(
    run: str | None = None,
    other: str | None = None,
    *,
    as_json: bool = False,
    svg: Path | None = None,
    follow: bool = False,
    every: float = _EVERY_S,
    at: str | None = None,
    no_advice: bool = False,
    access: AccessOptions,
) -> None:
    """Say who waits for whom in a running federation, through which links, for how long, and what the holder is doing.

    Looking changes nothing. Of a run that was noted with --timing, it says who waited for whom in all, and what would
    make it wait less: each change is tried, by letting the arbiter run again. Of two, it says what got slower.
    """
    if svg is not None:
        if not destination(svg).is_stream and svg.suffix != _PICTURE:
            raise UsageError(f"{svg} isn't the name of a picture", advice="it is SVG: FILE.svg")
        if follow:
            raise UsageError("--svg and --follow contradict each other", advice="use one")
    if run is not None and other is not None:
        for each in (run, other):
            if not is_noted(each):
                raise UsageError(f"{each} isn't a run that was noted", advice="give two files: FILE.timing FILE.timing")
        if follow or svg is not None or at is not None or no_advice:
            raise UsageError("two runs are compared as a whole", advice="leave out all but --json")
        compare(run, other, as_json=as_json)
        return
    if run is not None and is_noted(run):
        if follow:
            raise UsageError("--follow is for a run that goes on", advice=f"{run} is a file")
        _of_file(run, at, svg, as_json=as_json, advise=not no_advice)
        return
    if at is not None or no_advice:
        raise UsageError("--at and --no-advice are for a run that was noted", advice="name its FILE.mcap")
    with connected(run, access) as operator:
        if follow:
            conclude(keep_looking(operator, every, as_json=as_json), as_json=as_json)
        situation = look(operator)
        if isinstance(situation, RunOver):
            conclude(situation, as_json=as_json)
    _show(situation, svg, as_json=as_json)


def _of_file(run: str, at: str | None, svg: Path | None, *, as_json: bool, advise: bool) -> None:
    when = None if at in (None, _END) else as_time(at, "a time for --at")
    connections = None if at is None or svg is not None else _connections(Path(run), when)
    if connections is not None and not Path(run).with_suffix(TIMING_SUFFIX).exists():
        print_json({"connections": connections}) if as_json else _tell(connections)
        return
    timing = timing_for(run)
    if at is None and svg is None:
        account(timing, Path(run), as_json=as_json, advise=advise)
        return
    _show(moment(timing, when), svg, as_json=as_json)
    _tell([] if connections is None or as_json else ["", *connections])


def _connections(file: Path, at: int | None) -> list[str] | None:
    """Say how the connections of machines stood in a recording; None if there are no machines in it."""
    from worldline.recording.connections import connections_at, has_connections  # Here, since few runs have machines.

    recording = Recording(file) if file.suffix == _RECORDING and file.exists() else None
    if recording is None or not has_connections(recording):
        return None
    span = recording.span()
    return connections_at(recording, at if at is not None else 0 if span is None else span[1]) or [
        "no connection is open"
    ]


def _tell(lines: list[str]) -> None:
    for line in lines:
        PlainConsole().print(line)


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
