"""Random federations in which participants and the server are lost at random: they end as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from tests.lock.harness import Driver, Harness
from tests.lock.worlds import World, make_world
from tests.soaking import later
from tests.wire.peers import House, journaled_host
from worldline.federation.server.session import Session
from worldline.lock import Abort, ParticipantEvent, State
from worldline.model import FOREVER
from worldline.wire.codec import Frames, decode_answer, encode_events
from worldline.wire.handshake import Resume


class Teller:
    """A participant's program at one end of a connection, and what it has said since its last answer."""

    def __init__(self, name: str, world: World, random: Random) -> None:
        self.driver = Driver(name, world, random, Counter())
        self.said: list[ParticipantEvent] = []
        self.answers = 0
        self.connect()

    def connect(self) -> None:
        self.frames = Frames()
        self.session: Session | None = None

    def resume(self) -> None:
        """Go on over another connection: say again what may not have been heard."""
        again: list[object] = [Resume(self.answers), *self.said]
        self.driver.frames.insert(0, again)  # type: ignore[arg-type] # a word of the wire
        self.said = []
        self.connect()

    def next_frame(self) -> bytes:
        events = self.driver.frames.pop(0)
        self.said += [event for event in events if not isinstance(event, Resume)]
        return encode_events(events)

    def hear(self, body: bytes) -> None:
        answer = decode_answer(body)
        assert not isinstance(answer, Abort), answer
        if self.driver.ledger.state is not State.LEFT:
            self.answers += 1
            self.said = []
            self.driver.answer(answer)  # type: ignore[arg-type]


class DisturbedRun:
    """A world whose participants are killed and started again, lose their connections, and lose their server."""

    def __init__(self, world: World, random: Random, journal: Path, seen: Counter[str]) -> None:
        guests = tuple(name for name in world.members if name not in world.plan.roster)
        self.world, self.random, self.path, self.seen = world, random, journal, seen
        self.plan = structs.replace(world.plan, guests=guests)
        self.house = House("unused")
        self.start()
        self.tellers = {name: Teller(name, world, random) for name in world.members}
        self.barred = random.random() < 0.3
        self.disturbances = random.randint(1, 6)

    def start(self) -> None:
        self.house.host = self.host = journaled_host(self.plan, self.path, rejoins=True)

    def run(self) -> bytes | None:
        random = self.random
        while self.host.digest is None:
            if self.disturbances and random.random() < 0.1:
                self.disturbances -= 1
                self.disturb()
                continue
            able = [name for name, teller in self.tellers.items() if teller.driver.frames and self.comes(name)]
            if not able:
                self.host.work()
                self.hand_out()
                if any(teller.driver.frames for teller in self.tellers.values()) or self.host.digest is not None:
                    continue
            if self.barred and (random.random() < 0.1 if able else self.host.arbiter.barrier < FOREVER):
                self.move_barrier(free=not able)
                continue
            if able:
                name = random.choice(able)
                self.say(name, self.tellers[name].next_frame())
            assert able, f"stuck: {self.host.waiting()}, away {self.host.lost()}"
        return self.host.digest

    def comes(self, name: str) -> bool:
        return self.random.random() < 0.5 or name in self.host.arbiter.members

    def say(self, name: str, data: bytes) -> None:
        teller = self.tellers[name]
        if teller.session is None:
            teller.session = self.house.admit(name).session
        self.host.receive(teller.session, data, 0.0)
        self.settled()

    def settled(self) -> None:
        assert self.host.failure is None, self.host.failure
        self.host.arbiter.check_invariants()
        if self.random.random() < 0.9:  # Otherwise it is under way, and may be lost.
            self.hand_out()

    def hand_out(self) -> None:
        for teller in self.tellers.values():
            if teller.session is not None:
                data = bytes(teller.session.out)
                teller.session.out.clear()
                for body in list(teller.frames.feed(data)):
                    teller.hear(body)

    def move_barrier(self, *, free: bool) -> None:
        times = [now for _, now in self.host.arbiter.participants().values()]
        until = max(times) + 30 if free else min(times) + self.random.randint(0, 30)
        self.host.hold_at(FOREVER if free and self.random.random() < 0.3 else until)
        self.hand_out()

    # --- What goes wrong ---

    def disturb(self) -> None:
        assert self.host.rejoining is not None
        self.host.rejoining._deaths.clear()  # It is chance that strikes here, not a message.
        if self.random.random() < 0.3:
            self.lose_server()
            return
        there = [name for name, teller in self.tellers.items() if teller.session is not None]
        if there:
            name = self.random.choice(there)
            if self.tellers[name].driver.ledger.state is State.LEFT:
                return
            self.lose(name, fresh=self.random.random() < 0.7)

    def lose(self, name: str, *, fresh: bool) -> None:
        teller = self.tellers[name]
        assert teller.session is not None
        if fresh and teller.driver.frames and self.random.random() < 0.3:  # In the middle of a frame.
            data = teller.next_frame()
            self.host.receive(teller.session, data[: self.random.randrange(len(data))], 0.0)
            self.seen["deaths in the middle of a frame"] += 1
        member = self.host.arbiter.members.get(name)
        state = "absent" if member is None else member.state.value
        self.seen[f"{'deaths' if fresh else 'connections lost'} while {state}"] += 1
        teller.session.out.clear()
        self.host.closed(teller.session, "killed")
        self.come_again(name, fresh=fresh)

    def come_again(self, name: str, *, fresh: bool) -> None:
        if fresh:
            self.tellers[name] = Teller(name, self.world, self.random)
        else:
            self.tellers[name].resume()

    def lose_server(self) -> None:
        self.seen["deaths of the server"] += 1
        assert self.host.journal is not None
        self.host.journal.close()
        self.start()
        left = {name for name, member in self.host.arbiter.members.items() if member.state is State.LEFT}
        for name, teller in self.tellers.items():
            has_left = teller.driver.ledger.state is State.LEFT
            if teller.session is not None and not (has_left and name in left):
                self.come_again(name, fresh=not has_left and name not in left and self.random.random() < 0.5)


def disturbed_runs(seeds: range, folder: Path) -> Counter[str]:
    """Run random worlds with disturbances: each must end as it would have without."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        world = make_world(random)
        plain = Harness(world, Random(0), Counter(), check=False, barriers=False)
        plain.run()
        path = folder / f"{seed}.journal"
        run = DisturbedRun(world, random, path, seen)
        try:
            assert run.run() == plain.digest
            run.host.let_go()
            assert not path.exists()
        except Exception as error:
            error.add_note(f"disturbed_runs(range({seed}, {seed + 1}), Path())")
            raise
        seen["runs"] += 1
    return seen


@pytest.mark.parametrize("first", [0, *later([100, 200])])
def test_random_federations_end_as_if_nobody_had_been_lost(tmp_path: Path, first: int) -> None:
    seen = disturbed_runs(range(first, first + (100 if first else 40)), tmp_path)
    print(seen)
