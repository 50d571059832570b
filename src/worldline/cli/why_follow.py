"""`worldline why --follow`: keeps looking at a run, and shows what it sees as `top` does.

It looks more often than it shows, so that what is added up is fair; but never for more than a sixtieth of the time. A
look costs a small run a tenth of a millisecond, and one of two hundred participants much more.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import msgspec
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from worldline.cli.console import PlainConsole, cell, print_json
from worldline.federation.operator import Operator
from worldline.lock.chains import chains, holds
from worldline.lock.situation import Situation, Standing
from worldline.lock.states import State
from worldline.model import format_time
from worldline.waiting.hints import creeps, hints
from worldline.waiting.plain import as_plain
from worldline.waiting.sampling import WaitingSample
from worldline.waiting.words import headline, holder_in_words, seconds, way
from worldline.wire.operator import RunOver

_LOOKS_PER_SECOND = 8.0
_SPARED = 60  # So many times as long as a look takes, the run is left alone.
_APART_S_MAX = 10.0
_LINKS_SHOWN = 12

Show = Callable[[Situation, WaitingSample], None]


def keep_looking(operator: Operator, every_s: float, *, as_json: bool) -> RunOver:
    """Show the run until it is over; return how it has ended."""
    console = PlainConsole()
    if as_json or not console.is_terminal:
        return _looks(operator, every_s, _print_json if as_json else _print_line)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        return _looks(operator, every_s, lambda situation, sample: live.update(page(situation, sample), refresh=True))


def _looks(operator: Operator, every_s: float, show: Show) -> RunOver:
    sample = WaitingSample()
    shown = looked = time.monotonic()
    links = False
    while True:
        asked = time.monotonic()
        situation = operator.situation(links=links)
        if isinstance(situation, RunOver):
            return situation
        now = time.monotonic()
        sample.add(situation, now - looked)
        looked = now
        if now - shown >= every_s:
            shown = now
            show(situation, sample)
        links = creeps(situation)
        apart_s = max(min(every_s, 1 / _LOOKS_PER_SECOND), min(_SPARED * (now - asked), _APART_S_MAX))
        time.sleep(apart_s)


def _print_line(situation: Situation, _: WaitingSample) -> None:
    found = holds(situation)
    told = holder_in_words(found[0], situation) if found else "nobody waits"
    PlainConsole().print(f"{headline(situation)}; {told}")


def _print_json(situation: Situation, sample: WaitingSample) -> None:
    plain = as_plain(situation)
    plain["waited"] = [{**msgspec.to_builtins(each.hop), "seconds": round(each.seconds, 3)} for each in sample.links()]
    print_json(plain)
    sys.stdout.flush()


# --- On a terminal ---


def page(situation: Situation, sample: WaitingSample) -> Group:
    """Lay out what is shown of a run."""
    found = holds(situation)
    parts: list[Text | Table] = [Text(headline(situation), style="bold")]
    parts += [Text(cell(holder_in_words(hold, situation)), style="yellow") for hold in found[:3]]
    parts += [Text(""), _everybody(situation), Text(""), _links(sample)]
    parts += [Text(cell(hint), style="cyan") for hint in hints(situation)]
    parts.append(Text("Ctrl-C ends this view, and leaves the run alone", style="dim"))
    return Group(*parts)


def _everybody(situation: Situation) -> Table:
    roots = {chain.who: chain.root for chain in chains(situation.whys)}
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


def _links(sample: WaitingSample) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("waited for, per link")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for each in sample.links()[:_LINKS_SHOWN]:
        share = each.seconds / sample.seconds if sample.seconds else 0.0
        table.add_row(cell(way((each.hop,))), f"{each.seconds:.1f}", f"{share:.0%}")
    return table
