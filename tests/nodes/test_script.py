"""Scripts: a run whose deliveries are written down is the same run; without an entry, one message is different."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nodes.chatter import Chatter, Listener, Ticker, pair, ran_pair, started
from tests.nodes.test_scheduler import scenarios
from worldline.model.errors import ModelError
from worldline.model.links import link
from worldline.model.time import MS, SECOND
from worldline.nodes.faults import VERBS
from worldline.nodes.trace import Script, script_of

LOSSY = link("uniform(1ms, 1s)", loss=0.3, duplication=0.3)
FIFO = link("uniform(1ms, 1s)", fifo=True)
BOTH = link("uniform(1ms, 1s)", fifo=True, duplication=0.5)


@settings(max_examples=25)
@given(scenarios(verbs=tuple(verb for verb in VERBS if verb != "add")), st.sampled_from((LOSSY, FIFO, BOTH, "1s")))
def test_a_script_of_a_run_is_that_run(scenario: dict[str, Any], over: Any) -> None:
    first = started(node=Chatter, link=over, trace=True, **scenario)
    first.run()
    script = script_of(first.records, usual=5)
    again = started(node=Chatter, link=over, trace=True, script=script, **scenario)
    again.run()
    assert again.digest == first.digest
    assert [str(record) for record in again.records if not record.reason.startswith("lost")] == [
        str(record) for record in first.records if not record.reason.startswith("lost")
    ]
    assert started(node=Chatter, link=over, script=script, **scenario).run().digest == first.digest
    assert script_of(again.records, usual=5).exceptions == script.exceptions


def test_that_holds_for_neighbors_that_come_back_too() -> None:
    options: dict[str, Any] = {"faults": ["2s remove 0 1", "3s add 0 1"], "link": "uniform(1ms, 1s)", "trace": True}
    first = pair(Ticker, **options)
    first.run("5s")
    again = pair(Ticker, script=script_of(first.records, usual=5), **options)
    again.run("5s")
    assert again.digest == first.digest


def test_what_is_not_written_down_takes_the_usual_time() -> None:
    run = ran_pair(Listener, script=Script(7 * MS, {(0, 1, 0): (2 * SECOND,)}))
    assert run.node(0).seen[1] == (7 * MS, "hello by 0")
    assert run.node(1).seen[1] == (2 * SECOND, "hello by 0")


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.data())
def test_without_an_entry_only_what_comes_after_it_changes(seed: int, data: st.DataObject) -> None:
    first = started("ring:4", Chatter, link=LOSSY, trace=True, seed=seed)
    first.run()
    script = script_of(first.records, usual=10 * SECOND)
    if not script.exceptions:
        return
    gone = data.draw(st.sampled_from(sorted(script.exceptions)))
    rest = {message: delays for message, delays in script.exceptions.items() if message != gone}
    other = started("ring:4", Chatter, link=LOSSY, trace=True, seed=seed, script=Script(10 * SECOND, rest))
    other.run()
    sendings = [r for r in first.records if r.kind == "sent" and (r.node, r.peer) == gone[:2]]
    until = min((*sendings[gone[2]].arrivals, sendings[gone[2]].at + 10 * SECOND))

    def before(run: Any) -> list[tuple[Any, ...]]:
        return [(r.at, r.kind, r.node, r.peer, r.text) for r in run.records if r.at < until]

    assert before(other) == before(first)
    same = [r for r in other.records if r.kind == "sent" and (r.node, r.peer) == gone[:2]][gone[2]]
    assert same.arrivals == (same.at + 10 * SECOND,)


@pytest.mark.parametrize("delay", [0, -5])
def test_a_script_cannot_be_faster_than_time(delay: int) -> None:
    with pytest.raises(ModelError, match="node 0 at 0s"):
        pair(Listener, script=Script(5, {(0, 1, 0): (delay,)})).run()
