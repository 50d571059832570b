"""Ricart and Agrawala's mutual exclusion, and that its properties notice when it is wrong."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.nodes.trying import tried
from worldline.nodes import Violation
from worldline.nodes.algorithms.ricart_agrawala import Request, RicartAgrawala, model


@pytest.mark.parametrize(
    ("topology", "seeds"), [("clique:1", 1), ("clique:2", 10), ("clique:4", 30), ("clique:6,shuffled", 4)]
)
def test_one_at_a_time_and_everybody_in_its_turn(topology: str, seeds: int) -> None:
    for seed in range(seeds):
        run = tried(model, seed, topology)
        assert [node.entries for node in run.nodes] == [3] * run.num_nodes


def test_replies_are_kept_back() -> None:
    """By hand: all ask at once with the same number, so the ids decide; the last one waits for two to leave."""
    everywhere_slow = structs.replace(model, latency="10s")
    run = tried(everywhere_slow, 0, "clique:3", parameters={"rounds": 1, "pause": "0ns", "stay": "1s"})
    # 0 has its replies at 20 s and stays for 1 s; its own reply to 1 takes 10 s, and so on; then 2 stays, and all rest.
    assert run.now == 1 + 10**9 * (20 + 1 + 10 + 1 + 10 + 1)


# -- Properties can fail


class Obliging(RicartAgrawala):
    """Replies at once, whatever it wants itself."""

    def comes_first(self, request: Request) -> bool:
        return False


class WithoutIds(RicartAgrawala):
    """Leaves it open which of two requests with the same number comes first, so each waits for the other."""

    def comes_first(self, request: Request) -> bool:
        return self.request is not None and (self.inside or self.request[0] <= request.timestamp)


class Reversed(RicartAgrawala):
    """Takes the larger one of two requests for the first."""

    def comes_first(self, request: Request) -> bool:
        return self.request is not None and (self.inside or self.request > (request.timestamp, request.sender))


class Chatty(RicartAgrawala):
    """Tells everybody that it has left."""

    def release(self) -> None:
        super().release()
        self.broadcast(None)


class Patient(RicartAgrawala):
    """Replies only on leaving, or if it doesn't want to be inside."""

    def comes_first(self, request: Request) -> bool:
        return self.request is not None


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Obliging, "property failed: at most one node is inside: "),
        (Reversed, "property failed: requests are granted in their order: "),
        (WithoutIds, "property failed: every node was inside as often as it wanted: "),
        (Patient, "every node was inside as often as it wanted"),
        (Chatty, r"property failed: each entry takes 2 \(n - 1\) messages: 12 entries took 108 messages"),
    ],
)
def test_properties_notice(node: type[RicartAgrawala], text: str) -> None:
    with pytest.raises(Violation, match=text):
        tried(structs.replace(model, node=node), 0)
