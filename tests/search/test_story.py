"""The story of a run: one order, whatever the order in which it is told, and properties that are judged on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from worldline.history.observer import DOWN, LOG, Observer
from worldline.history.plain import encoded
from worldline.search import Story, Violation, always, at_end, eventually
from worldline.search.properties import BrokenCheck, Happening, StoryObserver


def tell_a(observer: Observer) -> None:
    observer.sent("a", 0, "x", 2, b"1", 7)
    observer.arrives("a", 0, "b", 7, 0, None)


def tell_b(observer: Observer) -> None:
    observer.sent("b", 0, "y", 7, b"2", 9)
    observer.arrives("b", 0, "a", 9, 0, None)


def told(*tell: Callable[[Observer], None]) -> list[Happening]:
    observer = StoryObserver()
    for each in tell or (tell_a, tell_b):
        each(observer)
    return observer.happenings()


def brief(happenings: list[Happening]) -> list[tuple[int, str, str, str]]:
    return [(each.at, each.who, each.kind, each.topic) for each in happenings]


def test_it_is_told_in_the_order_of_times_names_and_own_doings() -> None:
    found = told()
    assert brief(found) == [
        (2, "a", "sent", "x"),
        (7, "b", "received", "x"),
        (7, "b", "sent", "y"),
        (9, "a", "received", "y"),
    ]
    assert (found[1].sender, found[0].value) == ("a", 1)
    assert brief(told(tell_b, tell_a)) == brief(found)


def test_what_one_notes_stands_where_it_did_so() -> None:
    def tell(observer: Observer) -> None:
        for line in (
            {"text": "before"},
            {"text": "fault: a bit is flipped", "kind": "fault"},
            {"text": "7ns crash b"},  # Whatever it says, it is the program's own line.
        ):
            observer.noted("b", LOG, 7, encoded(line))
        observer.noted("b", "worldline/measure", 7, b'{"speed": 3}')
        observer.sent("b", 0, "y", 7, b"2", 9)
        observer.noted("b", LOG, 7, encoded({"text": "fault: 7ns crash b", "kind": "down"}))

    assert [(each.kind, each.text) for each in told(tell_a, tell)] == [
        ("sent", "1"),
        ("received", "1"),
        ("noted", "before"),
        ("befell", "a bit is flipped"),
        ("noted", "7ns crash b"),
        ("sent", "2"),
        ("befell", "7ns crash b"),
    ]


def test_what_is_taken_back_was_not_received() -> None:
    def tell(observer: Observer) -> None:
        observer.sent("a", 0, "x", 2, b"1", 9)
        for receiver, at in (("b", 7), ("c", 7), ("c", 8), ("d", 9)):
            observer.arrives("a", 0, receiver, at, 0, None)
        observer.arrives("a", 0, "b", 7, 0, DOWN)
        observer.closed("c", "x", 8)
        observer.closed("d", "y", 1)

    assert brief(told(tell)) == [(2, "a", "sent", "x"), (7, "c", "received", "x"), (9, "d", "received", "x")]


def judged(*properties: object) -> Story:
    story = Story()
    story.judge(told(), properties, {"a": 9, "b": 10})  # type: ignore[arg-type]
    return story


def test_always_is_asked_after_everything_that_happens() -> None:
    asked: list[int] = []
    judged(always("it is watched")(lambda story: asked.append(len(story.happenings)) or True))
    assert asked == [1, 2, 3, 4, 4]
    with pytest.raises(Violation, match=r"^b at 7ns: property failed: nobody says y$"):
        judged(always("nobody says y")(lambda story: not story.sent("y")))


def test_eventually_has_to_hold_once() -> None:
    judged(eventually("a hears of y")(lambda story: story.last is not None and story.last.topic == "x"))
    with pytest.raises(Violation, match=r"^at 10ns: property never held: b hears of y$"):
        judged(eventually("b hears of y")(lambda story: bool(story.received("y", by="b"))))


def test_the_end_is_about_everybody() -> None:
    story = judged(at_end("all are there")(lambda story: story.last is None and story.ends == {"a": 9, "b": 10}))
    assert [each.topic for each in story.sent(by="a")] == ["x"]
    assert story.actor is None


def test_what_is_asked_for_is_a_list_of_its_own() -> None:
    story = judged()
    story.received().clear()
    assert brief(story.received()) == [(7, "b", "received", "x"), (9, "a", "received", "y")]
    assert brief(story.received("y")) == brief(story.received(by="a")) == brief(story.received("y", by="a"))
    assert story.received("y", by="b") == story.noted() == []


def kind_of(module: str, name: str) -> type:
    """Return a type whose objects are true, as Python sees it."""
    return type(name, (), {"__module__": module})


@pytest.mark.parametrize("kind", [kind_of("numpy", "bool"), kind_of("numpy", "bool_")])
def test_a_check_may_return_a_truth_of_numpy(kind: type) -> None:
    judged(at_end("it is true")(lambda _: kind()))


@pytest.mark.parametrize("kind", [kind_of("mine", "bool"), kind_of("mine", "bool_"), kind_of("numpy", "ndarray"), int])
def test_nothing_else_that_a_check_returns_is_a_truth_whatever_its_name(kind: type) -> None:
    with pytest.raises(BrokenCheck, match=r"it has to return True or False"):
        judged(at_end("it is true")(lambda _: kind()))
