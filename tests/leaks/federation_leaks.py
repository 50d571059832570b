"""A federation that leaks: what bob gets is in the name of his program."""

from __future__ import annotations

import json
from collections.abc import Callable

from leaking import call, leaked  # type: ignore[import-not-found]  # It lies beside this file.

from worldline import Participant


def teller(self: Participant) -> None:
    """Tells the ledger three times that it is there."""
    tell(self, None)


def leaky(leak: str) -> Callable[[Participant], None]:
    def bob(self: Participant) -> None:
        """Tells what it has got, too. Whatever has come to it by then was sent by all, so all have been counted."""
        tell(self, leak)

    return bob


none, set_order, float_sum = leaky("none"), leaky("set_order"), leaky("float_sum")
clock, global_random, thread = leaky("clock"), leaky("global_random"), leaky("thread")
identity, race, shared_state = leaky("identity"), leaky("race"), leaky("shared_state")
folder, home, locale, time_zone = leaky("folder"), leaky("home"), leaky("locale"), leaky("time_zone")


def restarted(self: Participant) -> None:
    """Leaks only after a crash: its author seeds it anew then, from the clock."""
    tell(self, "clock" if self.incarnation else "none")


def tell(self: Participant, leak: str | None) -> None:
    for number in range(3):
        call()
        self.publish("tick", str(number).encode())
        self.advance(by="2ms")
        if number == 1 and leak is not None:
            self.publish("leak", json.dumps(leaked(leak)).encode())
    for news in self.messages():
        if news.topic == "news" and self.name == "carol":
            self.publish("more", news.payload)


def ledger(self: Participant) -> None:
    """Passes on what bob has told."""
    for told in self.messages():
        if told.topic == "leak":
            self.publish("news", told.payload)
