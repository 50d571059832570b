"""Properties with a time limit: what must hold soon, or soon after something else; and what participants say of
themselves."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline import Federation, Participant, Program, link
from worldline.federation.inprocess.trial import FederationTrial
from worldline.model.errors import ConfigurationError
from worldline.model.links import Network
from worldline.nodes import Node, Scheduler
from worldline.search import Happening, Property, Story, Violation, eventually, leads_to
from worldline.search.properties import BrokenCheck


def happening(at: int, text: str, who: str = "a", kind: str = "noted") -> Happening:
    return Happening(at, who, kind, "log", text.encode(), who)  # type: ignore[arg-type]


def judged(happenings: list[Happening], stated: Property, end: int, *, is_cut: bool = False) -> Story:
    story = Story(is_cut=is_cut)
    story.judge(happenings, [stated], {"a": end})
    return story


def is_noted(text: str) -> object:
    return lambda story: bool(story.last and story.last.text == text)


def soon(within: int | None) -> Property:
    return eventually("it comes", within=within)(is_noted("it"))


def test_eventually_may_hold_until_its_time_is_over() -> None:
    judged([happening(5, "it")], soon(5), 9)
    with pytest.raises(Violation, match=r"^at 5ns: property never held within 5ns: it comes$"):
        judged([happening(6, "it")], soon(5), 9)
    with pytest.raises(Violation, match=r"^at 5ns: property never held within 5ns: it comes$"):
        judged([], soon(5), 9)
    with pytest.raises(Violation, match=r"^at 3ns: property never held: it comes$"):
        judged([], soon(5), 3)


def test_the_story_of_what_came_too_late_ends_in_time() -> None:
    story = Story()
    with pytest.raises(Violation):
        story.judge([happening(2, "other"), happening(6, "it")], [soon(5)], {"a": 9})
    assert [each.text for each in story.happenings] == ["other"]


answered = leads_to("what is asked is answered", after=is_noted("ask"), within=4)(is_noted("answer"))


def test_what_leads_to_something_does_so_each_time() -> None:
    judged([happening(1, "ask"), happening(5, "answer"), happening(7, "ask"), happening(7, "answer")], answered, 20)
    with pytest.raises(
        Violation,
        match=r"^b at 11ns: property failed: what is asked is answered: due by b since 7ns, it didn't come within 4ns$",
    ):
        judged([happening(1, "ask"), happening(5, "answer"), happening(7, "ask", "b")], answered, 20)


def test_what_is_due_after_the_run_was_ended_is_not_judged_and_what_never_comes_is() -> None:
    asked = [happening(7, "ask")]
    judged(asked, answered, 10, is_cut=True)
    with pytest.raises(Violation, match=r"^a at 10ns: .*: due by a since 7ns, it didn't come within 4ns$"):
        judged(asked, answered, 10)
    with pytest.raises(Violation, match=r"^a at 11ns: "):
        judged(asked, answered, 12, is_cut=True)


def test_a_check_may_tell_apart_what_it_is_asked_for() -> None:
    @leads_to("each number comes back", after=lambda story: bool(story.last and story.last.text.startswith("+")))
    def each_back(story: Story, since: Happening) -> bool:
        assert any(note.text == f"-{since.text[1:]}" for note in story.noted()), f"{since.text[1:]} is missing"
        return True

    there = [happening(1, "+3"), happening(2, "+4"), happening(3, "-4"), happening(4, "-3")]
    judged(there, each_back, 9)
    with pytest.raises(Violation, match=r"due by a since 1ns, it didn't come: 3 is missing$"):
        judged(there[:3], each_back, 9)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["ask", "answer", "other"])), max_size=12), st.booleans())
def test_it_is_what_one_would_say_of_the_whole_run(steps: list[tuple[int, str]], is_cut: bool) -> None:
    now, told = 0, []
    for step, text in steps:
        now += step
        told.append(happening(now, text))
    end = now + 2
    # Each ask, an answer at the same place in the story or later, no later than 4 ns on.
    fails = any(
        each.text == "ask"
        and not any(other.text == "answer" and other.at <= each.at + 4 for other in told[place:])
        and not (is_cut and each.at + 4 > end)
        for place, each in enumerate(told)
    )
    try:
        judged(told, answered, end, is_cut=is_cut)
    except Violation:
        assert fails
    else:
        assert not fails


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"@leads_to of 'x' has no moments: after=3"):
        leads_to("x", after=3)
    with pytest.raises(ConfigurationError, match="isn't a time for @eventually to hold within"):
        eventually("x", within="soon")
    with pytest.raises(BrokenCheck, match="returned nothing"):
        judged([happening(1, "ask")], leads_to("x", after=lambda _: None)(is_noted("it")), 3)


def test_it_travels_to_other_processes() -> None:
    stated = leads_to("x", after=is_it, within="2s")(is_it)
    assert pickle.loads(pickle.dumps(stated)) == stated
    assert str(stated) == "each time: x, within 2s"


def is_it(story: Story) -> bool:
    return not story.happenings


# -- What participants say of themselves


def test_a_state_is_what_was_last_published_or_noted() -> None:
    story = judged(
        [
            happening(1, 'INFO role=leader term=3 name="a b"'),
            happening(2, '{"term": 4, "peers": ["b"]}', "b"),
            happening(3, "role=follower"),
            happening(4, '{"up": true}', "b", "sent"),
            happening(5, "x=y", "c", "received"),
        ],
        eventually("any")(lambda _: True),
        9,
    )
    assert story.state("a") == {"role": "follower", "term": 3, "name": "a b"}
    assert story.state("b") == {"term": 4, "peers": ["b"], "log": {"up": True}}
    assert story.state("c") == story.state("nobody") == {}


@pytest.mark.parametrize("fault", ["5ns crash a", "b sends x: crash a 1ms", "5ns kill a"])
def test_a_participant_that_dies_has_said_nothing_any_more(fault: str) -> None:
    told = [happening(1, "role=leader"), happening(5, fault, kind="befell")]
    assert judged(told, eventually("any")(lambda _: True), 9).state("a") == {}
    told[1] = happening(5, "5ns hang a", kind="befell")
    assert judged(told, eventually("any")(lambda _: True), 9).state("a") == {"role": "leader"}


# -- In runs


def federation() -> Federation:
    def asking(me: Participant) -> None:
        for _ in range(3):
            me.publish("ask", b"1")
            me.advance(by="20ms")

    def answering(me: Participant) -> None:
        while not me.ended:
            for _ in me.next():
                me.advance(by="4ms")
                me.publish("answer", b"1")

    return Federation(
        {
            "client": Program(asking, publishes=["ask"]),
            "server": Program(answering, publishes=["answer"], subscribes=["ask"]),
        },
        network=Network(default=link(latency="2ms")),
        until="50ms",
    )


@pytest.mark.parametrize(("within", "fails_at"), [("6ms", None), ("5ms", 5_000_000)])
def test_a_federation_is_judged_by_when_things_happened(within: str, fails_at: int | None) -> None:
    stated = leads_to(
        "a server answers", after=lambda s: s.last.kind == "sent" and s.last.topic == "ask", within=within
    )(lambda s: s.last is not None and s.last.kind == "sent" and s.last.topic == "answer")
    failure = FederationTrial(make=federation, properties=(stated,)).run().failure
    assert (None if failure is None else failure.at) == fails_at
    if failure is not None:
        assert failure.participant == "client"


class Echo(Node):
    """Node 0 asks, and node 1 answers."""

    got = 0

    def execute(self, event: object) -> None:
        self.got += 1
        if self.id == 0 and self.got == 1:
            self.send("ask", 0)
        elif self.id == 1 and self.got == 2:
            self.send("answer", 0)


@pytest.mark.parametrize(("within", "fails_at"), [("3ms", None), ("1ms", 1_000_000)])
def test_nodes_are_judged_by_the_same_rule(within: str, fails_at: int | None) -> None:
    stated = leads_to("it is answered", after=lambda run: run.last == 0 and run.node(0).got == 1, within=within)(
        lambda run: run.node(0).got == 2
    )
    scheduler = Scheduler(2, [(0, 1)], Echo, link="1ms", properties=[stated])
    scheduler.start_all_nodes()
    if fails_at is None:
        scheduler.run()
        return
    with pytest.raises(
        Violation,
        match=r"^node 0 at 1ms: .* since .*, it didn't come within 1ms",
    ) as raised:
        scheduler.run()
    assert raised.value.at == fails_at
