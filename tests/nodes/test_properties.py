"""Properties: when they are judged, and what is said if they don't hold."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.nodes.chatter import Listener, Ticker, pair, ran_pair
from worldline.model.errors import ModelError, WorldlineError
from worldline.model.time import MS, SECOND
from worldline.nodes import Scheduler, Violation, always, at_end, eventually


def judged(*properties: Any, node: Any = Listener, until: str | None = None, **options: Any) -> Scheduler:
    return ran_pair(node, properties=properties, **options, until=until)


def heard(run: Scheduler) -> bool:
    return any("hello" in text for node in run.nodes for _, text in node.seen)


# -- When


def test_always_is_judged_after_every_event_and_at_the_end() -> None:
    looked: list[int] = []

    @always("it looks")
    def look(run: Scheduler) -> bool:
        looked.append(run.now)
        return True

    judged(look)
    assert looked == [0, 0, SECOND, SECOND, SECOND]


def test_at_the_end_nobody_has_acted_last() -> None:
    looked: list[int | None] = []

    @always("it looks")
    def look(run: Scheduler) -> bool:
        looked.append(run.last)
        return True

    judged(look)
    assert looked == [0, 1, 1, 0, None]


def test_an_always_that_fails_says_when_and_at_whom() -> None:
    with pytest.raises(Violation) as raised:
        judged(always("nobody hears anything")(lambda run: not heard(run)))
    error = raised.value
    assert str(error) == "node 1 at 1s: property failed: nobody hears anything"
    assert (error.at, error.participant, error.facts["property"]) == (SECOND, "node 1", "nobody hears anything")


def test_always_ends_the_run_at_once() -> None:
    run = pair(Ticker, properties=[always("no third tick")(lambda run: run.now < 300 * MS)])
    with pytest.raises(Violation):
        run.run("10s")
    assert run.now == 300 * MS


def test_eventually_holds_if_it_holds_once() -> None:
    @eventually("it holds at the second look, and never again")
    def once(run: Scheduler, looks: dict[int, None]) -> bool:
        looks[len(looks)] = None
        return len(looks) == 2

    judged(once)
    judged(eventually("somebody hears something")(heard))


def test_eventually_may_hold_at_the_end_only() -> None:
    run = Scheduler(2, [(0, 1)], Listener, properties=[eventually("it is late")(lambda run: run.now == 5 * SECOND)])
    run.start_all_nodes()
    run.run("5s")


def test_an_eventually_that_never_holds() -> None:
    with pytest.raises(Violation, match=r"at 1s: property never held: it is late$") as raised:
        judged(eventually("it is late")(lambda run: run.now > 2 * SECOND))
    assert not raised.value.facts["during"]


def test_at_the_end_is_judged_once() -> None:
    looked: list[int] = []

    @at_end("it looks")
    def look(run: Scheduler) -> bool:
        looked.append(run.now)
        return True

    judged(look)
    assert looked == [SECOND]


def test_an_end_that_is_not_good() -> None:
    with pytest.raises(Violation, match=r"^at 500ms: property failed: somebody has heard$"):
        judged(at_end("somebody has heard")(heard), until="500ms")


def test_a_run_step_by_step_has_an_end_too() -> None:
    run = pair(Listener, properties=[at_end("it never ends")(lambda run: False)])
    steps = iter(run.schedule, False)
    with pytest.raises(Violation):
        list(steps)


# -- Why


def test_an_assertion_says_why() -> None:
    def check(run: Scheduler) -> bool:
        for node in run.nodes:
            assert len(node.seen) < 2, f"{node.id} has seen {len(node.seen)}\nthings"
        return True

    with pytest.raises(Violation, match=r"^node 1 at 1s: property failed: little is seen: 1 has seen 2$"):
        judged(always("little is seen")(check))
    with pytest.raises(Violation, match=r"^at 1s: property failed: little is seen: 0 has seen 2$"):
        judged(at_end("little is seen")(check))


def test_eventually_says_what_was_wrong_in_the_end() -> None:
    def check(run: Scheduler) -> bool:
        assert run.now > 5 * SECOND, f"it is {run.now}"
        return True

    with pytest.raises(Violation, match="property never held: it gets late: it is 1000000000"):
        judged(eventually("it gets late")(check))


@pytest.mark.parametrize("when", [always, eventually, at_end])
def test_a_check_that_raises_is_named(when: Any) -> None:
    def check(run: Scheduler) -> bool:
        raise KeyError("oops")

    with pytest.raises(WorldlineError, match="no trouble"):
        judged(when("no trouble")(check))


def test_what_is_no_property_is_refused() -> None:
    with pytest.raises(WorldlineError):
        judged(heard)


# -- Memory


class Counts:
    """Holds as long as it is asked no more than four times in its life."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, run: Scheduler) -> bool:
        self.asked += 1
        return self.asked <= 5


def test_a_check_with_memory_is_new_for_each_run() -> None:
    counts = always("few events")(Counts)
    for _ in range(3):
        judged(counts)
    with pytest.raises(Violation):
        judged(counts, node=Ticker, until="1s")


# -- Traveling


@at_end("somebody has heard")
def somebody(run: Scheduler) -> bool:
    return heard(run)


def test_a_check_can_take_a_dict_that_is_empty_when_a_run_begins() -> None:
    @always("it counts")
    def counts(run: Scheduler, seen: dict[str, int]) -> bool:
        seen["looks"] = seen.get("looks", 0) + 1
        assert seen["looks"] < 6, "it remembers another run"
        return True

    judged(counts)
    judged(counts)


def test_properties_travel_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(somebody)) is somebody
    counts = always("few")(Counts)
    assert pickle.loads(pickle.dumps(counts)) == counts


def test_violations_travel_to_other_processes() -> None:
    with pytest.raises(Violation) as raised:
        judged(always("never")(lambda run: False))
    error = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(error, Violation)
    assert isinstance(error, ModelError)
    assert (str(error), error.facts) == (str(raised.value), raised.value.facts)


def test_a_property_reads_as_a_sentence() -> None:
    assert str(somebody) == "at the end: somebody has heard"
    assert str(always("x")(heard)) == "always: x"


def test_what_a_check_asks_for_in_a_wrong_way_is_told_with_its_line() -> None:
    def check(run: Scheduler) -> bool:
        return bool(run.node(77))

    with pytest.raises(
        ModelError, match=r"the check of 'x' raised UsageError: there is no node 77, in test_properties.py, line \d+"
    ):
        judged(always("x")(check))


def test_a_crash_is_judged_too() -> None:
    everybody = always("everybody is up")(lambda run: len(run.up) == run.num_nodes)
    with pytest.raises(Violation, match="node 1 at 5s: property failed: everybody is up"):
        pair(Listener, properties=[everybody], faults=["5s crash 1", "6s recover 1"]).run()
