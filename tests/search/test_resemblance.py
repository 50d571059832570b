"""Failures that are the same, and failures that aren't: what is compared of a reason is its shape."""

from __future__ import annotations

import pytest
from msgspec import structs

from worldline.model.errors import WorldlineError
from worldline.nodes import Algorithm, Event, Node, Protocol, Scheduler, Start, Trial, always, at_end
from worldline.search.shrinking import likeness_of, shape_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 and 1 are inside at the same time", "0 and 3 are inside at the same time"),
        ("2 and 1 are inside", "0, 1 and 3 are inside"),
        ("without one: [0, 1]", "without one: [2]"),
        ("without one: [0, 1]", "without one: []"),
        ("{1: [2, 3], 4: {}} are left", "{} are left"),
        ("3 hasn't decided", "0 and 1 haven't decided"),
        ("1 message is missing", "12 messages are missing"),
        ("node 1 waits", "node 17 waits"),
        ("nodes 1 and 2: late", "node 3: late"),
        ("it took 1.5ms", "it took 3s"),
        ("it took -1.25e-7 of 1,000", "it took 2 of 3"),
        ("stamped <1 0 0> and <0 2 0>", "stamped <1 0> and <0 2>"),
        ("(1, 0) came before (2, 3)", "(0, 0) came before (7, 1)"),
        ("heard 'hello' from n3", 'heard "it\'s" from n4'),
        ("has chosen None", "has chosen 5"),
    ],
)
def test_who_and_how_many_makes_no_difference(one: str, other: str) -> None:
    assert shape_of(one) == shape_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 and 1 are inside", "2 was never inside"),
        ("1 doesn't hold what 2 has", "1 doesn't know what 2 has"),
        ("it isn't there, and 'that' isn't either", "it isn't here, and 'that' isn't either"),
        ("there are 2", "there are 2 too many"),
        ("(too late) 2", "(too early) 2"),
        ("", "1"),
    ],
)
def test_words_do(one: str, other: str) -> None:
    assert shape_of(one) != shape_of(other)


class Grumbles(Node):
    """Fails as it is told to."""

    def __init__(self, *given: object, how: str = "") -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.how = how

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.set_timer("1s")
            case Protocol():
                pass
            case _ if self.how == "lookup":
                raise LookupError(f"nothing of {self.id}")
            case _ if self.how == "value":
                raise ValueError(f"nothing of {self.id}")
            case _ if self.how == "elsewhere":
                raise ValueError(f"nothing of {self.id}")
            case _ if self.how == "link":
                self.send("x", 17)


@always("nobody is wrong")
def rightful(run: Scheduler) -> bool:
    """Complain at once, or at the end only."""
    how = run.node(0).how
    assert how != "at once", "node 0 is in the wrong"
    assert how != "late" or run.last is not None, "node 0 is in the wrong"
    return True


@at_end("it is well")
def well(run: Scheduler) -> bool:
    return run.node(0).how != "ends badly"  # type: ignore[no-any-return]


@at_end("all can be judged")
def judged(run: Scheduler) -> bool:
    return bool(1 / (run.node(0).how != "can't be judged"))


GRUMBLES = Algorithm(name="grumbles", node=Grumbles, topology="line:2", properties=(rightful, well, judged))


def failure(how: str, **options: object) -> WorldlineError:
    found = Trial(algorithm=GRUMBLES, parameters={"how": how}, **options).run().failure  # type: ignore[arg-type]
    assert found is not None
    return found


class MuteError(Exception):
    """Has no text that could be had."""

    def __str__(self) -> str:
        raise RuntimeError("that is broken too")


def test_an_error_whose_text_cannot_be_had_is_like_another_one() -> None:
    class Mute(Node):
        def execute(self, event: Event) -> None:
            raise MuteError

    mute = structs.replace(GRUMBLES, node=Mute, properties=())
    one, other = (Trial(algorithm=mute, topology=shape).run().failure for shape in ("line:2", "ring:5"))
    assert one is not None
    assert other is not None
    assert likeness_of(one) == likeness_of(other) != likeness_of(failure("value"))


HOWS = ("lookup", "value", "elsewhere", "link", "at once", "late", "ends badly", "can't be judged")


def test_what_has_another_cause_is_another_failure_and_where_it_happens_makes_no_difference() -> None:
    """Another property, another time to judge it, another exception, the same one from another line."""
    likes = [likeness_of(failure(how)) for how in HOWS]
    assert len(set(likes)) == len(HOWS)
    assert likes == [likeness_of(failure(how, topology="ring:5", seed=3)) for how in HOWS]


def test_an_address_in_memory_is_a_value_like_any_other() -> None:
    assert shape_of("it is <list at 0xffff98c432c0>") == shape_of("it is <list at 0x7f00a1>")
