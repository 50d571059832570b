"""Strands of both kinds: flows of control that go on when they are resumed, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from worldline.federation.inprocess import strand as strand_module
from worldline.federation.inprocess.strand import GreenletStrand, StrandBroken, ThreadStrand, strand_kind

KINDS = [
    ThreadStrand,
    pytest.param(
        GreenletStrand, marks=pytest.mark.skipif(not strand_module._GREENLETS, reason="greenlet isn't installed")
    ),
]
Kind = type[GreenletStrand] | type[ThreadStrand]
every_kind = pytest.mark.parametrize("kind", KINDS)


class Scene:
    """Strands that write down what they do."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.said: list[str] = []
        self.strands: dict[str, Any] = {}

    def add(self, name: str, body: Callable[[Any], object]) -> Any:
        made = self.strands[name] = self.kind(name, lambda: body(self.strands[name]))
        return made


@every_kind
def test_a_strand_runs_until_it_pauses_and_goes_on_when_it_is_resumed(kind: Kind) -> None:
    scene = Scene(kind)

    def body(me: Any) -> None:
        for number in range(3):
            scene.said.append(f"in {number}")
            me.pause()

    strand = scene.add("a", body)
    for number in range(3):
        assert not strand.finished
        strand.resume()
        scene.said.append(f"out {number}")
    strand.resume()
    assert strand.finished
    assert scene.said == ["in 0", "out 0", "in 1", "out 1", "in 2", "out 2"]


@every_kind
def test_one_hands_over_to_another_and_outside_gets_control_back_from_that(kind: Kind) -> None:
    scene = Scene(kind)

    def first(me: Any) -> None:
        scene.said.append("a1")
        me.hand_over(scene.strands["b"])
        scene.said.append("a2")

    def second(me: Any) -> None:
        scene.said.append("b1")
        me.pause()
        scene.said.append("b2")
        me.hand_over(scene.strands["a"])
        scene.said.append("b3")

    a, b = scene.add("a", first), scene.add("b", second)
    a.resume()
    assert scene.said == ["a1", "b1"]
    b.resume()  # It hands over to the first, which finishes.
    assert (a.finished, b.finished) == (True, False)
    b.resume()
    assert b.finished
    assert scene.said == ["a1", "b1", "b2", "a2", "b3"]


@every_kind
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_it_raises_is_its_failure_and_reaches_nobody_else(kind: Kind, error: BaseException) -> None:
    scene = Scene(kind)

    def body(me: Any) -> None:
        me.pause()
        raise error

    strand = scene.add("a", body)
    strand.resume()
    strand.resume()
    assert strand.finished
    assert strand.failure is error


@every_kind
def test_breaking_off_unwinds_it_though_it_catches_every_exception_and_calls_us_on_its_way_out(kind: Kind) -> None:
    scene = Scene(kind)

    def body(me: Any) -> None:
        try:
            while True:
                try:
                    me.pause()
                except Exception:  # As bad programs do.
                    continue
        finally:
            scene.said.append("cleaned up")
            for call in (me.check, me.pause):
                with pytest.raises(StrandBroken):
                    call()
            scene.said.append("left")

    strand = scene.add("a", body)
    strand.resume()
    strand.check()
    strand.break_off()
    assert strand.finished
    assert strand.failure is None
    assert scene.said == ["cleaned up", "left"]
    strand.break_off()  # It may be done again.


@every_kind
def test_one_that_never_started_is_broken_off_without_starting(kind: Kind) -> None:
    scene = Scene(kind)
    scene.add("a", lambda me: scene.said.append("never")).break_off()
    assert scene.said == []


def test_the_kind_is_chosen_by_what_is_installed_and_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strand_module, "_GREENLETS", True)
    for said, kind in (("", GreenletStrand), ("0", GreenletStrand), ("1", ThreadStrand)):
        monkeypatch.setenv("WORLDLINE_THREADS", said)
        assert strand_kind() is kind
    monkeypatch.delenv("WORLDLINE_THREADS")
    assert strand_kind() is GreenletStrand
    monkeypatch.setattr(strand_module, "_GREENLETS", False)
    assert strand_kind() is ThreadStrand


def test_without_greenlet_there_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "greenlet", None)  # As if it weren't installed.
    source = Path(strand_module.__file__).with_name("strand.py")
    name = "strand_without_greenlet"
    spec = spec_from_file_location(name, source, loader=SourceFileLoader(name, str(source)))
    assert spec is not None
    assert spec.loader is not None
    alone = module_from_spec(spec)
    spec.loader.exec_module(alone)
    assert alone.strand_kind() is alone.ThreadStrand
    strand = alone.ThreadStrand("a", lambda: None)
    strand.resume()
    assert strand.finished
