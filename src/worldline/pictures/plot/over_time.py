"""Charts of signals: the fields of one run or several over simulated time, or how often their values occur."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.history.fields import fields_of, joined
from worldline.history.monitor import Monitor
from worldline.history.outcome import Outcome
from worldline.model.errors import UsageError, nearest, shown
from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US
from worldline.pictures.plot.chart import LINES_MAX, Bars, Chart, Line, Numbers, Panel, PlotOptions, Style
from worldline.pictures.plot.figure import histogram, is_whole, library
from worldline.recording.reader import Recording
from worldline.recording.signals import Names, RecordedSignal, meant_by

_UNITS = ((4 * DAY, DAY, "d"), (4 * HOUR, HOUR, "h"), (10 * MINUTE, MINUTE, "min"), (SECOND, SECOND, "s"))
_SMALL_UNITS = ((MS, MS, "ms"), (US, US, "µs"), (0, NS, "ns"))
_LEVELS_MAX = 24
_NAMED = 12


class RunSignals(NamedTuple):
    """The signals of one run, and what the run is called."""

    run: str
    told: str
    signals: list[RecordedSignal]


def of_recordings(recordings: Sequence[Recording], options: PlotOptions) -> list[RunSignals]:
    """Read the signals of recordings; runs are called by their files."""
    names = distinct([each.path for each in recordings])
    start, end = options.span
    return [
        RunSignals(
            name,
            f"{each.header.federation or each.path.name}, seed {each.header.seed}",
            each.signals(*options.topics, senders=options.senders, start=start, end=end),
        )
        for name, each in zip(names, recordings, strict=True)
    ]


def of_outcome(outcome: Outcome, options: PlotOptions, name: str = "run") -> RunSignals:
    """Take the signals out of an outcome: what the members of the run measured and recorded."""
    names = Names(options.topics)
    found: list[RecordedSignal] = []
    for (member, what), monitor in outcome.monitors.items():
        rests = names.rests(member, what)
        if rests and (not options.senders or member in options.senders):
            found += _of_monitor(member, what, monitor, rests, options)
    found.sort(key=lambda signal: signal.asked)
    there = {signal.asked for signal in found}
    known = [*dict.fromkeys(what for _, what in outcome.monitors), *(f"{who}/{what}" for who, what in outcome.monitors)]
    for number, asked in enumerate(names.names):
        if number not in there:
            listed = (
                f"there are {', '.join(known[:_NAMED])}" if known else "measure something: self.measure(name, value)"
            )
            raise UsageError(f"the run has measured no {shown(asked)}", advice=nearest(asked, known) or listed)
    return RunSignals(name, str(outcome), found)


def _of_monitor(member: str, what: str, monitor: Monitor, rests: Any, options: PlotOptions) -> Iterable[RecordedSignal]:
    series: dict[tuple[int, str], tuple[list[int], list[Any]]] = {}
    start, end = options.span
    for at, value in monitor:
        if not start <= at < end:
            continue
        for field, each in fields_of(value):
            for number in meant_by(field, rests):
                if isinstance(each, int | float | str):
                    own = series.setdefault((number, field), ([], []))
                    own[0].append(at)
                    own[1].append(each)
    return [RecordedSignal(number, member, joined(what, field), *lists) for (number, field), lists in series.items()]


def distinct(paths: Sequence[Path]) -> list[str]:
    """Name files as shortly as they can be told apart."""
    absolute = [path.absolute().with_suffix("") for path in paths]
    for parts in range(1, max(len(path.parts) for path in absolute) + 1):
        names = ["/".join(path.parts[-parts:]) for path in absolute]
        if len({*names}) == len(names):
            return names
    return [f"{path} ({place})" for place, path in enumerate(paths, 1)]


def time_unit(span: int) -> tuple[int, str]:
    """Return in what a span of time is best told, and what that is called."""
    return next((unit, name) for least, unit, name in (*_UNITS, *_SMALL_UNITS) if span >= least)


def lines_over_time(runs: Sequence[RunSignals], options: PlotOptions) -> Chart:
    """Make a chart with a panel for each name: a line for each field, member and run that it means."""
    every = [signal for run in runs for signal in run.signals]
    begin, end = min(signal.times[0] for signal in every), max(signal.times[-1] for signal in every)
    unit, unit_name = time_unit(end - min(begin, 0) if options.span[0] == 0 else end - begin)
    numpy = library("numpy")
    style: Style | None = None if options.kind is None else options.kind.value  # type: ignore[assignment]

    def scaled(times: list[int]) -> Numbers:
        return numpy.array(times, dtype=numpy.int64) / unit

    panels = []
    for number, name in enumerate(options.topics):
        chosen = _chosen(runs, number)
        _check_count(name, [signal for _, signal in chosen])
        labels, colors, dashes = _looks(runs, chosen)
        levels = _levels(name, [signal for _, signal in chosen])
        content = []
        for (_, signal), label, color, dash in zip(chosen, labels, colors, dashes, strict=True):
            drawn_as: Style = style or ("steps" if levels or is_whole(signal.values) else "line")
            x, y = scaled(signal.times), _numbers(signal, levels)
            if drawn_as == "steps":  # The last value holds, too.
                x, y = numpy.append(x, end / unit), numpy.append(y, y[-1])
            marked = style is None and drawn_as == "line"
            content.append(Line(label=label, x=x, y=y, style=drawn_as, color=color, dash=dash, marked=marked))
        whole = not levels and all(is_whole(signal.values) for _, signal in chosen)
        panels.append(Panel(title=_panel_title(name, chosen), content=content, levels=list(levels), is_whole=whole))
    return _chart(runs, panels, f"simulated time ({unit_name})")


def bars_of(runs: Sequence[RunSignals], options: PlotOptions) -> Chart:
    """Make a chart with a histogram for each name."""
    panels = []
    for number, name in enumerate(options.topics):
        chosen = _chosen(runs, number)
        _check_count(name, [signal for _, signal in chosen])
        labels, _, _ = _looks(runs, chosen)
        levels = _levels(name, [signal for _, signal in chosen])
        counts = histogram([_numbers(signal, levels) for _, signal in chosen], options.bins)
        content = [
            Bars(label=label, edges=edges, counts=count, color=place)
            for place, (label, (edges, count)) in enumerate(zip(labels, counts, strict=True))
        ]
        panels.append(Panel(title=_panel_title(name, chosen), content=content, y_title="values", levels=list(levels)))
    return _chart(runs, panels, "value")


def _chosen(runs: Sequence[RunSignals], number: int) -> list[tuple[int, RecordedSignal]]:
    return [(place, signal) for place, run in enumerate(runs) for signal in run.signals if signal.asked == number]


def _looks(
    runs: Sequence[RunSignals], chosen: Sequence[tuple[int, RecordedSignal]]
) -> tuple[list[str], list[int], list[int]]:
    """Say as much of each signal as tells it from the others, and give it a color; dashes tell runs apart then."""
    fields = len({signal.name for _, signal in chosen}) > 1
    senders = len({signal.sender for _, signal in chosen}) > 1
    several = len(runs) > 1
    short = shortest([signal.name for _, signal in chosen])
    kinds: dict[tuple[str, str], int] = {}
    for _, signal in chosen:
        kinds.setdefault((signal.sender, signal.name), len(kinds))
    by_run = several and len(kinds) == 1
    labels, colors, dashes = [], [], []
    for place, signal in chosen:
        named = short[signal.name]
        said = f"{signal.sender}/{named}" if senders and fields else signal.sender if senders else named
        parts = [said if fields or senders or not several else "", runs[place].run if several else ""]
        labels.append(" · ".join(filter(None, parts)) or said)
        colors.append(place if by_run else kinds[signal.sender, signal.name])
        dashes.append(0 if by_run else place)
    return labels, colors, dashes


def shortest(names: Iterable[str]) -> dict[str, str]:
    """Return for each name what tells it from the others: without the steps that all of them begin and end with."""
    steps = {name: re.findall(r"[.\[]?[^.\[]+", name) or [name] for name in names}
    if len(steps) < 2:
        return {name: name for name in steps}
    least = min(map(len, steps.values()))
    begin = next((place for place in range(least) if len({each[place] for each in steps.values()}) > 1), least)
    left = least - begin
    end = next((place for place in range(left) if len({each[-1 - place] for each in steps.values()}) > 1), left)
    return {name: "".join(each[begin : len(each) - end]).lstrip(".") or name for name, each in steps.items()}


def _panel_title(name: str, chosen: Sequence[tuple[int, RecordedSignal]]) -> str:
    """Return what a panel shows: the field, or what was asked for, if that is several."""
    names, senders = {signal.name for _, signal in chosen}, {signal.sender for _, signal in chosen}
    if len(names) > 1:
        return name
    return f"{min(names)} of {min(senders)}" if len(senders) == 1 and min(senders) else min(names)


def _levels(name: str, chosen: Iterable[RecordedSignal]) -> dict[str, int]:
    """Return the texts that values are, each with its height; nothing, if they are numbers."""
    kinds: set[type] = set()
    texts: dict[str, int] = {}
    for signal in chosen:
        kinds.update(map(type, signal.values))
        if str in kinds:
            for value in signal.values:
                if isinstance(value, str):
                    texts.setdefault(value, len(texts))
        if len(texts) > _LEVELS_MAX:
            raise UsageError(f"{name} has more than {_LEVELS_MAX} different texts", advice="name a field of numbers")
    if texts and kinds != {str}:
        raise UsageError(f"{name} has both numbers and texts", advice="name one of its fields, or one member's")
    return texts


def _numbers(signal: RecordedSignal, levels: dict[str, int]) -> Numbers:
    numpy = library("numpy")
    values = [levels[each] for each in signal.values] if levels else signal.values
    return numpy.array(values, dtype=float)


def _check_count(name: str, chosen: Sequence[RecordedSignal]) -> None:
    if len(chosen) > LINES_MAX:
        some = ", ".join(f"{signal.sender}/{signal.name}" for signal in chosen[:3])
        raise UsageError(
            f"{name} means {len(chosen):,} signals, and at most {LINES_MAX} can be told apart",
            advice=f"name some of them, such as {some}",
        )


def _chart(runs: Sequence[RunSignals], panels: Sequence[Panel], x_title: str) -> Chart:
    """Put panels together; the title of one that is alone is that of the whole."""
    told = runs[0].told if len(runs) == 1 else f"{len(runs)} runs: {', '.join(run.run for run in runs)}"
    if len(panels) > 1:
        return Chart(title=told, x_title=x_title, panels=panels)
    return Chart(title=panels[0].title, subtitle=told, x_title=x_title, panels=panels).alone()
