"""The course of a world: what is loaded when, who simulates it, and that neither shows in the states."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.world.small_worlds import Listener, course_of, level, local, played, run, runner, stage, thing
from worldline.model.errors import InternalError, ModelError, PeerError, UsageError
from worldline.world.course import LOOK_EVERY, Course
from worldline.world.description import WorldDescription
from worldline.world.engines.engine import Extent
from worldline.world.engines.kinematic import KinematicEngine, KinematicGroup
from worldline.world.hosting import LocalExchange
from worldline.world.orders import StepAck, StepOrder, decode_ack, decode_order, encode

SECONDARIES = (("a",), ("a", "b"), ("c", "a", "b"))


def hall() -> WorldDescription:
    """Two robots go through three levels, each with a thing in it; a third stays outside."""
    return stage(
        [
            runner("east", 0.0, 0.0, 2.0),
            runner("west", 9.0, 3.0, -3.0),
            runner("waits", 30.0),
            thing("first", 1.0, 9.0),
            thing("second", 4.0, 9.0),
            thing("both", 5.0, 9.0),
            thing("wall", 4.0, 20.0, static=True),
            thing("always", 0.0, 20.0),
        ],
        [level("A", 1.0, ["first"]), level("B", 4.0, ["second", "both", "wall"]), level("C", 7.0, ["both"])],
        ["east", "west", "waits"],
    )


@pytest.mark.parametrize(("names", "run_ahead"), list(zip(SECONDARIES, (64, 3, LOOK_EVERY), strict=True)))
def test_every_state_hash_is_the_same_for_any_number_of_secondaries(names: tuple[str, ...], run_ahead: int) -> None:
    alone = played(hall(), 500)
    assert played(hall(), 500, names, run_ahead=run_ahead).story == alone.story
    assert len({state_hash for *_, state_hash in alone.story}) == 500


def test_models_are_loaded_after_the_step_in_which_a_performer_has_touched_their_level() -> None:
    world = stage([runner("east", 0.0, 0.0, 1.0), thing("inside", 2.0, 9.0)], [level("A", 2.0, ["inside"])], ["east"])
    loads = played(world, 500).loads
    # The level is from 1 to 3 m, and its buffer ends at 3.5; a point that is 1 mm wide touches a little earlier.
    assert loads == {0: ("east",), 100: ("east", "inside"), 351: ("east",)}
    assert played(world, 500, ("a", "b"), run_ahead=LOOK_EVERY).loads == loads


def test_what_is_loaded_again_is_as_in_the_file() -> None:
    """A crate that drifts is back where it was when the level is entered for the second time."""
    world = stage(
        [
            runner("east", 0.0, 0.0, 1.0, {300: (-4.0, 0.0, 0.0), 400: (1.0, 0.0, 0.0)}),
            runner("drifts", 2.0, 9.0, 0.1),
        ],
        [level("A", 2.0, ["drifts"], size=1.0, buffer=0.0)],
        ["east"],
    )
    listener = Listener(every=1)
    run(course_of(world, ("a",), listener), local(world), 700)
    seen = [iteration for iteration, poses in listener.poses.items() if "drifts" in poses]
    first = [iteration for iteration in seen if iteration - 1 not in seen]
    assert len(first) == 3
    assert len({listener.poses[iteration]["drifts"] for iteration in first}) == 1


def test_a_performer_in_two_levels_brings_both_to_one_secondary_and_is_there_once() -> None:
    world = stage(
        [runner("between", 2.5), runner("left", 1.0), runner("right", 4.0), runner("apart", 20.0)],
        [level("A", 1.0, size=3.2), level("B", 4.0, size=3.2)],
        ["between", "left", "right", "apart"],
    )
    course = course_of(world, ("a", "b"))
    orders = course.begin(1)
    assert course.cast.levels.of("between") == ("A", "B")
    assert course.affinities == {"between": "a", "left": "a", "right": "a", "apart": "b"}
    movers = [mover for order in orders.values() for group in order.load for mover in group.movers]
    assert sorted(movers) == ["apart", "between", "left", "right"]


def acked(exchange: LocalExchange, orders: dict[str, StepOrder]) -> list[StepAck]:
    acks: list[StepAck] = []

    def take(ack: StepAck) -> bool:
        acks.append(ack)
        return False

    exchange.trade(orders, take)
    return acks


@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_acks_that_come_late_twice_or_from_elsewhere_change_nothing(seed: int) -> None:
    random = Random(seed)
    names = ("a", "b", "c")
    world = hall()
    exchange = local(world, names)
    listener = Listener()
    course = course_of(world, names, listener, run_ahead=random.choice((1, 4)))
    old: list[StepAck] = []
    while course.iteration < 60:
        orders = course.begin(60 - course.iteration)
        acks = acked(exchange, orders)
        noise = [structs.replace(ack, sender="stranger") for ack in acks]
        noise += [structs.replace(ack, round=ack.round + random.choice((-1, 1))) for ack in acks]
        said = [*acks, *acks, *noise, *random.sample(old, min(len(old), 5))]
        random.shuffle(said)
        for ack in said:
            course.take(decode_ack(encode(ack)))
        assert course.missing == ()
        course.settle()
        old += acks
    assert listener.story == played(world, course.iteration).story


def test_an_ack_that_doesnt_fit_its_order_is_its_senders_fault() -> None:
    world = hall()
    course = course_of(world)
    (ack,) = acked(local(world), course.begin(1))
    with pytest.raises(PeerError, match="secondary 'a' doesn't say what was asked of it, in step 0"):
        course.take(structs.replace(ack, steps=[]))


def test_secondaries_get_only_what_they_need() -> None:
    world = hall()
    names = ("a", "b", "c", "d", "e", "f", "g")
    exchange = local(world, names)
    course = course_of(world, names)
    orders = course.begin(1)
    busy = set(course.affinities.values())
    assert set(orders) == busy != set(names)
    for name, order in orders.items():
        movers = [mover for group in order.load for mover in group.movers]
        assert movers == [mover for mover, host in course.affinities.items() if host == name] or len(movers) > 1
        assert decode_order(encode(order)) == order
    exchange.trade(orders, course.take)
    course.settle()
    quiet = course.begin(1)
    assert all(not (order.load or order.unload) for order in quiet.values())


def test_running_ahead_stops_at_looks_and_at_the_limit() -> None:
    world = stage([runner("alone", 0.0, 0.0, 1.0)], [], ["alone"])
    exchange = local(world)
    course = course_of(world, run_ahead=LOOK_EVERY)
    (order,) = course.begin(3).values()
    assert (order.steps, order.look) == (3, 0)
    exchange.trade({"a": order}, course.take)
    course.settle()
    (order,) = course.begin(100).values()
    assert (order.steps, order.look) == (LOOK_EVERY - 3, LOOK_EVERY)


def overrun() -> tuple[Course, LocalExchange]:
    """Return a course of which a secondary has gone seven steps, after the fourth of which a level is entered."""
    world = stage([runner("east", -0.04, 0.0, 1.0), thing("inside", 2.0, 9.0)], [level("A", 2.0, ["inside"])], ["east"])
    exchange = local(world)
    course = run(course_of(world, run_ahead=7), exchange, 100)
    (order,) = course.begin(100).values()
    assert order.steps == 7
    exchange.trade({"a": order}, course.take)
    course.settle()
    assert course.iteration == 104
    return course, exchange


def test_where_levels_change_secondaries_go_back() -> None:
    course, exchange = overrun()
    (order,) = course.begin(100).values()
    assert (order.back, order.iteration, order.steps, order.look) == (True, 100, 4, LOOK_EVERY)
    exchange.trade({"a": order}, course.take)
    course.settle()
    assert course.iteration == 104
    (order,) = course.begin(100).values()
    assert (order.back, order.iteration, order.steps) == (False, 104, 7)
    assert [group.name for group in order.load] == ["inside"]


def test_a_repeated_step_that_differs_is_noticed() -> None:
    course, exchange = overrun()
    (ack,) = acked(exchange, course.begin(100))
    wrong = [*ack.steps[:-1], structs.replace(ack.steps[-1], hash_part=bytes(16))]
    course.take(structs.replace(ack, steps=wrong))
    with pytest.raises(InternalError, match="step 104 was computed twice and differs"):
        course.settle()


class FragileEngine(KinematicEngine):
    """Can't compute the model "far" beyond a step."""

    breaks_at = 105

    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> KinematicGroup:
        group = super().build(movers, statics)
        advance = group.advance

        def break_down(steps: int = 1) -> None:
            if "far" in group.movers and group.step + steps >= self.breaks_at:
                step = group.step + steps
                raise ModelError(f"model 'far' broke, in step {step}", advice="hold it", entity="far", step=step)
            advance(steps)

        group.advance = break_down  # type: ignore[method-assign]
        return group


