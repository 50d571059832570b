"""What got slower between two runs: who computes longer comes first, and what is waited for follows."""

from __future__ import annotations

from worldline.lock import Advance, Join, Publish, Subscription
from worldline.lock.why.advice import account_in_words, account_of, changes, slower_in_words
from worldline.lock.why.heard import Heard, stripped
from worldline.model import MS, Network, link, plan

PLAN = plan(["eye", "hand"], network=Network(default=link("5ms")))
JOINS = [Heard(0, "eye", (Join(("images",), ()),)), Heard(0, "hand", (Join((), (Subscription("images"),)),))]


def noted(step_ms: int) -> list[Heard]:
    """Return a run of ten steps in which the eye computes so many milliseconds for each, and the hand 1 ms."""
    wall, found = 0, list(JOINS)
    for number in range(1, 11):
        at = 10 * number * MS
        found.append(Heard(wall + MS, "hand", (Advance(at),)))
        wall += step_ms * MS
        said = stripped([Publish("images", b"picture", at - 10 * MS)])
        found.append(Heard(wall, "eye", (*said, Advance(at))))
    return found


def test_computing_is_from_what_lets_a_participant_go_on_to_what_it_asks_next() -> None:
    account = account_of(PLAN, noted(4))
    assert account.computing.per_step("eye") == 4 * MS
    assert account.computing.steps["eye"] == 10
    assert account.computing.per_step("hand") == MS
    lines = account_in_words("cell", account)
    assert lines[-1] == "who computed        eye 40 ms, 4 ms a step; hand 10 ms, 1 ms a step"


def test_what_got_slower_is_named_with_its_cause_first() -> None:
    lines = slower_in_words(("a", "b"), account_of(PLAN, noted(4)), account_of(PLAN, noted(9)))
    assert lines == [
        "b took 90 ms, 50 ms more than the 40 ms of a",
        "eye computes  50 ms longer: 90 ms instead of 40 ms, 9 ms a step instead of 4 ms a step",
        "waiting for eye → hand  (images 5ms)  50 ms longer: 80 ms instead of 30 ms",
    ]
    faster = changes(account_of(PLAN, noted(9)), account_of(PLAN, noted(4)))
    assert [each.more for each in faster] == [-50 * MS, -50 * MS]


def test_runs_that_are_alike_differ_in_nothing() -> None:
    lines = slower_in_words(("a", "b"), account_of(PLAN, noted(4)), account_of(PLAN, noted(4)))
    assert lines[1] == "nothing that a participant computes or waits for differs by as much as 2 % of that"
