"""Situations that look like a deadlock: each names the one that is really in the way, and says how."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.lock.table import Table
from worldline.lock import Advance, Arbiter, Barrier, Cause, Invite, Join, Leave, Next, Publish, Stop, Subscription
from worldline.lock.why.reasons import Activity, Situation, situation_of
from worldline.lock.why.words import Hold, as_plain, chains, headline, hints, holds, in_words, tightest_loop
from worldline.model import FOREVER, MS, Network, link, plan
from worldline.pictures.waits import situation_svg

NETWORK = Network(default=link("5ms"), control_latency=3 * MS)


def listens_to(*topics: str, publishes: str | None) -> Join:
    return Join(
        publishes=None if publishes is None else (publishes,),
        subscribes=tuple(Subscription(topic) for topic in topics),
    )


def table(**joins: Join) -> Table:
    return Table(*joins, network=NETWORK, joins=joins)


def seen(arbiter: Arbiter, activities: Mapping[str, Activity] | None = None, **more: object) -> Situation:
    status = arbiter.status()
    return situation_of(arbiter, "cell", activities or {}, events=status.events, time=status.time, **more)  # type: ignore[arg-type]


def in_a_row() -> Table:
    """c can reach b alone, and b can reach a alone."""
    return table(
        a=listens_to("of b", publishes="of a"),
        b=listens_to("of c", publishes="of b"),
        c=listens_to(publishes="of c"),
    )


# --- Eight situations, and two more ---


def test_a_chain_of_waits_leads_to_the_one_that_computes() -> None:
    made = in_a_row()
    made.say("b", Advance(10 * MS))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, {"c": Activity(seconds=3.2, process=17, condition="running")})
    assert holds(situation) == (Hold("c", Cause.SENDER, (), ("a", "b")),)
    for_a = chains(situation.whys)[0]
    assert (for_a[0].participant, [why.holder for why in for_a]) == ("a", ["b", "c"])
    lines = in_words(situation)
    assert "c holds all others: 2 participants wait for it, the longest for 0.0 s" in lines
    assert "  it is at 0s, and has been computing for 3.2 s" in lines
    assert "  its process is 17" in lines
    assert not [line for line in in_words(seen(made.arbiter)) if "process" in line]
    assert "     b → a  (of b 5ms); b may send from 10ms on, waits itself" in lines
    assert "     c → b  (of c 5ms); c may send from 0s on" in lines


def test_a_chain_of_sleepers_is_one_way_with_all_its_lookaheads() -> None:
    made = in_a_row()
    made.say("b", Next(FOREVER))
    made.say("a", Next(FOREVER))
    situation = seen(made.arbiter)
    assert holds(situation) == (Hold("c", Cause.SENDER, (), ("a", "b")),)
    assert "     c → b → a  (of c 5ms + of b 5ms = 10ms); c may send from 0s on" in in_words(situation)


def test_one_that_computes_holds_everybody() -> None:
    made = table(a=listens_to("x", publishes="y"), b=listens_to("x", publishes="y"), slow=listens_to(publishes="x"))
    made.say("a", Advance(20 * MS))
    made.say("b", Next(20 * MS))
    asleep = Activity(seconds=9.0, process=17, condition="sleeping")
    situation = seen(made.arbiter, {"slow": asleep, "a": Activity(seconds=8.0)})
    lines = in_words(situation)
    assert "slow holds all others: 2 participants wait for it, the longest for 8.0 s" in lines
    assert "  its process 17 is asleep: its program waits for something outside of the run" in lines


def test_a_process_that_is_stopped_is_said_to_be() -> None:
    made = table(a=listens_to("x", publishes="y"), b=listens_to(publishes="x"))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, {"b": Activity(seconds=9.0, process=17, condition="stopped")})
    assert holds(situation)[0].root == "b"
    assert "  its process 17 is stopped: kill -CONT 17 lets it go on" in in_words(situation)


def test_one_that_was_lost_doesnt_compute() -> None:
    made = table(a=listens_to("x", publishes="y"), b=listens_to(publishes="x"))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, {"b": Activity(seconds=8.1, lost="its connection broke")})
    lines = in_words(situation)
    assert "b was lost, and holds a: 1 participant waits for it, the longest for 0.0 s" in lines
    assert "  it was lost at 0s (its connection broke), and the run has waited for 8.1 s for it to come back" in lines
    assert "0s, lost 8.1 s" in situation_svg(situation)
    situation = seen(made.arbiter, {"a": Activity(seconds=2.0, lost="its connection broke")})
    assert any(line.startswith("a  at 0s, lost for 2.0 s: wants") for line in in_words(situation))


def test_somebody_who_isnt_there_keeps_the_run_from_beginning() -> None:
    arbiter = Arbiter(plan(["a", "b", "c"]))
    arbiter.handle("b", Join())
    situation = seen(arbiter)
    assert holds(situation) == (Hold(None, Cause.ROSTER, ("a", "c"), ("b",)),)
    assert in_words(situation) == ["cell: not started", "", "the run begins when a, c have joined", "  here: b"]


def test_before_anybody_is_there_all_are_named() -> None:
    situation = seen(Arbiter(plan(["a", "b"])))
    assert in_words(situation)[2:] == ["the run begins when a, b have joined", "  here: none"]


def test_an_operator_who_has_paused_it_before_it_begins_is_named_as_well() -> None:
    situation = seen(Arbiter(plan(["a"])), paused=0)
    told = "the run begins when a has joined; an operator has paused it, too: `worldline resume`"
    assert in_words(situation)[2] == told


def test_a_newcomer_that_was_invited_and_hasnt_come() -> None:
    made = table(a=Join(controls=True), b=Join())
    made.say("a", Invite("late", 20 * MS))
    made.say("a", Advance(30 * MS))
    made.say("b", Advance(21 * MS))
    situation = seen(made.arbiter)
    assert holds(situation) == (Hold(None, Cause.NEWCOMER, ("late",), ("a", "b")),)
    assert "late hasn't joined, and was invited for 20ms: none passes that without it" in in_words(situation)


def test_an_operator_who_has_paused_the_run() -> None:
    made = table(a=Join(), b=Join())
    made.operate(Barrier(20 * MS))
    made.say("a", Advance(21 * MS))
    made.say("b", Advance(30 * MS))
    situation = seen(made.arbiter, paused=20 * MS, speed=0.1, rate=7.0)
    assert holds(situation) == (Hold(None, Cause.BARRIER, (), ("a", "b")),)
    assert headline(situation) == "cell: paused at 20ms"
    assert headline(seen(made.arbiter, paused=25 * MS, speed=0.1, rate=7.0)).endswith("0.1× real time, 7 events/s")
    assert "an operator holds all participants at 20ms: `worldline resume` lets them go on" in in_words(situation)


def test_a_barrier_of_the_owner_isnt_an_operators() -> None:
    made = table(a=Join(), b=Join())
    made.operate(Barrier(20 * MS))
    made.say("a", Advance(21 * MS))
    (line,) = [line for line in in_words(seen(made.arbiter)) if line.startswith("the barrier")]
    assert line.startswith("the barrier at 20ms holds a: the run keeps to real time")


def test_one_that_never_sends_and_might() -> None:
    made = table(a=listens_to("alarm", publishes="y"), quiet=listens_to(publishes="alarm"))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter)
    assert holds(situation)[0].root == "quiet"
    (hint,) = hints(situation)
    assert hint.startswith("quiet has sent nothing on alarm so far, and a waits for it all the same")
    made.say("quiet", Publish("alarm", b"", 0))
    assert hints(seen(made.arbiter)) == []


def test_one_that_doesnt_declare_what_it_publishes() -> None:
    made = table(a=listens_to("alarm", publishes="y"), open=listens_to(publishes=None))
    made.say("a", Advance(20 * MS))
    (hint,) = hints(seen(made.arbiter))
    assert "doesn't declare what it publishes" in hint


def test_a_loop_in_which_messages_take_no_time_to_speak_of() -> None:
    made = Table("ping", "pong", network=Network(default=link(1)), subscribes=["ball"])
    made.say("ping", Publish("ball", b"", 0))
    made.say("ping", Next(FOREVER))
    situation = seen(made.arbiter, speed=4e-5, rate=40_000.0, with_links=True)
    (hint,) = [hint for hint in hints(situation) if "creeps" in hint]
    assert hint == (
        "time creeps: 40,000 events/s move it on by 1ns each; messages can go around ping → pong → ping in 2ns"
    )
    assert holds(situation)[0].root == "pong"


def test_where_little_happens_time_doesnt_creep() -> None:
    made = in_a_row()
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, speed=0.0, rate=5.0, with_links=True)
    assert not [hint for hint in hints(situation) if "creeps" in hint]


def test_one_that_goes_on_in_tiny_steps() -> None:
    made = table(a=listens_to("x", publishes="y"), snail=listens_to(publishes="x"))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, speed=1e-5, rate=10_000.0, with_links=True)
    (hint,) = [hint for hint in hints(situation) if "creeps" in hint]
    assert hint.endswith("10,000 events/s move it on by 1ns each; snail is the one that goes on in such small steps")


STILL = {
    "stopped": Activity(seconds=0.5, process=17, condition="stopped"),
    "lost": Activity(seconds=0.5, lost="its process was killed"),
    "computing": Activity(seconds=5.0, process=17, condition="running"),
    "behind another": Activity(behind="cam", remark="cam is running in the same process"),
}


@pytest.mark.parametrize("activity", STILL.values(), ids=STILL)
def test_one_that_stands_still_goes_on_in_no_steps(activity: Activity) -> None:
    made = table(a=listens_to("x", publishes="y"), snail=listens_to(publishes="x"))
    made.say("a", Advance(20 * MS))
    for speed in (0.0, 1e-5):
        situation = seen(made.arbiter, {"snail": activity}, speed=speed, rate=10_000.0, with_links=True)
        assert not [hint for hint in hints(situation) if "creeps" in hint]


def test_one_that_stands_still_is_named_though_nobody_waits_for_it() -> None:
    made = table(
        ping=listens_to("pong", publishes="ping"),
        pong=listens_to("ping", publishes="pong"),
        stopped=listens_to(publishes="nothing"),
    )
    made.say("ping", Advance(20 * MS))
    stopped = Activity(seconds=8.0, process=17, condition="stopped")
    situation = seen(made.arbiter, {"stopped": stopped}, speed=0.0, rate=700.0, with_links=True)
    assert [(hold.root, hold.held) for hold in holds(situation)] == [("pong", ("ping",)), ("stopped", ())]
    lines = in_words(situation)
    place = lines.index("stopped keeps none waiting, but the run doesn't end without it")
    assert lines[place + 2] == "  its process 17 is stopped: kill -CONT 17 lets it go on"
    assert not [line for line in lines if "creeps" in line]


def test_whoever_waits_longest_comes_first_and_so_does_its_holder() -> None:
    made = table(
        **{name: listens_to("x", publishes="of us") for name in ("a", "b", "c")},
        z=listens_to("y", publishes="of z"),
        quick=listens_to(publishes="x"),
        slow=listens_to(publishes="y"),
    )
    for name in ("a", "b", "c", "z"):
        made.say(name, Advance(20 * MS))
    waited = {"a": 0.1, "b": 0.3, "c": 0.2, "z": 9.0}
    situation = seen(made.arbiter, {name: Activity(seconds=seconds) for name, seconds in waited.items()})
    assert [hold.root for hold in holds(situation)] == ["slow", "quick"]
    lines = [line[0] for line in in_words(situation) if "waiting for" in line]
    assert lines == ["z", "b", "c", "a"]
    assert [hold.root for hold in holds(seen(made.arbiter))] == ["quick", "slow"]  # Nobody knows for how long.


def test_a_loop_that_is_far_longer_than_the_steps_isnt_blamed_for_them() -> None:
    made = table(a=listens_to("x", publishes="y"), snail=listens_to("y", publishes="x"))
    made.say("a", Advance(20 * MS))
    situation = seen(made.arbiter, speed=1e-6, rate=10_000.0, with_links=True)
    assert tightest_loop(situation.links)
    (hint,) = [hint for hint in hints(situation) if "creeps" in hint]
    told = "time creeps: 10,000 events/s move it on by less than 1ns each"
    assert hint == f"{told}; snail is the one that goes on in such small steps"


def test_one_that_doesnt_leave_though_the_run_is_over_for_it() -> None:
    made = table(a=listens_to("x", publishes="y"), b=Join(publishes=("x",), controls=True))
    made.say("b", Stop(10 * MS))
    made.say("a", Advance(20 * MS))
    made.leaving("b", Advance(10 * MS))
    situation = seen(made.arbiter, {"a": Activity(seconds=12.0)})
    assert holds(situation) == (Hold("a", Cause.SENDER, (), ()),)
    lines = in_words(situation)
    assert "a keeps none waiting, but the run doesn't end without it" in lines
    assert "  it has been told that the run is over, and hasn't left for 12.0 s" in lines


def test_one_that_has_come_to_the_very_end_and_doesnt_leave() -> None:
    """As in `while not self.ended: self.advance(…)`: it is told so by the last grant."""
    made = table(a=listens_to("x", publishes="y"), b=Join(publishes=("x",), controls=True))
    made.say("b", Stop(10 * MS))
    made.say("a", Advance(10 * MS))
    made.leaving("b", Advance(10 * MS))
    lines = in_words(seen(made.arbiter, {"a": Activity(seconds=12.0)}))
    assert "  it has been told that the run is over, and hasn't left for 12.0 s" in lines


def test_where_somebody_is_who_was_granted_time_ahead_isnt_known() -> None:
    made = table(a=listens_to("x", publishes="y"), slow=listens_to(publishes="x"))
    made.say("slow", Advance(30 * MS))
    made.say("a", Advance(10 * MS))  # All before 35ms is known to it: it may be there when it asks again.
    made.say("a", Advance(40 * MS))
    (line,) = [line for line in in_words(seen(made.arbiter)) if line.startswith("a ")]
    assert line.startswith("a  at 10ms or later: wants to go to 40ms")


def test_one_that_cant_run_since_another_runs_in_its_process() -> None:
    made = in_a_row()
    made.say("a", Advance(20 * MS))
    made.say("b", Next(FOREVER))
    situation = seen(made.arbiter, {"c": Activity(remark="cam, in the same process, has been running", behind="cam")})
    assert in_words(situation)[2].startswith("c holds all others, since cam runs in its process: 2 participants wait")


def test_a_guest_whose_start_lies_beyond_the_end() -> None:
    made = table(a=Join(controls=True), b=Join())
    made.say("a", Invite("guest", 50 * MS))
    made.say("a", Stop(40 * MS))
    made.handle("guest", Join())
    made.handle("a", Leave(0))
    lines = in_words(seen(made.arbiter))
    assert "guest will be told that the run is over, when it is: its start lies beyond the end" in lines


# --- In all forms ---


def test_the_tightest_loop_is_the_one_with_the_least_lookahead_in_all() -> None:
    made = table(
        a=listens_to("of c", publishes="of a"),
        b=listens_to("of a", "of c", publishes="of b"),
        c=listens_to("of b", publishes="of c"),
    )
    loop = tightest_loop(seen(made.arbiter, with_links=True).links)
    assert [(hop.sender, hop.receiver) for hop in loop] == [("b", "c"), ("c", "b")]
    assert tightest_loop(seen(in_a_row().arbiter, with_links=True).links) == ()


def test_as_plain_values() -> None:
    made = in_a_row()
    made.say("b", Next(FOREVER))
    made.say("a", Advance(20 * MS))
    found = as_plain(seen(made.arbiter))
    assert [(why["participant"], why["root"]) for why in found["whys"]] == [("a", "c"), ("b", "c")]
    assert found["whys"][1]["awaits"] is None
    assert found["end"] is None
    assert found["holds"] == [{"root": "c", "cause": "sender", "names": [], "held": ["a", "b"]}]


def test_as_a_picture() -> None:
    made = in_a_row()
    made.say("b", Next(FOREVER))
    made.say("a", Advance(20 * MS))
    picture = situation_svg(seen(made.arbiter))
    assert "c holds all others" in picture
    for label in ("of c 5ms", "of b 5ms", ">a<", ">b<", ">c<"):
        assert label in picture
    x = {name: picture.split(f">{name}</text>")[0].rpartition('<text x="')[2].partition('"')[0] for name in "abc"}
    assert float(x["c"]) < float(x["b"]) < float(x["a"])


def test_a_picture_of_nobody() -> None:
    picture = situation_svg(seen(Arbiter(plan(["a", "b"]))))
    assert "the run begins when a, b have joined" in picture


def test_names_of_others_do_nothing_in_a_picture() -> None:
    made = Table("<b>", "c", network=NETWORK, subscribes=["t"])
    made.say("c", Advance(20 * MS))
    assert "<b>" not in situation_svg(seen(made.arbiter))
