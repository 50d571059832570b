"""Draws in words: what comes of them."""

from __future__ import annotations

import pytest

from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.names import PURPOSES, draw_in_words
from worldline.model.time import MS


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("loss/a%2Fb/ann/bob/0", True, "message 1 of ann on a/b doesn't reach bob"),
        ("loss-at-sender/x/ann/7", True, "message 8 of ann on x reaches no participant"),
        ("duplication/x/ann/bob/7", True, "message 8 of ann on x comes twice to bob"),
        ("latency/x/ann/bob/7", 3 * MS, "message 8 of ann on x takes 3ms to bob"),
        ("latency-of-copy/x/ann/bob/7", MS, "message 8 of ann on x comes twice, and the copy takes 1ms to bob"),
        ("boot/ann/0", 8 * MS, "ann takes 8ms to boot"),
        ("loss/x/ann/bob/0", False, ""),
        ("corruption/x/ann/bob/0", True, "message 1 of all that ann sends is corrupted for bob"),
        ("clock-offset/ann/0", -3_000_000, "the clock of ann is 3ms slow at first"),
        ("clock-drift/ann/0", 40_000, "the clock of ann gains 40ppm"),
        ("clock-walk/ann/4", -1_000, "the rate of the clock of ann changes by -1ppm"),
        ("random/ann/3", 0.5, ""),
    ],
)
def test_a_draw_is_told_in_words(name: str, value: DrawnValue, words: str) -> None:
    assert draw_in_words(name, value) == words


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("value", [True, False, 3, 0.5])
def test_every_name_can_be_asked_about(purpose: str, value: DrawnValue) -> None:
    draw_in_words("/".join([purpose, *("0" for _ in PURPOSES[purpose])]), value)
