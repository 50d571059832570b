"""Contests: several contestants measured in turn, and what their figures say about each other."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers.apart import Facts
from peers.children import PeerError
from rich.console import Console

Contest = dict[str, Callable[[], Facts]]
Found = dict[str, list[Facts]]

EVENTS_TOLERANCE = 0.01


def race(console: Console, title: str, contest: Contest, runs: int, figure: str = "rate") -> Found:
    """Let everybody run so many times, in turns: two measurements a minute apart would compare the minutes."""
    found: Found = {}
    for _ in range(runs):
        for name, run in contest.items():
            try:
                found.setdefault(name, []).append(run())
            except PeerError as error:
                reason, *said = str(error).splitlines()
                console.print(f"[red]{title}: {name}: {reason} {said[-1] if said else ''}[/]", markup=True)
    check(title, found)
    for name, facts in found.items():
        figures = sorted(fact[figure] for fact in facts)
        if figures:
            middle = statistics.median(figures)
            console.print(f"{title}: {name} {shown(middle)} ({shown(figures[0])} to {shown(figures[-1])})")
    return {name: facts for name, facts in found.items() if facts}


def check(title: str, found: Found) -> None:
    """Refuse figures that don't belong together: digests of ours that differ, or another number of events."""
    digests = {fact["digest"]: name for name, facts in found.items() for fact in facts if "digest" in fact}
    if len(digests) > 1:
        raise SystemExit(f"{title}: digests differ: {digests}")
    events = {fact["events"]: name for name, facts in found.items() for fact in facts if "events" in fact}
    if events and max(events) > (1 + EVENTS_TOLERANCE) * min(events):
        raise SystemExit(f"{title}: not the same number of events: {events}")


def median(found: Found, name: str, figure: str = "rate") -> float | None:
    return statistics.median(fact[figure] for fact in found[name]) if name in found else None


def ratio(found: Found, name: str, other: str, figure: str = "rate") -> float | None:
    first, second = median(found, name, figure), median(found, other, figure)
    return first / second if first is not None and second else None


def ratio_range(found: Found, name: str, other: str, figure: str = "rate") -> tuple[float, float] | None:
    """Return the least and the greatest of the ratios of single runs, each to the one beside it."""
    pairs = zip(found.get(name, ()), found.get(other, ()), strict=False)
    ratios = [first[figure] / second[figure] for first, second in pairs]
    return (min(ratios), max(ratios)) if ratios else None


def shown(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:,.2f}"


def judged(value: float | None, goal: float, *, at_most: bool = False) -> str:
    """Show a ratio beside its goal, and whether it is reached."""
    if value is None:
        return ""
    is_reached = value <= goal if at_most else value >= goal
    return f"[{'green' if is_reached else 'red'}]{value:.2f}[/] ({'≤' if at_most else '≥'} {goal:g})"
