"""How long messages of nodes are under way on a day that isn't a usual one."""

from __future__ import annotations

from collections.abc import Collection

from worldline.model.distributions import Chance
from worldline.model.links import Link
from worldline.model.randomness import draw_bits, key_of
from worldline.nodes.script import Delays, MessageId
from worldline.search.day import Day, DayDraws


class DayDeliveries:
    """Draws the fate of each message from the seed, its link and the day; `is_open` if nobody stated the latency."""

    def __init__(self, day: Day, seed: int, link: Link, *, is_open: bool) -> None:
        self._draws = DayDraws(day, seed)
        self._seed = seed
        self._link = link
        self._is_open = is_open
        self._keys: dict[tuple[int, int, str], int] = {}

    @property
    def felt(self) -> Collection[str]:
        """What of the day has made a difference so far."""
        return self._draws.felt

    def delays(self, message: MessageId) -> Delays:
        if self._happens("loss", message, self._link.loss_at_receiver):
            return ()
        return (self._takes("latency", message),) + (
            (self._takes("latency-of-copy", message),)
            if self._happens("duplication", message, self._link.duplication)
            else ()
        )

    def _takes(self, purpose: str, message: MessageId) -> int:
        latency = self._link.latency
        stated = latency.draw(self._bits(purpose, message))
        *way, number = message
        path = (purpose, *map(str, way))
        return self._draws.latency(path, number, latency, stated, is_open=self._is_open)

    def _happens(self, purpose: str, message: MessageId, share: float) -> bool:
        if not share:
            return False
        chance = Chance(share)
        happens = chance.draw(self._bits(purpose, message))
        *way, number = message
        return self._draws.is_lost(("loss", *map(str, way)), number, chance, happens) if purpose == "loss" else happens

    def _bits(self, purpose: str, message: MessageId) -> int:
        sender, receiver, number = message
        key = self._keys.get((sender, receiver, purpose))
        if key is None:
            key = self._keys[sender, receiver, purpose] = key_of(self._seed, purpose, str(sender), str(receiver))
        return draw_bits(key, number)
