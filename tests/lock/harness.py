"""Drives worlds through ledgers and an arbiter, in an order that a `random.Random` decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from tests.lock.oracle import History
from tests.lock.worlds import Op, Result, World, behave
from worldline.lock import (
    OPERATOR,
    Action,
    Arbiter,
    Barrier,
    Ledger,
    Over,
    ParticipantEvent,
    Received,
    RunEnded,
    Sent,
    Stop,
)
from worldline.lock.states import State
from worldline.model import FOREVER, BrokenPromise, Message, Plan


class Driver:
    """One participant: its behavior on top of its ledger, and what it has said but not told yet."""

    def __init__(self, name: str, world: World, random: Random, seen: Counter[str]) -> None:
        self.name = name
        self.member = world.members[name]
        self.guest = name not in world.plan.roster
        self.ledger = Ledger(name, self.member.join, keep_journal=True)
        self.frames: list[list[ParticipantEvent]] = [self.ledger.take_outbox()]
        self.waiting = True
        self.done = False
        self.random = random
        self.seen = seen
        self.subscribed: dict[str, int] = {}
        self.peeks: Op | None = None
        self.peeked: list[tuple[int, int]] = []

    def answer(self, action: Action) -> None:
        """Take what the participant waited for, and go on until it waits again."""
        starting = self.ledger.state is State.JOINED
        messages = self.ledger.receive(action)
        if starting:
            self.behavior = behave(self.member, Result(self.ledger.now))
        self.waiting = False
        if self.ledger.state is State.LEFT:  # The run ended before this guest's start.
            self.done = True
            self.seen["guest that came too late"] += 1
            return
        if self.peeks is not None:
            assert not messages
            self.go_on(self.peek(self.peeks))
        else:
            self.go_on(None if starting else Result(self.ledger.now, messages, self.ledger.ended))

    def peek(self, op: Op) -> Result | None:
        known = self.ledger.peek(op.time)
        self.peeks = op if known is None else None
        if known is None:
            return None
        self.peeked.append((self.ledger.now, known))
        return Result(self.ledger.now, ended=self.ledger.ended, peeked=known)

    def go_on(self, result: Result | None) -> None:
        try:
            op = self.behavior.send(result) if result is not None else next(self.behavior)
            while (result := self.do(op)) is not None:
                self.maybe_flush()
                op = self.behavior.send(result)
            self.waiting = True
        except StopIteration:
            if self.ledger.ended:
                self.seen["ended by the run's end"] += 1
                with pytest.raises(RunEnded):
                    self.ledger.publish("red", b"")
            self.ledger.leave()
            self.done = True
        self.frames.append(self.ledger.take_outbox())

    def do(self, op: Op) -> Result | None:
        """Carry one operation out; None if it has to wait."""
        ledger = self.ledger
        self.seen[op.kind] += 1
        messages: list[Message] | None = []
        if op.kind == "publish":
            ledger.publish(op.topic, op.payload, op.time)
        elif op.kind == "break":
            with pytest.raises(BrokenPromise):
                ledger.publish(op.topic, op.payload, op.time)
            return Result(ledger.now, refused=True)
        elif op.kind == "promise":
            ledger.promise(op.time)
        elif op.kind == "subscribe":
            self.seen["subscribe that takes a grant back"] += ledger.horizon > ledger.now
            ledger.subscribe(op.topic, op.buffer)
            self.subscribed[op.topic] = ledger.now
        elif op.kind == "unsubscribe":
            ledger.unsubscribe(op.topic)
        elif op.kind == "invite":
            ledger.invite(op.name, op.time)
        elif op.kind == "stop":
            ledger.stop(op.time)
        elif op.kind == "peek":
            result = self.peek(op)
            self.seen["peek served ahead"] += result is not None
            return result
        elif op.kind == "advance":
            messages = ledger.advance(op.time)
            self.seen["advance served ahead"] += messages is not None
        else:
            messages = ledger.next(op.time)
            self.seen["next served ahead"] += messages is not None
            self.seen["next while holding messages"] += messages is None and bool(ledger.held)
        return None if messages is None else Result(ledger.now, messages, ledger.ended)

    def maybe_flush(self) -> None:
        if self.random.random() < 0.4:
            self.ledger.tell_time()
            if outbox := self.ledger.take_outbox():
                self.frames.append(outbox)

    def history(self) -> History:
        entries = self.ledger.journal.entries or []
        return History(
            received=[(entry.now, entry.message) for entry in entries if isinstance(entry, Received)],
            sent=[(entry.at, entry.topic, entry.payload) for entry in entries if isinstance(entry, Sent)],
            peeked=self.peeked,
            left=self.ledger.now,
        )


class Harness:
    """One run of a world under one random interleaving, with invariants checked after every event."""

    def __init__(
        self,
        world: World,
        random: Random,
        seen: Counter[str],
        arbiter: Callable[[Plan], Arbiter] = Arbiter,
        *,
        check: bool = True,
        barriers: bool = True,
        stop: int | None = None,
    ) -> None:
        self.world = world
        self.random = random
        self.seen = seen
        self.check = check
        self.arbiter = arbiter(world.plan)
        self.drivers = {name: Driver(name, world, random, seen) for name in world.members}
        self.digest: bytes | None = None
        self.stop = stop  # Where the operator ends the run, once everybody rests there.
        self.barred = stop is None and barriers and random.random() < 0.3
        if stop is not None:
            self.handle(OPERATOR, Barrier(stop))

    def run(self) -> dict[str, History]:
        while self.digest is None:
            able = [driver for driver in self.drivers.values() if driver.frames and self.expected(driver)]
            if self.barred and (not able or self.random.random() < 0.1):
                self.move_barrier(free=not able)
                continue
            if self.stop is not None and not able:
                self.stop_there(self.stop)
                continue
            assert able, f"stuck: {[str(why) for why in self.arbiter.why()]}"
            driver = self.random.choice(able)
            frame = driver.frames.pop(0)
            if self.random.random() < 0.5:
                self.handle(driver.name, *frame)
            else:
                for event in frame:
                    self.handle(driver.name, event)
        histories = {}
        dropped = self.arbiter.dropped()
        for name in self.arbiter.participants():
            histories[name] = self.drivers[name].history()
            histories[name].dropped = Counter(
                {(topic, reason): count for (who, topic, reason), count in dropped.items() if who == name}
            )
        return histories

    def met(self) -> Counter[str]:
        """Count what the run has met, beyond the operations themselves."""
        met: Counter[str] = Counter()
        for (_, _, reason), count in self.arbiter.dropped().items():
            met[f"message {reason}"] += count
        for driver in self.drivers.values():
            met["guest that came"] += driver.guest and driver.name in self.arbiter.participants()
            met["message dropped by a buffer"] += sum(driver.ledger.topics.dropped.values())
            for now, message in driver.history().received:
                met["message delivered"] += 1
                met["message duplicated"] += message.copy
                met["message to a late subscriber"] += message.sent < driver.subscribed.get(message.topic, 0) <= now
        return met

    def handle(self, who: str, *events: object) -> None:
        actions = self.arbiter.handle(who, *events)  # type: ignore[arg-type]
        if self.check:
            self.arbiter.check_invariants()
        for action in actions:
            if isinstance(action, Over):
                self.digest = action.digest
            else:
                self.drivers[action.to].answer(action)

    def move_barrier(self, *, free: bool) -> None:
        times = [now for _, now in self.arbiter.participants().values()]
        until = FOREVER if free and self.random.random() < 0.3 else min(times) + self.random.randint(0, 30)
        if free and until != FOREVER:
            until = max(times) + 30
        self.seen["barrier"] += 1
        self.handle(OPERATOR, Barrier(until))

    def stop_there(self, at: int) -> None:
        assert self.arbiter.rests()
        self.stop = None
        self.seen["stop by the operator"] += 1
        self.handle(OPERATOR, Stop(at))
        if self.digest is None:
            self.handle(OPERATOR, Barrier(FOREVER))
        else:
            self.seen["stop by the operator when all had left"] += 1

    def expected(self, driver: Driver) -> bool:
        return not driver.guest or driver.name in self.arbiter.participants() or driver.ledger.state is not State.JOINED
