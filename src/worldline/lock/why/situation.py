"""A run at one moment, as a value: where everybody is, who waits for whom, and why.

It is what an operator is told, so it can travel, and everything that is shown of a run is made from it alone. Times of
the wall clock are passed in, since the lock has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from worldline.lock.member import Member
from worldline.lock.states import WAITING, Phase, State
from worldline.lock.why.reasons import Hop, View, Why, explain, vacant
from worldline.model.time import FOREVER

LONG_S = 1.0
"""Less, in seconds of the wall clock, may well be the usual time that something takes."""


class Activity(Struct, frozen=True, kw_only=True):
    """What is known of a participant besides what the lock knows: its process, and what is in its way.

    `seconds` is for how long, in wall-clock time, it has been in its state. `process` is its process, if that is on the
    server's machine, and `condition` what the system says of that: running, sleeping, blocked or stopped. `remark` says
    what else there is to know. `behind` is who runs in its process, so that it can't. `lost` says why it isn't there,
    if it was lost and may come back; it has been away for `seconds`.
    """

    seconds: float | None = None
    process: int | None = None
    condition: str = ""
    remark: str = ""
    behind: str = ""
    lost: str = ""


class Standing(Struct, frozen=True, kw_only=True):
    """One participant at that moment.

    `promise` is a time before which it sends nothing. `sent` counts its messages. One that is `open` may publish on any
    topic, and one that is `done` has been told that the run has ended for it. Unless `exact`, it has gone on by itself
    since `now`, as far as it was allowed to, and only it knows where it is.
    """

    name: str
    state: State
    now: int
    promise: int
    sent: int
    open: bool
    done: bool
    exact: bool = True
    activity: Activity = Activity()

    @property
    def stands_still(self) -> bool:
        """Whether it could go on and doesn't: it is stopped or lost, can't run, or has computed for long."""
        activity = self.activity
        if activity.lost or activity.behind or activity.condition == "stopped":
            return True
        return self.state is State.COMPUTING and (activity.seconds or 0.0) >= LONG_S


class Situation(Struct, frozen=True, kw_only=True):
    """A run at one moment. `name` is the run's.

    Before `time` nothing will happen any more. `paused` is where an operator holds everybody. `speed` is how many
    simulated seconds pass in a second, and `rate` how many events there are in one, both lately. `unused` are topics
    among those that somebody waits for on which nothing was ever sent: (sender, topic). `links` are all ways from
    somebody to somebody, if the operator wants to know them.
    """

    name: str
    phase: Phase
    time: int
    end: int
    barrier: int
    paused: int | None
    events: int
    missing: tuple[str, ...]
    standings: tuple[Standing, ...]
    whys: tuple[Why, ...]
    unused: tuple[tuple[str, str], ...]
    speed: float | None = None
    rate: float | None = None
    links: tuple[Hop, ...] = ()

    def standing(self, name: str) -> Standing | None:
        return next((each for each in self.standings if each.name == name), None)


def situation_of(
    arbiter: View,
    name: str,
    activities: Mapping[str, Activity],
    *,
    events: int,
    time: int,
    paused: int | None = None,
    speed: float | None = None,
    rate: float | None = None,
    with_links: bool = False,
) -> Situation:
    """Look at an arbiter, which stays as it is. `time` and `events` are its status."""
    whys = explain(arbiter)
    return Situation(
        name=name,
        phase=arbiter.phase,
        time=time,
        end=arbiter.end,
        barrier=arbiter.barrier,
        paused=paused,
        events=events,
        missing=(*arbiter.missing(), *vacant(arbiter.plan)),
        standings=tuple(
            _standing(arbiter, member, activities.get(each)) for each, member in sorted(arbiter.members.items())
        ),
        whys=whys,
        unused=_unused(arbiter, whys),
        speed=speed,
        rate=rate,
        links=all_links(arbiter) if with_links else (),
    )


def all_links(arbiter: View) -> tuple[Hop, ...]:
    """Return the edges of the calculus between all who have started, each with the topic that sets its latency."""
    return tuple(
        Hop(sender.name, receiver.name, arbiter.router.edges.named(sender, receiver)[1], latency)
        for _, receiver in sorted(arbiter.members.items())
        for sender, latency in sorted(receiver.ins, key=lambda edge: edge[0].name)
        if isinstance(sender, Member) and latency < FOREVER and sender.state is not State.LEFT
    )


def _standing(arbiter: View, member: Member, activity: Activity | None) -> Standing:
    is_at_end = member.state is State.COMPUTING and member.now == member.granted == arbiter.end
    return Standing(
        name=member.name,
        state=member.state,
        now=member.now,
        promise=member.promise,
        sent=member.sequence,
        open=member.publishes is None,
        done=member.is_done or is_at_end,
        exact=member.state not in WAITING or member.granted <= member.now,
        activity=activity or Activity(),
    )


def _unused(arbiter: View, whys: tuple[Why, ...]) -> tuple[tuple[str, str], ...]:
    ways = {(hop.sender, hop.topic): None for why in whys for hop in why.path if hop.topic is not None}
    return tuple(
        sorted((sender, topic) for sender, topic in ways if topic and not _has_sent(arbiter.members[sender], topic))
    )


def _has_sent(sender: Member, topic: str) -> bool:
    return topic in sender.publications or topic in sender.spent
