"""A run that goes on, as pages see it: what it tells, and how pages hold it."""

from __future__ import annotations

import threading

import pytest

from tests.watch.test_tape import told
from worldline import Federation, Network, Program, link, run
from worldline.federation.participant.participant import Participant
from worldline.history.outcome import Status
from worldline.model.errors import UsageError
from worldline.watch.live import Holding, KeptMessages, LiveRun


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
    outcome = run(federation(), observer=live, watch=live.watching(None))
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


def test_only_the_latest_payloads_are_kept() -> None:
    kept = KeptMessages(bytes_max=10_000)
    kept.add([(at, "ann", "pose", bytes(100), [], at) for at in range(1000)])
    row = {"sender": "ann", "topic": "pose"}
    assert kept.payload({**row, "sent": 0, "number": 0}) is None
    assert kept.payload({**row, "sent": 999, "number": 999}) == bytes(100)
