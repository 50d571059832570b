"""A ledger that was restored from a snapshot is the ledger that it was."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.lock.harness import Driver, Harness
from tests.lock.worlds import Result, World, make_world
from worldline.lock import Action, Leave, Ledger, StartRun
from worldline.lock.events import Recalled, Restore, Snapshot
from worldline.lock.states import State
from worldline.model import Plan, UsageError
from worldline.model.draws.table import DrawRow


class RestoredDriver(Driver):
    """A participant whose ledger is replaced now and then by one that is restored from a snapshot of it."""

    start: Action
    replaced = 0

    def __init__(self, name: str, world: World, random: Random, seen: Counter[str]) -> None:
        super().__init__(name, world, random, seen)
        self.ledger.snapshots.at_server = False

    def answer(self, action: Action) -> None:
        if isinstance(action, StartRun):
            self.start = action
        super().answer(action)

    def go_on(self, result: Result | None) -> None:
        if result is None and not self.replaced:
            assert self.ledger.restored() is None
        super().go_on(result)

    def maybe_flush(self) -> None:
        super().maybe_flush()
        if self.ledger.state is State.COMPUTING and not self.ledger.ended and self.random.random() < 0.3:
            self.ledger.stream("a").random()
            self.replace()

    def replace(self) -> None:
        drawn = self.ledger.stream("a").getstate()
        self.ledger.snapshot(b"mine")
        *said, snapshot = self.ledger.take_outbox()
        assert isinstance(snapshot, Snapshot)
        if said:
            self.frames.append(said)
        restored = Ledger(self.name, self.member.join, keep_journal=True)
        restored.snapshots.at_server = True
        restored.take_outbox()
        restored.receive(self.start)
        assert restored.misses_snapshot
        restored.receive(Recalled(1, 0, snapshot.state))  # type: ignore[arg-type] # of the server, not the arbiter
        assert restored.restored() == b"mine"
        assert restored.take_outbox() == [Restore(1, 0)]
        assert restored.stream("a").getstate() == drawn
        restored.journal.entries = self.ledger.journal.entries
        self.ledger = restored
        self.replaced += 1


def test_random_worlds_are_the_same_whoever_is_restored() -> None:
    replaced = 0
    for seed in range(40):
        world = make_world(Random(seed))
        plain = Harness(world, Random(0), Counter(), check=False, barriers=False)
        expected = plain.run()
        harness = Harness(world, Random(seed), Counter(), check=False)
        harness.drivers = {name: RestoredDriver(name, world, Random(seed), Counter()) for name in world.members}
        assert harness.run() == expected
        assert harness.digest == plain.digest
        replaced += sum(driver.replaced for driver in harness.drivers.values())  # type: ignore[attr-defined]
    assert replaced > 100


def test_what_another_program_has_offered_is_refused() -> None:
    plan = Plan(roster=("a",))
    ledger = Ledger("a", make_world(Random(0)).members["a"].join)
    ledger.snapshots.at_server = True
    ledger.take_outbox()
    ledger.receive(StartRun("a", 0, plan.seed, 0))
    ledger.receive(Recalled(1, 0, b"not ours"))  # type: ignore[arg-type] # of the server, not the arbiter
    with pytest.raises(UsageError, match=r"its snapshot can't be read .*another program, or another version"):
        ledger.restored()


def test_whoever_is_restored_knows_which_draws_were_replaced() -> None:
    start = StartRun("a", 0, 7, 0, 0, (DrawRow("random/a/0", value=0.25), DrawRow("random/a/1", value=0.5)))

    def started(has_snapshot: bool) -> Ledger:
        ledger = Ledger("a", make_world(Random(0)).members["a"].join)
        ledger.snapshots.at_server = has_snapshot
        ledger.take_outbox()
        ledger.receive(start)
        return ledger

    first = started(has_snapshot=False)
    assert first.restored() is None
    assert first.stream().random() == 0.25
    first.snapshot(b"")
    *_, snapshot = first.take_outbox()
    assert isinstance(snapshot, Snapshot)
    second = started(has_snapshot=True)
    second.receive(Recalled(1, 0, snapshot.state))  # type: ignore[arg-type] # of the server, not the arbiter
    assert second.restored() == b""
    assert second.stream().random() == 0.5
    second.leave()
    *_, leave = second.take_outbox()
    assert isinstance(leave, Leave)
    assert leave.replaced == (0, 1)
