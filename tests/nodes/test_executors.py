"""The same run, whatever executes it: inline or in two processes. Builds and hash seeds: see `make test-plain`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nodes.chatter import Chatter, Listener, Plain, Ticker, chat, pair, started
from worldline.model.errors import ModelError, UsageError
from worldline.model.latency import Uniform
from worldline.model.links import Link
from worldline.nodes import NodeRecord, Scheduler, always, at_end, eventually
from worldline.nodes.algorithms.bellman_ford import BellmanFord
from worldline.nodes.trace import text_of


def test_two_processes_give_the_same_digest_and_the_nodes_come_back() -> None:
    digest, nodes = chat("inline")
    assert chat("processes(2)") == (digest, nodes)
    assert any(lives == 2 for _, lives, _, _ in nodes)


@at_end("all have heard of all")
def heard(run: Scheduler) -> bool:
    return all(distance is not None for node in run.nodes for distance, _ in node.routing)


@at_end("nobody has heard of anybody")
def unheard(run: Scheduler) -> bool:
    return not heard.check(run)


def test_properties_of_the_end_are_judged_there_too() -> None:
    started("ring:4", BellmanFord, link="1s", properties=[heard]).run(executor="processes(2)")
    with pytest.raises(ModelError, match="property failed: nobody has heard of anybody"):
        started("ring:4", BellmanFord, link="1s", properties=[unheard]).run(executor="processes(2)")


@pytest.mark.parametrize("when", [always, eventually])
def test_properties_that_are_looked_at_after_every_event_need_the_inline_executor(when: Any) -> None:
    with pytest.raises(UsageError, match="need the inline executor"):
        pair(Listener, properties=[when("x")(lambda _: True)]).run(executor="processes(2)")


def test_traces_are_the_same_in_processes() -> None:
    traces = []
    for executor in ("inline", "processes(2)", "processes(3)"):
        taken: list[NodeRecord] = []
        faults = ["400ms crash 1", "800ms recover 1", "1s down 0 2", "1500ms up 0 2", "1s partition 3", "1600ms repair"]
        link = Link(latency=Uniform(5 * 10**7, 10**9), loss_at_receiver=0.1, duplication=0.3)
        run = started("clique:4", Chatter, link=link, faults=faults, trace=taken.append)
        run.run("3s", executor=executor)
        assert run.records == []
        traces.append(text_of(taken, times=True))
    assert traces[0] == traces[1] == traces[2]
    assert "1 <- *: Crash" in traces[0]
    assert "*: Partition 3" in traces[0]


def test_who_was_looked_at_before_runs_in_processes_as_well() -> None:
    run = Scheduler(2, [(0, 1)], Listener, link="1s")
    run.start(0)
    assert len(run.nodes) == 2
    run.run(executor="processes(2)")
    assert run.node(1).seen == [(10**9, "hello by 0")]


def test_nodes_that_derive_from_nothing_come_back() -> None:
    run = started("ring:4", Plain, link="1s")
    run.run(executor="processes(2)")
    assert [node.total for node in run.nodes] == [1 + 2 + 4, 1 + 1 + 3, 1 + 2 + 4, 1 + 1 + 3]


def test_errors_come_back_with_the_nodes_name() -> None:
    with pytest.raises(ModelError, match=r"node 0 at 0s: .*unexpected keyword argument 'color'"):
        pair(Chatter, parameters={"color": "red"}).run(executor="processes(2)")


def test_a_run_in_processes_is_one() -> None:
    run = pair(Ticker)
    result = run.run("1s", executor="processes(2)")
    assert (run.now, run.digest) == (10**9, result.digest)
    other = pair(Ticker)
    assert other.run("1s").digest == result.digest
    with pytest.raises(UsageError, match="is over"):
        run.run("2s")
    with pytest.raises(UsageError, match="from its start"):
        other.run("2s", executor="processes(2)")


def test_classes_that_workers_cannot_load_are_refused() -> None:
    class Local(Listener):
        pass

    with pytest.raises(UsageError):
        pair(Local).run(executor="processes(2)")
