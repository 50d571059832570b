"""From when to when something goes wrong in a run, drawn from a seed, in any room."""

from __future__ import annotations

from worldline.model.randomness import Stream

_SHORTEST = 0.01  # The shortest fault, as a share of the time there is.
_CALM_FROM = 0.7  # By then all is well again, so that what has to come in the end can come.


def calm_from(until: int) -> int:
    """Return the time by which all drawn faults of a run are over."""
    return max(1, int(until * _CALM_FROM))


def draw_span(calm: int, draws: Stream) -> tuple[int, int]:
    """Draw when something goes wrong, and until when: as often for hundredths as for tenths of the time there is.

    Bugs hide in faults of every length: some take one that covers an election, some one that is over in no time.
    """
    length = draw_length(calm, draws)
    unit = _unit(calm)
    start = draws.randrange(max(1, (calm - length) // unit)) * unit
    return start, start + length


def draw_length(calm: int, draws: Stream) -> int:
    """Draw how long something goes wrong."""
    unit = _unit(calm)
    return max(1, int(calm // unit * _SHORTEST ** draws.random())) * unit


def _unit(calm: int) -> int:
    """Return what times are drawn in: whole milliseconds where there is room for that."""
    return 10**6 if calm > 10**9 else 1