@pytest.mark.parametrize(("names", "run_ahead"), list(zip(SECONDARIES, (1, 7, 50), strict=True)))
def test_a_model_that_cant_be_computed_ends_the_run_by_name(names: tuple[str, ...], run_ahead: int) -> None:
    """Also where levels change in between, and what was computed ahead doesn't count."""
    world = stage(
        [runner("east", -0.02, 0.0, 1.0), runner("far", 30.0), thing("inside", 2.0, 9.0)],
        [level("A", 2.0, ["inside"])],
        ["east", "far"],
    )
    listener = Listener()
    course = Course(FragileEngine(world), names, listener, run_ahead=run_ahead)
    with pytest.raises(ModelError, match=r"^at 1.05s: model 'far' broke, in step 105 \(hold it\)$") as error:
        run(course, LocalExchange(lambda: FragileEngine(world), names), 5000)
    assert (error.value.facts["entity"], error.value.facts["step"]) == ("far", 105)
    assert listener.story == played(world, 104).story


class HastyEngine(KinematicEngine):
    """Says in a step that "far" is too fast, unless somebody looked right before; in a later one it is, whoever did."""

    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> KinematicGroup:
        group = super().build(movers, statics)
        advance, extents = group.advance, group.extents
        looked = -1

        def look(steps: int) -> dict[str, Extent]:
            nonlocal looked
            looked = group.step
            return extents(steps)

        def hurry(steps: int = 1) -> None:
            step = group.step + steps
            if "far" in group.movers and (step == 140 or (step == 105 and looked != 104)):
                raise ModelError("model 'far' is too fast", entity="far", step=step, too_fast=True)
            advance(steps)

        group.advance, group.extents = hurry, look  # type: ignore[method-assign]
        return group


