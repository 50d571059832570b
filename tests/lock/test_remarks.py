"""What a run that ended well has to tell: a standstill, and topics that no participant publishes on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from tests.federation.transports import run_over_sockets
from worldline import Federation, Participant, Program, run
from worldline.federation.outcome import Outcome
from worldline.lock import Join, Leave, Next, Subscription
from worldline.lock.arbiter import Arbiter
from worldline.model import FOREVER, PeerError, plan

EXECUTORS: list[Callable[[Federation], Outcome]] = [run, run_over_sockets]


def listen(me: Participant) -> None:
    for _ in me.messages():
        continue


def late(me: Participant) -> None:
    me.advance(to="42ms")
    listen(me)


def once(me: Participant) -> None:
    me.publish("pose", b"")


def clock(me: Participant) -> None:
    while not me.ended:
        me.advance(by="10ms")


def federation(until: str | None = None, **programs: Program) -> Federation:
    return Federation(programs, until=until)


WHY = ", because all waited for a message and none could send one: "
CONTROLLER = Program(listen, publishes=["power"], subscribes=["pose"])
PLANT = Program(late, publishes=["pose"], subscribes=["power"])


@pytest.mark.parametrize("execute", EXECUTORS)
def test_everybody_waiting_for_everybody_is_said(execute: Callable[[Federation], Outcome]) -> None:
    outcome = execute(federation(plant=PLANT, controller=CONTROLLER))
    assert outcome.remarks() == ["ended at 42ms" + WHY + "controller waited for pose; plant waited for power"]
    outcome = execute(federation("1s", plant=PLANT, controller=CONTROLLER))
    assert outcome.remarks() == ["ended early at 42ms" + WHY + "controller waited for pose; plant waited for power"]
    assert outcome.standstill is not None
    assert (outcome.standstill.at, outcome.standstill.end) == (42_000_000, 10**9)


@pytest.mark.parametrize("execute", EXECUTORS)
@pytest.mark.parametrize("end", [None, "1s"])
def test_somebody_who_was_done_or_went_on_to_the_end_makes_it_an_ordinary_end(
    execute: Callable[[Federation], Outcome], end: str | None
) -> None:
    assert not execute(federation(end, camera=Program(once), logger=CONTROLLER)).remarks()
    assert not execute(federation("1s", clock=Program(clock), plant=PLANT, controller=CONTROLLER)).remarks()


@pytest.mark.parametrize("execute", EXECUTORS)
def test_what_would_have_arrived_at_the_end_is_no_standstill(execute: Callable[[Federation], Outcome]) -> None:
    def play(me: Participant) -> None:
        if me.name == "ann":
            me.publish("ball", b"")
        for _ in me.messages():
            me.publish("ball", b"")

    players = {name: Program(play, publishes=["ball"], subscribes=["ball"]) for name in ("ann", "bob")}
    assert execute(federation("20ms", **players)).remarks() == []


def test_a_stop_isnt_a_standstill() -> None:
    def stop(me: Participant) -> None:
        me.stop(at="20ms")
        listen(me)

    outcome = run(federation(operator=Program(stop, controls=True), plant=CONTROLLER))
    assert outcome.times == {"operator": 20_000_000, "plant": 20_000_000}
    assert outcome.standstill is None


@pytest.mark.parametrize("execute", EXECUTORS)
def test_a_topic_that_nobody_publishes_on_is_said_with_the_nearest(execute: Callable[[Federation], Outcome]) -> None:
    misspelled = Program(listen, publishes=[], subscribes=["powr", "light"])
    outcome = execute(federation(controller=Program(once), plant=misspelled, display=misspelled, other=CONTROLLER))
    assert outcome.remarks() == [
        "display, plant subscribed to 'light', on which none published",
        "display, plant subscribed to 'powr', on which none published (did you mean 'power'?)",
    ]


def test_what_is_published_undeclared_or_declared_and_never_published_is_no_remark() -> None:
    def subscribe(me: Participant) -> None:
        me.subscribe("alarm")

    outcome = run(
        federation(
            camera=Program(once),
            brief=Program(subscribe, publishes=["alarm"], subscribes=["pose"]),
            other=Program(subscribe, publishes=[]),
        )
    )
    assert outcome.unheard == ()


def test_remarks_dont_depend_on_the_schedule() -> None:
    said = []
    for names in permutations(("a", "b", "c")):
        arbiter = Arbiter(plan(["a", "b", "c"]))
        for name in names:
            arbiter.handle(name, Join((), (Subscription(f"to {name}"),)))
        for name in names:
            arbiter.handle(name, Next(FOREVER))
        for name in names:
            arbiter.handle(name, Leave(0, waited=0))
        said.append([str(arbiter.standstill()), *map(str, arbiter.remarks.unheard())])
    assert said[0][0] == "ended at 0s" + WHY + "a waited for to a; b waited for to b; c waited for to c"
    assert all(one == said[0] for one in said)


def test_nobody_can_have_waited_since_a_time_that_it_hasnt_reached() -> None:
    arbiter = Arbiter(plan(["a"]))
    arbiter.handle("a", Join())
    for waited in (-1, 1):
        with pytest.raises(PeerError, match="it can't have waited since"):
            arbiter.handle("a", Leave(0, waited=waited))
    arbiter.handle("a", Leave(0, waited=0))


def test_a_long_list_is_cut() -> None:
    names = [f"p{number:02}" for number in range(12)]
    outcome = run(federation(**{name: Program(listen, publishes=[], subscribes=["x"]) for name in names}))
    assert outcome.remarks()[1] == (
        "p00, p01, p02, p03, p04, p05, p06, p07, and 4 more subscribed to 'x', on which none published"
    )
    silent = run(federation(deaf=Program(listen)))
    assert silent.remarks() == ["ended at 0s" + WHY + "deaf waited, but subscribed to nothing"]


def test_where_very_much_is_unheard_nobody_waits_for_the_names_that_were_meant() -> None:
    topics = [f"robot/{number}/pose" for number in range(3000)]
    misspelled = Program(listen, publishes=[], subscribes=[topic.removesuffix("e") for topic in topics])
    outcome = run(federation("10ms", camera=Program(clock, publishes=topics), plant=misspelled))
    assert len(outcome.unheard) == 3000
    assert outcome.remarks()[8:] == ["nor did any publish on 2,992 more"]
