"""What is left of a federation's failure, where leaving one thing out changes the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from worldline import MS, Federation, Network, Participant, Program, link
from worldline.federation.inprocess.trial import FederationTrial, shrink_federation, written_out
from worldline.model.faults import ENDED_BY, as_faults
from worldline.search import Property, Story, always, at_end
from worldline.search.shrinking import Shrunk, WrittenDraws

COUNT = 50


def send(me: Participant) -> None:
    for _ in range(COUNT):
        me.publish("x", b"")
        me.advance(by="10ms")


def hear(me: Participant) -> None:
    for _ in me.messages():
        me.log("heard")


@at_end("all arrive")
def all_arrive(story: Story) -> bool:
    return len(story.received("x")) == COUNT


def test_draws_that_a_fault_has_prevented_are_shrunk_too() -> None:
    """Without the crash it fails as well, but by the loss of a message that was never sent with it."""
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link("5ms", loss=0.05)), faults=("45ms crash a",), until="1s")
    trial = FederationTrial(make=lambda: federation, properties=(all_arrive,))
    shrunk = shrink_federation(trial)
    assert shrunk.trial.faults == ()
    assert shrunk.trial.written is not None
    ((name, is_lost),) = shrunk.trial.written.items()
    assert is_lost
    assert name == "loss/x/a/b/0"  # The same happens to an earlier message.


def ask(me: Participant) -> None:
    for _ in range(12):
        asked = me.now
        me.publish("ask", b"")
        for message in me.advance(by="50ms"):
            if message.arrival - asked > 19 * MS:
                me.log("late")


def answer(me: Participant) -> None:
    for _ in me.messages():
        me.publish("answer", b"")


@always("answers come in time")
def in_time(story: Story) -> bool:
    return not story.noted()


def test_it_happens_to_earlier_messages() -> None:
    """It takes two slow messages of one round: they are those of the first."""
    programs = {
        "a": Program(ask, publishes=["ask"], subscribes=["answer"]),
        "b": Program(answer, publishes=["answer"], subscribes=["ask"]),
    }
    federation = Federation(programs, Network(default=link("uniform(1ms, 10ms)")), until="1s")
    slow = {"latency/ask/a/b/7": 9_900_000, "latency/answer/b/a/7": 9_800_000, "latency/ask/a/b/2": 3_000_000}
    trial = FederationTrial(make=lambda: federation, properties=(in_time,), draws=WrittenDraws(slow))
    shrunk = shrink_federation(trial)
    assert sorted(shrunk.trial.written or {}) == ["latency/answer/b/a/0", "latency/ask/a/b/0"]
    assert len(shrunk.records) < shrunk.records_before / 4


@at_end("b is never without news for long")
def is_steady(story: Story) -> bool:
    heard = [each.at for each in story.noted(by="b")]
    return all(after - before < 45 * MS for before, after in zip(heard, [*heard[1:], story.now], strict=True))


def trial_with(*faults: str, must: Property = is_steady) -> FederationTrial:
    """Return a trial with latencies that don't matter to whether b is without news."""
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=["seen"], subscribes=["x"])}
    network = Network(default=link("uniform(1ms, 2ms)"))
    federation = Federation(programs, network, faults=faults, until="490ms")
    return FederationTrial(make=lambda: federation, properties=(must,))


def shrunk_with(*faults: str, runs_max: int = 1_000, must: Property = is_steady) -> Shrunk[FederationTrial]:
    return shrink_federation(trial_with(*faults, must=must), runs_max=runs_max, seconds_max=None)


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
        (["a sends x 8: hang a"], "a sends x 8: hang a 45ms"),
    ],
)
def test_a_fault_lasts_only_as_long_as_it_takes(faults: list[str], left: str) -> None:
    shrunk = shrunk_with(*faults)
    assert (list(map(str, shrunk.trial.faults or ())), shrunk.trial.written) == ([left], {})
    assert shrunk.faults_before == len([each for each in faults if "re" not in each])
    assert shrunk.runs < 100


@at_end("b gets something")
def is_heard(story: Story) -> bool:
    return len(story.noted(by="b")) > 0


@at_end("nothing befalls anybody")
def is_uneventful(story: Story) -> bool:
    return not story.befell()


@pytest.mark.parametrize(
    ("faults", "must", "left"),
    [
        (["490ns hang b"], is_heard, ["1ms hang b"]),
        (["0s hang b 490000001ns"], is_heard, ["1ns hang b 490ms"]),
        (["45ms crash a", "45ms recover a"], is_uneventful, ["45ms crash a", "45ms recover a"]),
        (["45ms crash a", "45ms recover a", "103ms hang a", "403ms resume a"], is_steady, ["300ms hang a 35ms"]),
    ],
)
def test_a_fault_that_nothing_shorter_can_stand_for_stays_as_it_was_given(
    faults: list[str], must: Property, left: list[str]
) -> None:
    """Who hangs until the end acts then, and is given what has arrived; and who crashes is down for some time."""
    assert list(map(str, shrunk_with(*faults, must=must).trial.faults or ())) == left


def retold(trial: FederationTrial) -> list[tuple[int, str, str, bytes]]:
    """Return what happens in a trial, but not how its faults are written."""
    return [(each.at, each.who, each.kind, b"" if each.kind == "befell" else each.payload) for each in trial.told()[1]]


@pytest.mark.parametrize(("who", "topic"), [("a", "x"), ("b", "seen")])
@pytest.mark.parametrize("begins", ["crash {}", "hang {}", "slow {} 30ms", "dropout {}", "dropout {} {}"])
@pytest.mark.parametrize("lasts", ["", "20ms", "387ms", "387000001ns", "3s", "until 200ms", "until 489999999ns"])
def test_faults_that_say_themselves_how_long_they_last_make_the_same_run(
    who: str, topic: str, begins: str, lasts: str
) -> None:
    fault, _, ends = f"103ms {begins.format(who, topic)} {lasts}".partition(" until ")
    over = [f"{ends} {ENDED_BY[begins.split()[0]]} {who}"] if ends else []
    trial = trial_with(fault, *over, "450ms dropout a")
    given = as_faults(trial.federation().faults)
    alone = written_out(given)
    assert all(each.verb in ENDED_BY for each in alone)
    assert retold(replace(trial, faults=alone)) == retold(trial)
    assert ends or alone == given


def test_who_crashes_for_good_does_not_recover_when_that_is_shrunk() -> None:
    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link("5ms")), faults=("45ms crash a",), until="1s")
    shrunk = shrink_federation(FederationTrial(make=lambda: federation, properties=(all_arrive,)))
    assert list(map(str, shrunk.trial.faults or ())) == ["490ms crash a"]


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
    assert len(shrunk.trial.faults or ()) == 1


def test_every_run_is_counted() -> None:
    """Besides those that are tried there are the first, the last, and one that sees what is drawn without a fault."""
    begun = 0

    def count(me: Participant) -> None:
        nonlocal begun
        begun += 1
        send(me)

    programs = {"a": Program(count, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link("uniform(1ms, 9ms)", loss=0.05)), until="1s")
    shrunk = shrink_federation(FederationTrial(make=lambda: federation, properties=(all_arrive,)))
    assert begun <= shrunk.runs + 3
