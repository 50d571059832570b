"""What is left of a federation's failure, where leaving one thing out changes the rest."""

from __future__ import annotations

from worldline import Federation, Network, Participant, Program, link
from worldline.federation.shrinking import shrink_federation
from worldline.federation.trial import FederationTrial
from worldline.search import Story, at_end

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
