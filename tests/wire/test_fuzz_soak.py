"""A small fuzzer that is guided by coverage: inputs that reach something new are kept and changed further.

What it is: a loop of a few dozen lines over `sys.monitoring`, which sees the branches taken in Worldline's Python
code, not those within msgspec. Its changes know what events look like, so that most inputs get past the decoder. It is
bounded by a number of inputs, not by time, and its seed makes it repeatable; a failure prints the seed and the input.
It doesn't replace a real fuzzer, which would see the compiled code too, but there are no wheels of atheris for all that
we support.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any

import pytest
from msgspec import msgpack

import worldline
from tests.wire.peers import House, Peer
from worldline import builds
from worldline.federation.server.limits import Limits
from worldline.lock import Abort, Grant, Join, Ledger, StartRun, State, Subscription
from worldline.model import FOREVER, MS, TIME_MAX, InternalError, LossError, Message
from worldline.model.frames import frame
from worldline.wire.codec import HEARTBEAT, decode_answer, encode_events

pytestmark = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="Python 3.11 has no sys.monitoring")

SOURCE = str(Path(worldline.__file__).parent)
WHO = ("a", "b", "g", "stranger")

# One step of an input: who sends it, and either events or plain bytes.
Step = tuple[str, list[Any] | bytes]

NUMBERS = (0, 1, 2, 5, MS - 1, MS, MS + 1, 2 * MS, 5 * MS, 2**31, TIME_MAX, TIME_MAX + 1, FOREVER, 2**64 - 1, -1)
TEXTS = ("t", "u", "a", "b", "c", "g", "", "\n", "x" * 300)
SEEDS: tuple[list[Any], ...] = (
    ["join", None, [["t", {"limit": 2, "oldest": True}]], 0, True],
    ["publish", "t", b"x" * 300, 0],
    ["promise", MS],
    ["reached", 1],
    ["subscribe", ["u", {"limit": 1}], 0, 0],
    ["unsubscribe", "t", 0, 0],
    ["invite", "g", MS],
    ["stop", 5 * MS],
    ["advance", MS],
    ["next", FOREVER, FOREVER],
    ["peek", MS, FOREVER],
    ["leave", 0, b"", False, {}],
    ["fail", "no"],
)


class Coverage:
    """Notices branches of Worldline's code that were never taken before."""

    def __init__(self) -> None:
        self.taken: dict[tuple[CodeType, int], set[int]] = {}
        self.news = 0

    def __enter__(self) -> Coverage:
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "worldline fuzzer")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.BRANCH, self._branch)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.BRANCH)
        monitoring.restart_events()  # What an earlier search has stopped looking at is news to this one.
        return self

    def __exit__(self, *_: object) -> None:
        monitoring = sys.monitoring
        monitoring.set_events(monitoring.COVERAGE_ID, 0)
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.BRANCH, None)
        monitoring.free_tool_id(monitoring.COVERAGE_ID)

    def _branch(self, code: CodeType, offset: int, destination: int) -> Any:
        if not code.co_filename.startswith(SOURCE):
            return sys.monitoring.DISABLE
        ways = self.taken.setdefault((code, offset), set())
        if destination not in ways:
            ways.add(destination)
            self.news += 1
        return sys.monitoring.DISABLE if len(ways) > 1 else None  # Both ways are known: no need to look again.

    def count(self) -> int:
        return sum(len(ways) for ways in self.taken.values())


# --- Inputs and their changes ---


def changed(random: Random, steps: list[Step], corpus: list[list[Step]]) -> list[Step]:
    """Return an input that differs from another in a few places."""
    steps = list(steps)
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(steps) + 1)
        what = random.random()
        if what < 0.4 or not steps:
            steps.insert(
                place, (random.choice(WHO), [random.choice(SEEDS) for _ in range(random.choice((1, 1, 2, 3)))])
            )
        elif what < 0.5:
            steps = steps[:place] + random.choice(corpus)[place:]
        elif what < 0.6:
            del steps[min(place, len(steps) - 1)]
        else:
            place = min(place, len(steps) - 1)
            who, said = steps[place]
            if isinstance(said, bytes) or random.random() < 0.15:
                steps[place] = (who, damaged(random, said))
            else:
                steps[place] = (random.choice((who, who, *WHO)), changed_value(random, said))
    return steps[:24]


