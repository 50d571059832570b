"""Who is present and who is gone: by example, and against a naive model that remembers everything that happened."""

from __future__ import annotations

from itertools import permutations
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from worldline.world.peers import (
    Announcement,
    DepartedBy,
    Peer,
    PeerDeparted,
    PeerRole,
    PeerRoster,
)

STALE_S = 8.0
Kind = Literal["join", "alive", "leave"]


def peer(name: str, role: str = "secondary", instance: str = "", since: int = 0, federation: str = "f") -> Peer:
    return Peer(
        federation=federation,
        role=PeerRole(role),
        name=name,
        instance=instance or f"{name}-1",
        since_ns=since,
        address="tcp://127.0.0.1:7000" if role == "primary" else "",
    )


def says(who: Peer, kind: Kind = "alive", hears: tuple[str, ...] = (), gone: tuple[str, ...] = ()) -> Announcement:
    return Announcement(kind=kind, peer=who, hears=hears, gone=gone)


def roster(me: Peer | None = None) -> PeerRoster:
    return PeerRoster(me or peer("me"), stale_s=STALE_S, now_s=0.0)


A, B = peer("a"), peer("b")


def test_a_leave_is_final() -> None:
    mine = roster()
    mine.heard(says(A), 1.0)
    assert mine.heard(says(A, "leave"), 2.0) == (PeerDeparted(A, DepartedBy.ANNOUNCEMENT),)
    assert mine.heard(says(A, "join"), 3.0) == mine.heard(says(A, "leave"), 3.0) == mine.lost("a-1", 3.0) == ()
    assert mine.present() == ()
    again = peer("a", instance="a-2")
    assert mine.heard(says(again, "join"), 4.0) == ()
    assert mine.present() == (again,)


def test_a_silent_peer_is_gone_at_the_limit_and_for_good() -> None:
    mine = roster()
    mine.heard(says(A), 0.0)
    changes = [mine.tick(float(now)) for now in range(1, 9)]
    assert changes == [()] * 7 + [(PeerDeparted(A, DepartedBy.SILENCE),)]
    assert mine.heard(says(A), 9.0) == ()
    assert mine.present() == ()


def test_time_in_which_we_did_not_run_isn_t_held_against_others() -> None:
    mine = roster()
    mine.heard(says(A), 0.0)
    assert mine.tick(1000.0) == ()
    assert mine.heard(says(A), 1000.0) == ()
    assert mine.present() == (A,)


def test_nor_is_a_connection_that_was_lost_in_that_time() -> None:
    mine = roster()
    mine.heard(says(A), 0.0)
    mine.heard(says(B), 0.0)
    assert mine.lost("a-1", 1000.0) == ()
    departures = [mine.tick(1000.0 + now) for now in range(1, 5)]
    assert departures[-1] == (PeerDeparted(A, DepartedBy.SILENCE), PeerDeparted(B, DepartedBy.SILENCE))


def test_all_agree_on_the_intruder_whatever_they_hear_first() -> None:
    three = [peer("n", "primary", f"n-{number}", since) for number, since in ((1, 5), (2, 5), (3, 4))]
    eldest = three[2]
    for order in permutations(three):
        views = [PeerRoster(order[0], stale_s=STALE_S, now_s=0.0), roster()]
        for view in views:
            for each in order:
                view.heard(says(each), 1.0)
            assert {conflict.elder for conflict in view.conflicts()} == {eldest}
            assert [conflict.intruder for conflict in view.conflicts() if conflict.what == "name"] == three[:2]
            assert [conflict.intruder for conflict in view.conflicts() if conflict.what == "primary"] == three[:2]


def test_a_name_is_free_again_once_its_holder_is_gone() -> None:
    mine = roster()
    elder, later = peer("a", instance="a-1", since=1), peer("a", instance="a-2", since=2)
    mine.heard(says(later), 1.0)
    assert mine.secondaries() == (later,)
    mine.heard(says(elder), 1.0)
    assert mine.secondaries() == (elder,)
    mine.lost("a-1", 2.0)
    assert (mine.secondaries(), mine.conflicts()) == ((later,), ())


def test_what_only_others_hear_is_known_as_such() -> None:
    mine = roster()
    mine.heard(says(A, hears=("b", "c", "me")), 1.0)
    mine.heard(says(B), 1.0)
    assert mine.hearsay() == ("c",)
    assert mine.announcement("alive").hears == ("a", "b")
    mine.lost("b-1", 2.0)
    assert mine.hearsay() == ("c",)


def test_a_peer_that_is_gone_is_told() -> None:
    mine, theirs = roster(A), roster(B)
    theirs.heard(mine.announcement("join"), 0.0)
    mine.heard(theirs.announcement("join"), 0.0)
    assert mine.counted_out_by() == ()
    theirs.lost("a-1", 1.0)
    mine.heard(theirs.announcement("alive"), 1.0)
    assert mine.counted_out_by() == (B,)


# --- The model ---

