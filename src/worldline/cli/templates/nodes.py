"""Nodes on a ring say hello. Try: worldline nodes --file nodes.py --seeds 1000 --faults crash=1"""

from __future__ import annotations

from typing import Any

from worldline.nodes import Algorithm, Event, Node, Start, at_end


class Greeter(Node):
    """Says hello to its neighbors, and counts what it hears."""

    heard = 0

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.broadcast("hello")
        else:
            self.heard += 1


@at_end("each node has heard all of its neighbors")
def all_heard(run: Any) -> bool:
    return all(node.heard == node.num_neighbors for node in run.nodes)


model = Algorithm(name="greetings", node=Greeter, topology="ring:5", properties=(all_heard,))
