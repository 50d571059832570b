"""Why an agent never came to its first step: what kept its participant from it until the run was over."""

from __future__ import annotations

from worldline.federation.draw_functions import with_functions
from worldline.federation.program import Federation
from worldline.model.draw_names import BOOT
from worldline.model.draw_rows import DrawsGiven, read_draws
from worldline.model.draws import DrawSource, DrawTable
from worldline.model.faults import as_faults, spans_of
from worldline.model.latency import Fixed, as_delay
from worldline.model.time import FOREVER, format_time


def why_absent(federation: Federation, name: str, draws: DrawsGiven) -> str:
    """Say what kept a participant: that it boots for longer than the run lasts, or a fault, as far as it is known."""
    end = federation.plan().end
    booted = _booted(federation, name, draws)
    if end is not None and booted >= end:
        return f"it boots until {format_time(booted)}, and the run ends at {format_time(end)}"
    faults = as_faults(federation.faults)
    lasting = [
        str(because)
        for verb in ("crash", "hang")
        for _, over, because in spans_of(faults, name, verb)
        if over >= (FOREVER if end is None else end)
    ]
    return "; ".join(lasting) or "the run is over"


def _booted(federation: Federation, name: str, draws: DrawsGiven) -> int:
    boot = as_delay(federation.programs[name].boot)
    if isinstance(boot, Fixed):  # What is fixed isn't drawn.
        return boot.minimum
    rows, functions = with_functions(read_draws(draws))
    table = DrawTable(federation.seed, rows, load=functions.__getitem__)
    return int(table.draw(DrawSource((BOOT, name, "0"), boot, ("boot", name), 0), 0))
