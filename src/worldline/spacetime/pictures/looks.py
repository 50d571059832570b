"""Chooses how agents are drawn: alike if they are shown as the same.

An agent is shown as what it says itself, `shown_as`, or else by its class. What appears first in the run, by lab time
and then by the agent's name, gets the first color, whatever comes later; so a longer run doesn't change the colors of
a shorter one. When there are no more colors, dashes and shapes tell looks apart; and when there are no more of these,
the rest is drawn alike and in gray. If all agents are of one class and none says more, each has a color of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from worldline.drawing.lines import KINDS_MAX, Look, looks_of
from worldline.drawing.svg import PALETTE, SOFT
from worldline.spacetime.pictures.happenings import Life, SpacetimePicture, natural
from worldline.spacetime.story import Coordinates

_NAMELESS = "agent"  # Recordings may be older than classes in them.


class Kind(NamedTuple):
    """What agents are shown as, and how they are drawn; those that have a `place` differ from each other."""

    text: str
    place: int | None
    look: Look


class Looks:
    """How the agents of a story are drawn; `kinds` are what the legend explains: none if each has a color of its own.

    `change` says whether anybody's look does.
    """

    def __init__(self, story: SpacetimePicture) -> None:
        texts = _in_order(story.lives)
        says_more = any(text != life.kind for life in story.lives for _, text in life.looks)
        self.change = any(len(life.looks) > 1 for life in story.lives)
        self.kinds: list[Kind] = []
        if len(texts) <= 1 and not says_more:
            self._own = {
                life.name: Kind(life.name, place, Look(PALETTE[place % len(PALETTE)], None))
                for place, life in enumerate(story.lives)
            }
            return
        drawn = texts if len(texts) <= KINDS_MAX else texts[: KINDS_MAX - 1]
        self.kinds = [
            Kind(text or _NAMELESS, place, look) for place, (text, look) in enumerate(looks_of(drawn).items())
        ]
        self._shared = dict(zip(drawn, self.kinds, strict=True))
        if len(drawn) < len(texts):
            self.kinds.append(Kind(f"{len(texts) - len(drawn):,} others", None, Look(SOFT, None)))

    def along(self, life: Life) -> list[tuple[Coordinates, Kind]]:
        """Return how an agent is drawn, and from where on."""
        if not self.kinds:
            return [(life.looks[0][0], self._own[life.name])]
        return [(at, self._kind(text)) for at, text in life.looks]

    def at(self, life: Life, time: float) -> Look:
        """Return how an agent is drawn at some lab time; if it changes then, how it is drawn afterwards."""
        if not self.kinds:
            return self._own[life.name].look
        place = bisect_right(life.looks, time, key=lambda look: look[0][0])
        return self._kind(life.looks[max(0, place - 1)][1]).look

    def _kind(self, text: str) -> Kind:
        return self._shared.get(text, self.kinds[-1])


def _in_order(lives: Sequence[Life]) -> list[str]:
    """Return what agents are shown as, in the order in which it appears."""
    seen = sorted(
        (at[0], natural(life.name), place, text) for life in lives for place, (at, text) in enumerate(life.looks)
    )
    return list(dict.fromkeys(text for *_, text in seen))
