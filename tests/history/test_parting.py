"""Where two histories part and why, against an oracle that sees everything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.runs import Change, SmallRun, first_differences, minimal_members
from worldline.history.account import Account, ActionKind, Fate, Membership, Sending
from worldline.history.parting import Causes, Origin, Partings, explain, part
from worldline.model import UsageError

KINDS = ("payload", "drop", "later", "swap", "more", "lose", "delay")
CHANGES = st.builds(Change, st.sampled_from(["ann", "bob", "cat"]), st.integers(0, 8), st.sampled_from(KINDS))


def compared(a: SmallRun, b: SmallRun) -> tuple[Partings, Causes]:
    partings = part(a.account(), b.account())
    return partings, explain(partings)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 4), CHANGES)
def test_the_first_cause_is_the_message_that_was_changed(seed: int, members: int, change: Change) -> None:
    a, b = SmallRun(seed, members), SmallRun(seed, members, change=change)
    partings, causes = compared(a, b)
    assert {name: parting.first.key[:2] for name, parting in partings.of.items()} == {
        name: (at, ActionKind.SENDS if sends else ActionKind.RECEIVES)
        for name, (at, sends) in first_differences(a, b).items()
    }
    assert set(causes.first) == minimal_members(a, b)
    assert partings.is_same == (not b.is_changed)
    if b.is_changed:
        (cause,) = causes.first
        reason = causes.reasons[cause]
        if change.is_networks:
            assert reason.origin is Origin.NETWORK
            assert reason.parting.first.peer == change.sender
        else:
            assert (cause, reason.origin) == (change.sender, Origin.ITSELF)
        for name in partings.of:
            chain = causes.chain(name)
            assert chain[0].parting.member == cause
            assert [each.parting.at for each in chain] == sorted(each.parting.at for each in chain)
        assert causes.symptoms(cause) == sorted(
            (name for name in partings.of if name != cause), key=lambda name: (*partings.of[name].first.key[:2], name)
        )


@pytest.mark.soak
@settings(max_examples=3_000)
@given(st.integers(0, 2**32), st.integers(2, 4), CHANGES)
def test_soak_the_first_cause_is_the_message_that_was_changed(seed: int, members: int, change: Change) -> None:
    test_the_first_cause_is_the_message_that_was_changed.hypothesis.inner_test(seed, members, change)


@settings(max_examples=50)
@given(st.integers(0, 10_000), CHANGES)
def test_which_of_two_runs_comes_first_doesnt_matter(seed: int, change: Change) -> None:
    a, b = SmallRun(seed), SmallRun(seed, change=change)
    there, back = compared(a, b), compared(b, a)
    assert there[1].first == back[1].first
    for name, parting in there[0].of.items():
        assert (parting.a, parting.b) == (back[0].of[name].b, back[0].of[name].a)


@settings(max_examples=50)
@given(st.integers(0, 10_000), CHANGES, st.integers(0, 60))
def test_what_was_cut_off_counts_for_nothing(seed: int, change: Change, until: int) -> None:
    a, b = SmallRun(seed), SmallRun(seed, change=change)
    cut = b.account()
    cut.sendings = [each for each in b.sendings if each[0] < until]
    cut.until, cut.is_complete = until, False
    partings = part(a.account(), cut)
    whole = part(a.account(), b.account())
    assert partings.until == until
    for name, parting in partings.of.items():
        assert whole.of[name].at <= parting.at < until
    for name, parting in whole.of.items():
        if parting.at < until:
            assert partings.of[name].first._replace(elsewhere=None) == parting.first._replace(elsewhere=None)


def sending(at: int, sender: str, payload: bytes = b"", fates: tuple[Fate, ...] = (), topic: str = "x") -> Sending:
    return at, sender, topic, payload, list(fates), 0


def to(receiver: str, at: int, lost: str | None = None) -> Fate:
    return at, receiver, 0, lost


STAYS = {name: Membership(0, 100, "") for name in ("ann", "bob", "cat")}


def of(*sendings: Sending, **stays: Membership) -> Account:
    return Account(sendings, {**STAYS, **stays})


def reasons(a: Account, b: Account, *, same_network: bool = True) -> dict[str, tuple[Origin, str | None]]:
    causes = explain(part(a, b), same_network=same_network)
    return {name: (reason.origin, reason.source) for name, reason in causes.reasons.items()}


def test_who_takes_part_in_one_run_only_is_a_cause() -> None:
    a = of(sending(1, "dan", b"hi", (to("ann", 5),)), dan=Membership(0, 100, ""))
    partings = part(a, of())
    assert (partings.only_a, partings.only_b) == (["dan"], [])
    assert reasons(a, of()) == {"dan": (Origin.PRESENCE, None), "ann": (Origin.SENDER, "dan")}
    assert [parting.member for parting in partings.parted()] == ["ann"]


def test_who_was_made_by_one_that_parted_is_a_symptom() -> None:
    a = of(sending(1, "ann", b"make"), **{"ann/child": Membership(1, 100, "")})
    assert reasons(a, of()) == {"ann": (Origin.ITSELF, None), "ann/child": (Origin.MAKER, "ann")}


def test_what_happens_from_outside_makes_no_member() -> None:
    kernel, other = of(**{"": Membership(0, 9), "shop": Membership(0, 9)}), of(bank=Membership(0, 9))
    causes = explain(part(kernel, other))
    assert causes.first == ["", "bank", "shop"]
    assert [causes.symptoms(name) for name in causes.first] == [[], [], []]


def test_a_network_that_differs_is_a_cause_even_if_its_sender_has_parted() -> None:
    a = of(sending(1, "ann", b"1"), sending(5, "ann", b"2", (to("bob", 7),)))
    b = of(sending(1, "ann", b"!"), sending(5, "ann", b"2", (to("bob", 7, "cable"),)))
    assert reasons(a, b) == {"ann": (Origin.ITSELF, None), "bob": (Origin.SENDER, "ann")}
    assert reasons(a, b, same_network=False) == {"ann": (Origin.ITSELF, None), "bob": (Origin.NETWORK, None)}


def test_what_was_sent_otherwise_is_its_senders_whatever_the_network() -> None:
    a, b = (of(sending(5, "ann", payload, (to("bob", 7),))) for payload in (b"1", b"2"))
    assert reasons(a, b, same_network=False)["bob"] == (Origin.SENDER, "ann")


def test_who_doesnt_listen_has_parted_by_itself() -> None:
    a = of(sending(5, "ann", b"2", (to("bob", 7), to("cat", 7))))
    b = of(sending(5, "ann", b"2", (to("cat", 7),)))
    assert reasons(a, b) == {"bob": (Origin.LISTENING, None)}


def test_a_message_to_somebody_else_is_the_senders_deed() -> None:
    a = of(sending(5, "ann", b"2", (to("bob", 7),)))
    b = of(sending(5, "ann", b"2", (to("cat", 7),)))
    assert reasons(a, b) == {
        "ann": (Origin.ITSELF, None),
        "bob": (Origin.SENDER, "ann"),
        "cat": (Origin.SENDER, "ann"),
    }


def test_another_order_of_the_same_messages_is_told_as_such() -> None:
    a = of(sending(5, "ann", b"1", (to("bob", 7),)), sending(5, "ann", b"2", (to("bob", 7),)))
    b = of(sending(5, "ann", b"2", (to("bob", 7),)), sending(5, "ann", b"1", (to("bob", 7),)))
    partings = part(a, b)
    assert partings.of["ann"].first.reordered
    assert partings.of["bob"].first.reordered
    assert reasons(a, b, same_network=False)["bob"] == (Origin.SENDER, "ann")


def test_another_order_of_receivers_is_too() -> None:
    a = of(sending(5, "ann", b"1", (to("bob", 7),)), sending(5, "ann", b"1", (to("cat", 7),)))
    b = of(sending(5, "ann", b"1", (to("cat", 7),)), sending(5, "ann", b"1", (to("bob", 7),)))
    partings = part(a, b)
    assert list(partings.of) == ["ann"]
    assert partings.of["ann"].first.reordered


@pytest.mark.long
@pytest.mark.timeout(60)  # What grows with the square of the count would take many minutes.
@pytest.mark.parametrize("is_alike", [False, True], ids=["other payloads", "other receivers"])
def test_many_messages_at_one_moment_are_matched_without_comparing_each_with_each(is_alike: bool) -> None:
    count = 12_000

    def told(run: str) -> Account:
        return of(
            *(
                sending(5, "ann", b"x" if is_alike else f"{run} {number}".encode(), (to(f"{run} {number}", 7),))
                for number in range(count)
            )
        )

    partings = part(told("a"), told("b"))
    assert len(partings.of) == 1 + 2 * count
    assert partings.of["ann"].first.to == ("a 0",)


def test_a_senders_numbers_are_no_difference() -> None:
    a, b = of((1, "ann", "x", b"", [], 0)), of((1, "ann", "x", b"", [], 7))
    assert part(a, b).is_same


def test_the_end_of_a_run_follows_from_whoever_parted_first() -> None:
    early = {name: Membership(0, 50, "") for name in STAYS}
    a, b = of(sending(60, "bob")), of(**early)
    assert reasons(a, b) == {name: (Origin.END, None if name == "ann" else "ann") for name in STAYS}
    a, b = of(sending(10, "cat"), sending(60, "bob")), of(**early)
    assert reasons(a, b) == {
        "cat": (Origin.ITSELF, None),
        "ann": (Origin.END, "cat"),
        "bob": (Origin.END, "cat"),
    }


def test_who_leaves_earlier_by_itself_is_a_cause() -> None:
    assert reasons(of(), of(bob=Membership(0, 40, ""))) == {"bob": (Origin.ITSELF, None)}


def test_a_history_whose_hash_differs_is_named_though_nothing_else_does() -> None:
    partings = part(of(), of(bob=Membership(0, 100, "other")))
    assert partings.unseen == ["bob"]
    assert not partings.is_same


def numbered(number: int, payload: bytes = b"") -> Sending:
    """Ann's message to bob, with its number."""
    return *sending(10, "ann", payload, (to("bob", 15),))[:5], number