@pytest.mark.parametrize(("names", "run_ahead"), list(zip(SECONDARIES, (1, 4, 10), strict=True)))
def test_before_somebody_is_too_fast_it_looks_again(names: tuple[str, ...], run_ahead: int) -> None:
    world = stage([runner("near", 0.0, 0.0, 1.0), runner("far", 30.0, 0.0, 1.0)], [], ["near", "far"])
    listener = Listener()
    course = Course(HastyEngine(world), names, listener, run_ahead=run_ahead)
    with pytest.raises(ModelError, match=r"at 1\.4s: model 'far' is too fast"):
        run(course, LocalExchange(lambda: HastyEngine(world), names), 500)
    assert listener.story == played(world, 139).story


def test_of_several_failures_in_one_step_the_first_groups_counts() -> None:
    """Whoever has which group: a secondary stops at its first failure, so the others mustn't come first either."""

    class Hopeless(FragileEngine):
        breaks_at = 3

        def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> KinematicGroup:
            group = KinematicEngine.build(self, movers, statics)

            def break_down(steps: int = 1) -> None:
                entity = max(group.movers)
                raise ModelError(f"{entity} broke", entity=entity, step=1)

            group.advance = break_down  # type: ignore[method-assign]
            return group

    world = stage([runner("a", 0.0), runner("z", 0.1), runner("b", 50.0), runner("c", 90.0)], [], ["a", "z", "b", "c"])
    for names in SECONDARIES:
        course = Course(Hopeless(world), names)
        with pytest.raises(ModelError, match="z broke"):
            run(course, LocalExchange(lambda: Hopeless(world), names), 1)


def test_a_round_is_as_long_as_its_acks_fit_into_messages() -> None:
    many = stage([runner(f"r{number}", 100.0 * number) for number in range(3)], [], ["r0", "r1", "r2"])
    course = course_of(many, run_ahead=10)
    course._ack_size = lambda _: 2**21  # type: ignore[method-assign]
    (order,) = course.begin(1000).values()
    assert order.steps == 2


def test_a_world_in_which_nothing_moves_still_steps() -> None:
    listener = played(stage([thing("rock", 0.0, static=True)]), 30, ("a", "b"))
    assert len(listener.story) == 30
    assert listener.loads == {0: ("rock",)}


def test_it_must_run_ahead_by_something() -> None:
    with pytest.raises(UsageError, match="can't run ahead by 0 steps"):
        course_of(hall(), run_ahead=0)
