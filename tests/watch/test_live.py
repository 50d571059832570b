"""A run that goes on, as pages see it: what it tells, and how pages hold it."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from queue import Queue

import pytest

from tests.watch.test_tape import told
from worldline import Federation, Network, Program, Server, link, run
from worldline.federation.operator import Operator
from worldline.federation.participant.participant import Participant
from worldline.history.observer import MEASURE
from worldline.history.outcome import Status
from worldline.model.errors import UsageError
from worldline.watch.live import Holding, LiveRun, Operating
from worldline.world import World
from worldline.world.console import InteractionsLog, interacted, replay

LEVELS = Path(__file__).parents[2] / "examples" / "world" / "levels.sdf"


def ping(me: Participant) -> None:
    for number in range(20):
        me.publish("ball", b'{"n":%d}' % number)
        me.advance(by="2ms")


def pong(me: Participant) -> None:
    for _ in me.messages():
        me.log("caught")


def federation() -> Federation:
    programs = {"ping": Program(ping, publishes=["ball"]), "pong": Program(pong, subscribes=["ball"])}
    return Federation(programs, network=Network(default=link("1ms")), until="50ms")


def test_a_page_is_told_what_a_recording_would_be() -> None:
    live = LiveRun({"name": "tennis"})
    plain = run(federation())
    outcome = run(federation(), observer=live.observer, watch=live.watching(None))
    live.over(outcome)
    head, rows = told(live.show.news({}))
    assert outcome.digest == plain.digest
    assert head["status"]["digest"] == outcome.digest.hex()
    assert head["status"]["phase"] == "over"
    assert [(row[0], row[1]) for row in rows] == [(2e6 * n, 2e6 * n + 1e6) for n in range(20)]
    assert len(head["notes"]) == 20
    assert live.show.message(3)["payload"] == '{"n":3}'
    assert live.show.signal("ball", "n")["lines"][0]["values"] == list(range(20))


def test_a_run_is_held_and_stepped_where_it_tells_its_status() -> None:
    holding, reached = Holding(), []
    held_at = {time: threading.Event() for time in range(0, 100, 10)}
    assert holding.order("pause", {}) == "paused"

    def go_on() -> None:
        for time, held in held_at.items():
            reached.append(time)
            holding.wait(Status(time=time), held.set)

    thread = threading.Thread(target=go_on)
    thread.start()
    assert held_at[0].wait(60)
    assert reached == [0]
    holding.order("step", {"to": "30ns"})
    assert held_at[30].wait(60)
    assert reached == [0, 10, 20, 30]
    holding.order("step", {})
    assert held_at[40].wait(60)
    with pytest.raises(UsageError, match="can't 'end'"):
        holding.order("end", {})
    holding.order("resume", {})
    thread.join(60)
    assert reached[-1] == 90
    assert not held_at[50].is_set()


def test_a_page_does_something_to_a_world_and_a_replay_repeats_it() -> None:
    log, live = InteractionsLog(), LiveRun({"name": "levels"})
    asked: list[str] = []

    def ask(line: str) -> str:
        """Order it as a page does, from another thread, while the world runs."""
        orders: Queue[str] = Queue()

        def order() -> None:
            try:
                orders.put(live.show.order("do", {"line": line}))
            except UsageError as error:
                orders.put(str(error))

        thread = threading.Thread(target=order)
        thread.start()
        while thread.is_alive():
            hear(Status(time=world.time))
        return orders.get()

    def between() -> None:
        if world.step == 100:
            asked.extend(map(ask, ("command vehicle_red 1 0 0", "step 3", "fly away", "where vehicle_red")))

    with World(LEVELS, engine="kinematic", spectators=[log]) as world:
        live.takes(partial(interacted, world))
        hear = live.watching(None)
        world.play("300ms", between=between)
        outcome = world.end()
    with World(LEVELS, engine="kinematic") as untouched:
        untouched.play("300ms")
        usual = untouched.end()
    assert asked[0] == "step 100 (100ms): command vehicle_red 1 0 0"
    assert "is no interaction" in asked[1]
    assert "no command 'fly'" in asked[2]
    assert asked[3].startswith("vehicle_red: at ")
    assert outcome.digest != usual.digest
    assert replay(World(LEVELS, engine="kinematic"), log.history).digest == outcome.digest


def test_a_world_on_a_page_offers_only_what_it_does_there() -> None:
    with World(LEVELS, engine="kinematic") as world:
        listed = {line.split()[0] for line in interacted(world, "help").splitlines()}
        assert {"reset", "command", "pose", "status", "help"} <= listed
        assert not listed & {"play", "pause", "step", "run", "quit"}
        assert interacted(world, "help pose").startswith("pose MODEL")
        for line in ("help quit", "quit"):
            with pytest.raises(UsageError, match=r"is no interaction \(pause, step and resume have"):
                interacted(world, line)
        assert interacted(world, "status") == f"time 0s, step 0, iteration 0, state hash {world.state_hash.hex()}"


def test_a_command_that_is_no_text_is_refused() -> None:
    holding = Holding()
    holding.carry_out = str.upper
    for line in (None, 3, ["reset"]):
        with pytest.raises(UsageError, match="a command is a line of text"):
            holding.order("do", {"line": line})


def test_a_command_that_the_run_never_comes_to_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.watch.live._DONE_S", 0.01)
    holding = Holding()
    holding.carry_out = str.upper
    with pytest.raises(UsageError, match="doesn't come to it"):
        holding.order("do", {"line": "quit"})


def test_what_is_measured_last_is_listed_however_much_there_was() -> None:
    live = LiveRun({"name": "learner"})
    live.observer.began("pilot", 0)
    for at in range(300):
        live.observer.noted("pilot", MEASURE, at, b'{"reward":1.0}')
    live.observer.noted("pilot", MEASURE, 300, b'{"return":300.0}')
    live.observer.finish(301)
    assert live.show.fields().fields == {MEASURE: ["reward", "return"]}


def test_a_page_that_looks_and_drives_keeps_no_connection_for_which_the_end_would_wait() -> None:
    connected: list[Operator] = []
    with Server(federation().plan()) as server:

        def connect() -> Operator:
            connected.append(Operator(server.address))
            return connected[-1]

        operating = Operating(connect)
        assert operating.look()["phase"] == "starting"
        assert operating.look()["missing"] == ["ping", "pong"]  # What was found a moment ago.
        assert operating.order("pause", {}) == "paused at 0s"
        assert operating.look()["phase"] == "paused"
    assert [each._socket.fileno() for each in connected] == [-1] * 3