INSTANCES = ["a-1", "a-2", "b-1", "p-1", "q-1"]
PEERS = {
    instance: peer(instance[0], "primary" if instance[0] in "pq" else "secondary", instance, since)
    for since, instance in enumerate(INSTANCES)
}


class RosterAgainstModel(RuleBasedStateMachine):
    """The model keeps the whole past, and derives the present from it each time anew.

    The past is a list of looks: when, how much of the time since the last one counts, what happened. Times are whole,
    so that sums are exact.
    """

    def __init__(self) -> None:
        super().__init__()
        self.roster = PeerRoster(peer("me", since=9), stale_s=STALE_S, now_s=0.0)
        self.now = 0
        self.past: list[tuple[int, str, str]] = []

    def happen(self, pause: int, what: str, instance: str = "") -> None:
        self.now += pause
        self.past.append((pause, what, instance))
        changes: tuple[PeerDeparted, ...]
        before = self.model(self.past[:-1])
        if what == "tick":
            changes = self.roster.tick(float(self.now))
        elif what == "lost":
            changes = self.roster.lost(instance, float(self.now))
        else:
            kind: Any = what.removeprefix("other ")
            who = PEERS[instance]
            if what.startswith("other "):
                who = peer(who.name, who.role, instance, who.since_ns, federation="g")
            changes = self.roster.heard(says(who, kind), float(self.now))
        after = self.model(self.past)
        departed = {change.peer.instance: change.how for change in changes}
        assert {each.instance for each in self.roster.present()} == {
            each for each in INSTANCES if after[each] == "present"
        }
        assert departed == {each: after[each] for each in INSTANCES if before[each] == "present" != after[each]}

    def model(self, past: list[tuple[int, str, str]]) -> dict[str, str]:
        return {instance: self.fate(instance, past) for instance in INSTANCES}

    @staticmethod
    def fate(instance: str, past: list[tuple[int, str, str]]) -> str:
        """Tell one peer's story: unknown, present, or how it went."""
        fate, silence, since_gap = "unknown", 0.0, STALE_S
        for pause, what, about in past:
            counted = min(pause, STALE_S / 2)
            silence += counted
            since_gap = 0.0 if pause > STALE_S / 2 else since_gap + counted
            if fate not in ("unknown", "present"):
                return fate
            if what == "tick":
                if fate == "present" and silence >= STALE_S:
                    fate = "silence"
            elif about != instance:
                continue
            elif what == "leave":
                fate = "announcement"
            elif what in ("join", "alive"):
                fate, silence = "present", 0.0
            elif what == "lost" and fate == "present" and since_gap >= STALE_S:
                fate = "lost connection"
        return fate

    pauses = st.one_of(st.integers(0, 4), st.integers(0, 40))
    instances = st.sampled_from(INSTANCES)

    @rule(pause=pauses, kind=st.sampled_from(["join", "alive", "alive", "leave"]), instance=instances)
    def hear(self, pause: int, kind: str, instance: str) -> None:
        self.happen(pause, kind, instance)

    @rule(pause=pauses, kind=st.sampled_from(["join", "alive", "leave"]), instance=instances)
    def hear_another_federation(self, pause: int, kind: str, instance: str) -> None:
        self.happen(pause, f"other {kind}", instance)

    @rule(pause=pauses, instance=instances)
    def lose(self, pause: int, instance: str) -> None:
        self.happen(pause, "lost", instance)

    @rule(pause=pauses)
    def pass_time(self, pause: int) -> None:
        self.happen(pause, "tick")

    @invariant()
    def the_roster_is_what_the_model_says(self) -> None:
        fates = self.model(self.past)
        present = [PEERS[each] for each in INSTANCES if fates[each] == "present"]
        assert list(self.roster.present()) == present
        known = {each.peer.instance: each.how for each in self.roster.gone()}
        assert known == {each: fates[each] for each in INSTANCES if fates[each] not in ("unknown", "present")}
        assert set(self.roster.announcement("alive").gone) == set(known)

    @invariant()
    def only_the_eldest_counts(self) -> None:
        eldest: dict[str, Peer] = {}
        for each in self.roster.present():
            eldest.setdefault(each.name, each)
        secondaries = [eldest[name] for name in sorted(eldest) if eldest[name].role is PeerRole.SECONDARY]
        assert list(self.roster.secondaries()) == secondaries
        found = [(each.what, each.intruder) for each in self.roster.conflicts()]
        present = self.roster.present()
        assert {who for what, who in found if what == "name"} == {
            each for each in present if each is not eldest[each.name]
        }
        primaries = [each for each in present if each.role is PeerRole.PRIMARY]
        assert [who for what, who in found if what == "primary"] == primaries[1:]


TestRosterAgainstModel = RosterAgainstModel.TestCase
TestRosterAgainstModel.settings = settings(max_examples=12, stateful_step_count=30)


@pytest.mark.soak
class TestRosterForLong(RosterAgainstModel.TestCase):
    settings = settings(max_examples=1_000, stateful_step_count=40)
