"""A trial of a federation: what is said of one that never ends."""

from __future__ import annotations

import pytest

from worldline import Federation, Participant, Program
from worldline.federation.inprocess import run as inprocess
from worldline.federation.inprocess.trial import FederationTrial
from worldline.model.errors import Stuck
from worldline.search.searching import deadline


def test_a_participant_that_never_comes_back_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_WATCH_EVERY_S", 0.001), ("_BUSY_S", 0.0), ("_PATIENCE_S", 0.05)):
        monkeypatch.setattr(inprocess, name, seconds)

    def endless(me: Participant) -> None:
        me.advance(by="3ms")
        while True:
            pass

    programs = {"a": Program(lambda me: me.advance(by="1s")), "zed": Program(endless)}
    trial = FederationTrial(make=lambda: Federation(programs, until="2s"))
    said = r"more than 0.2 seconds of real time: zed has been running for \d s .* at 3ms.* \(is there an endless loop\?"
    with pytest.raises(Stuck, match=said), deadline(0.2):
        trial.run()


def test_what_a_program_does_just_before_it_raises_is_told() -> None:
    def failing(me: Participant) -> None:
        me.advance(by="3ms")
        me.publish("word", b"last")
        me.log("about to fail")
        raise ValueError("as it said")

    trial = FederationTrial(make=lambda: Federation({"a": Program(failing)}, until="2s"))
    outcome, happenings = trial.told()
    assert "as it said" in str(outcome.failure)
    assert [(each.at, each.kind, each.text) for each in happenings] == [
        (3_000_000, "sent", "last"),
        (3_000_000, "noted", "about to fail"),
    ]