def damaged(random: Random, said: list[Any] | bytes) -> bytes:
    data = bytearray(said if isinstance(said, bytes) else frame(msgpack.encode(said)))
    for _ in range(random.choice((1, 2, 5))):
        place = random.randrange(len(data) + 1)
        data[place : place + random.choice((0, 1, 1, 4))] = random.choice(
            (b"", bytes([random.randrange(256)]), HEARTBEAT, b"\xdd\xff\xff\xff\xff", b"\x91" * 50)
        )
    return bytes(data)


def changed_value(random: Random, value: Any) -> Any:
    """Change one leaf of nested lists and maps, mostly to something that is of the right kind."""
    if isinstance(value, list) and value and random.random() < 0.95:
        place = random.randrange(len(value))
        return [*value[:place], changed_value(random, value[place]), *value[place + 1 :]]
    if isinstance(value, dict) and value:
        key = random.choice(sorted(value))
        return {**value, key: changed_value(random, value[key])}
    kinds: dict[type, tuple[Any, ...]] = {int: NUMBERS, str: TEXTS, bool: (True, False), bytes: (b"", b"x" * 2_000)}
    return random.choice(kinds.get(type(value), (None, 1, "t", [], {}, *SEEDS)))


# --- What is tried, and what must hold ---


def execute(steps: list[Step]) -> None:
    """Let four connections say what they like, beside one that behaves."""
    house = House("a", "b", "c", guests=["g"], limits=Limits(memory_max=4_000))
    peers: dict[str, Peer] = {name: house.join(name, None, [["t"]], controls=True) for name in ("a", "b")}
    peers["g"], peers["stranger"] = house.admit("g"), house.connect()
    good = Good(house.admit("c"))
    for who, said in steps:
        data = said if isinstance(said, bytes) else frame(msgpack.encode(said))
        was_over = house.host.over
        peers[who].send(data)
        peers[who].read()
        assert was_over or who != "stranger" or not house.host.over, "a stranger has ended the run"
        good.go_on()
        check(house)
    house.host.tick(1.0)
    good.go_on()
    check(house)


def check(house: House) -> None:
    host = house.host
    assert not isinstance(host.failure, InternalError), repr(host.failure.__cause__)
    assert host.failure is None or host.failure.participant != "c", f"blamed on one that behaves: {host.failure}"
    if not host.over:
        host.arbiter.check_invariants()


class Good:
    """A participant that does all it should: with a ledger, which also checks that the answers make sense."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._ledger = Ledger("c", Join(("t",), (Subscription("t"),)))
        self._tell()

    def _tell(self) -> None:
        self._peer.send(encode_events(self._ledger.take_outbox()))

    def go_on(self) -> None:
        """Take what was answered, and go on until there is something to wait for."""
        if self._ledger.state is State.LEFT:
            return
        for plain in self._peer.read():
            answer = decode_answer(msgpack.encode(plain))
            assert isinstance(answer, StartRun | Grant | Abort), answer
            if isinstance(answer, Abort):
                assert answer.participant in ("a", "b", "g"), answer
                with pytest.raises(LossError):
                    self._ledger.receive(answer)
                return
            messages: list[Message] | None = self._ledger.receive(answer)
            while messages is not None and not self._ledger.ended:
                if self._ledger.now + 2 <= TIME_MAX:  # After the last time nothing can be sent.
                    self._ledger.publish("t", b"c", at=self._ledger.now + 2)
                messages = self._ledger.next()
            if self._ledger.ended:
                self._ledger.leave()
            self._tell()


def fuzz(seed: int, inputs: int) -> tuple[int, int]:
    """Try so many inputs; return how many were worth keeping, and how many branches were taken."""
    random = Random(seed)
    corpus: list[list[Step]] = [[]]
    with Coverage() as coverage:
        for number in range(inputs):
            steps = changed(random, random.choice(corpus[-50:] if number % 2 else corpus), corpus)
            coverage.news = 0
            try:
                execute(steps)
            except BaseException as error:
                error.add_note(f"fuzz(seed={seed}), input {number}: execute({steps!r})")
                raise
            if coverage.news:
                corpus.append(steps)
        return len(corpus), coverage.count()


def test_the_fuzzer_finds_its_way_past_the_decoder() -> None:
    kept, _ = fuzz(seed=0, inputs=150)
    assert kept > 20 or not builds.reason  # It goes by branches, which compiled modules don't show.


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 9))
def test_nothing_that_is_sent_harms_host_or_others(seed: int, record_property: Callable[[str, object], None]) -> None:
    kept, branches = fuzz(seed, inputs=20_000)
    record_property(
        "summary", {"fuzzed inputs": 20_000, "of them kept": kept, "branches taken, added up over seeds": branches}
    )
