"""How many messages were lost, in the same words for a run and for its recording."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.history.observer import DEAD, UNDER_WAY
from worldline.lock.arbiter import DROPPED_BY_BUFFER, NEVER_TAKEN
from worldline.model.counting import counted

_APART = {
    DROPPED_BY_BUFFER: "not kept by buffers",
    NEVER_TAKEN: "never taken",
    UNDER_WAY: UNDER_WAY,
    DEAD: "sent to the dead",
}
"""What nothing has lost: it reached its receiver, or that wasn't there, or the run was over first."""


def losses_in_words(counts: Mapping[tuple[str, str, str], int], *always: str) -> str:
    """Say how many of the messages, counted by (receiver, topic, reason), were lost, and what else became of others.

    A reason that isn't a loss is named if there are such messages, or `always`.
    """
    apart = dict.fromkeys(_APART, 0)
    lost = 0
    for (_, _, reason), count in counts.items():
        if reason in apart:
            apart[reason] += count
        else:
            lost += count
    said = [f"{apart[reason]:,} {words}" for reason, words in _APART.items() if apart[reason] or reason in always]
    return ", ".join([f"{counted(lost, 'message')} lost", *said])
