"""The story of a run: one order, whatever the order of the journals, and properties that are judged on the way."""

from __future__ import annotations

import pytest

from worldline.history.journal import Befell, Journal, Noted
from worldline.model.message import Message
from worldline.search import Story, Violation, always, at_end, eventually
from worldline.search.properties import BrokenCheck, Happening, told_by


def message(sender: str, sequence: int, topic: str, payload: bytes, sent: int, arrival: int) -> Message:
    return Message(arrival, sent, sender, sequence, 0, topic, payload)


def journals() -> dict[str, Journal]:
    a, b = Journal(keep=True), Journal(keep=True)
    a.note_sent(2, "x", b"1")
    b.note_received(7, [message("a", 0, "x", b"1", 2, 7)])
    b.note_sent(7, "y", b"2")
    a.note_received(9, [message("b", 0, "y", b"2", 7, 9)])
    return {"b": b, "a": a}


def brief(happenings: list[Happening]) -> list[tuple[int, str, str, str]]:
    return [(each.at, each.who, each.kind, each.topic) for each in happenings]


def test_it_is_told_in_the_order_of_times_names_and_own_doings() -> None:
    found = told_by(journals())
    assert brief(found) == [
        (2, "a", "sent", "x"),
        (7, "b", "received", "x"),
        (7, "b", "sent", "y"),
        (9, "a", "received", "y"),
    ]
    assert (found[1].sender, found[0].value) == ("a", 1)
    backwards = dict(reversed(journals().items()))
    assert brief(told_by(backwards)) == brief(found)


def test_what_one_notes_stands_where_it_did_so() -> None:
    journal = Journal(keep=True)
    journal.note_aside(Noted(7, "before"))
    journal.note_received(7, [message("a", 0, "x", b"1", 2, 7)])
    journal.note_aside(Noted(7, "heard x"))
    journal.note_aside(Befell(7, "a bit is flipped"))
    journal.note_sent(7, "y", b"2")
    journal.note_fate(7, "7ns crash b")
    journal.note_aside(Noted(7, "7ns crash b"))  # Whatever it says, it is the program's own line.
    journal.note_received(7, [message("a", 1, "x", b"3", 2, 7)])
    assert [(each.kind, each.text) for each in told_by({"b": journal})] == [
        ("noted", "before"),
        ("received", "1"),
        ("noted", "heard x"),
        ("befell", "a bit is flipped"),
        ("sent", "2"),
        ("befell", "7ns crash b"),
        ("noted", "7ns crash b"),
        ("received", "3"),
    ]


def judged(*properties: object) -> Story:
    story = Story()
    story.judge(told_by(journals()), properties, {"a": 9, "b": 10})  # type: ignore[arg-type]
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