def test_other_numbers_alone_are_told_apart_from_what_isnt_recorded() -> None:
    """Bob's history differs since ann counts one more; that is no difference of bob's own."""
    other = {name: Membership(0, 100, "other") for name in ("ann", "bob")}
    partings = part(of(numbered(1)), of(numbered(2), **other))
    assert (partings.unseen, partings.renumbered) == (["ann"], ["bob"])
    assert partings.renumbers == {"bob": (15, "ann")}
    assert not partings.is_same


def test_messages_of_a_moment_are_paired_before_their_numbers_are_compared() -> None:
    more = sending(10, "ann", b"only here", (to("cat", 15),))
    assert part(of(more, numbered(2), numbered(3)), of(numbered(2), numbered(3))).renumbers == {}
    shifted = of(numbered(1, b"y"), numbered(3, b"z"))
    assert part(of(more, numbered(1, b"y"), numbered(2, b"z")), shifted).renumbers == {"bob": (15, "ann")}


def test_what_is_lost_otherwise_and_noticed_by_nobody_is_counted() -> None:
    partings = part(
        of(sending(1, "ann", b"1", (to("bob", 5, "rain"),))), of(sending(1, "ann", b"1", (to("bob", 6, "snow"),)))
    )
    assert (partings.lost_otherwise, partings.of, partings.is_same) == (1, {}, False)


def test_the_rest_isnt_read_once_nobody_can_part_earlier() -> None:
    read = 0

    def told(payload: bytes) -> Iterator[Sending]:
        nonlocal read
        for at in range(1, 10_000):
            for name in STAYS:
                read += 1
                yield sending(at, name, payload)

    part(Account(told(b"1"), STAYS), Account(told(b"2"), STAYS))
    assert read < 100


def test_a_chain_to_somebody_who_doesnt_differ_is_refused() -> None:
    causes = explain(part(of(sending(1, "ann")), of()))
    with pytest.raises(UsageError, match="'zoe' doesn't differ"):
        causes.chain("zoe")


@pytest.mark.timeout(60)  # What grows with the square of the count would take minutes.
def test_an_earlier_end_of_many_is_explained_at_once() -> None:
    long, short = ({f"m{number:05}": Membership(0, end, "") for number in range(20_000)} for end in (100, 50))
    causes = explain(part(of(**long), of(**{name: Membership(0, 50, "") for name in STAYS}, **short)))
    assert causes.first == ["ann"]
    assert {reason.source for reason in causes.reasons.values()} == {None, "ann"}
