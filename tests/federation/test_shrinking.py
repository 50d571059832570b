"""What is left of a federation's failure, where leaving one thing out changes the rest."""

from __future__ import annotations

import pytest

from worldline import MS, Federation, Network, Participant, Program, link
from worldline.federation.shrinking import ShrunkFederation, shrink_federation
from worldline.federation.trial import FederationTrial
from worldline.search import Property, Story, at_end

COUNT = 50


def send(me: Participant) -> None:
    for _ in range(COUNT):
        me.publish("x", b"")
        me.advance(by="10ms")


def hear(me: Participant) -> None:
    for _ in me.messages():
        pass


@at_end("all arrive")
def all_arrive(story: Story) -> bool:
    return len(story.received("x")) == COUNT


def test_draws_that_a_fault_has_prevented_are_shrunk_too() -> None:
    """Without the crash it fails as well, but by the loss of a message that was never sent with it."""
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link("5ms", loss=0.05)), faults=("45ms crash a",), until="1s")
    trial = FederationTrial(make=lambda: federation, properties=(all_arrive,))
    shrunk = shrink_federation(trial)
    assert shrunk.faults == ()
    assert shrunk.draws is not None
    ((name, is_lost),) = shrunk.draws.items()
    assert is_lost
    assert int(name.rpartition("/")[2]) > 5


@at_end("b is never without news for long")
def is_steady(story: Story) -> bool:
    heard = [each.at for each in story.received("x", by="b")]
    return all(after - before < 45 * MS for before, after in zip(heard, [*heard[1:], story.now], strict=True))


def shrunk_with(*faults: str, runs_max: int = 1_000, must: Property = is_steady) -> ShrunkFederation:
    """Shrink a run in which b is without news, with latencies that don't matter."""
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=["seen"], subscribes=["x"])}
    network = Network(default=link("uniform(1ms, 2ms)"))
    federation = Federation(programs, network, faults=faults, until="490ms")
    trial = FederationTrial(make=lambda: federation, properties=(must,))
    return shrink_federation(trial, runs_max=runs_max, seconds_max=None)


@pytest.mark.parametrize(
    ("faults", "left"),
    [
        (["103ms hang a 300ms"], "200ms hang a 35ms"),
        (["103ms hang a"], "200ms hang a 35ms"),
        (["103ms hang a", "403ms resume a", "150ms hang b 20ms", "160ms dropout b 200ms"], "200ms hang a 35ms"),
        (["103ms dropout a", "403ms restore a"], "200ms dropout a 31ms"),
        (["103ms slow b 90ms 300ms"], "111ms slow b 35ms 1ms"),
        (["103ms crash a 300ms"], "200ms crash a 35ms"),
        (["a sends x 8: hang a 3s"], "a sends x 8: hang a 45ms"),
    ],
)
def test_a_fault_lasts_only_as_long_as_it_takes(faults: list[str], left: str) -> None:
    shrunk = shrunk_with(*faults)
    assert (list(map(str, shrunk.faults)), shrunk.draws) == ([left], {})
    assert shrunk.faults_before == len([each for each in faults if "re" not in each])
    assert shrunk.runs < 100


def test_who_crashes_for_good_does_not_recover_when_that_is_shrunk() -> None:
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link("5ms")), faults=("45ms crash a",), until="1s")
    shrunk = shrink_federation(FederationTrial(make=lambda: federation, properties=(all_arrive,)))
    assert list(map(str, shrunk.faults)) == ["100ms crash a"]


@pytest.mark.parametrize("runs_max", [0, 1, 5, 20])
def test_what_is_found_in_so_many_runs_still_fails(runs_max: int) -> None:
    shrunk = shrunk_with("103ms hang a 300ms", "150ms slow b 100ms", runs_max=runs_max)
    assert shrunk.runs <= runs_max
    assert str(shrunk.trial.run().failure) == str(shrunk.failure)


@at_end("the first thing to befall anybody is no hang")
def never_hangs(story: Story) -> bool:
    return "hang" not in story.befell()[0].text  # Where nothing does, that raises.


def test_what_a_check_cannot_judge_is_no_shorter_form_of_a_failure() -> None:
    shrunk = shrunk_with("103ms hang a 300ms", "450ms hang b 3ms", must=never_hangs)
    assert len(shrunk.faults) == 1
