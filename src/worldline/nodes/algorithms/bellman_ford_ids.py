"""Bellman–Ford with ids.

Instead of whole routing tables, single entries go round. Every node announces its own id to its neighbors, as being at
distance 0. A node that hears of an id, and is nearer to it over the link by which it came than by any way that it has
known, notes the distance and the link, and passes both the id and its own distance on to all neighbors but that one.
Messages are plain pairs of an id and the sender's distance.

It is right for the reasons for which `bellman_ford` is: a distance that goes round is the length of a way that exists,
it only ever shrinks, and what made it shrink was told to all nodes that it could concern. (The neighbor that it came
from is none of these: back over that link it would be no shorter than what it has.) Messages may overtake each other,
none may get lost. A node that hears of others before its own start passes that on as well.

How many messages there are depends on which messages are faster: n times 2m - (n - 1) if each id comes on its shortest
way first, more for each time that a longer one comes before it.
"""

from __future__ import annotations

from typing import Any

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.bellman_ford import Route, nearer, shortest
from worldline.nodes.node import Event, Node, Protocol, Start


class BellmanFordIds(Node):
    """Shortest paths: ids go round with their distances; who is nearer than it knew passes it on."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # Only what is known, and no pairs: large networks are what this is measured on.
        self.distances = {self.id: 0}
        self.links_to: dict[int, int] = {}
        self._weights: dict[int, int] = {}  # Of all links.

    @property
    def routing(self) -> list[Route]:
        """The same as a routing table."""
        return [(self.distances.get(goal), self.links_to.get(goal)) for goal in range(self.num_nodes)]

    def route(self, root: int) -> tuple[int | None, int | None]:
        return self.links_to.get(root), self.distances.get(root)

    def execute(self, event: Event) -> None:
        # The first branch is where all the time goes: hence no match, no log and no broadcast.
        if type(event) is Protocol:
            if not self._weights:
                self._look_around()
            goal, distance = event.message
            link = event.link
            distance += self._weights[link]
            known = self.distances.get(goal)
            if known is None or distance < known:
                self.distances[goal] = distance
                self.links_to[goal] = link
                message = (goal, distance)
                send = self.send
                for each in self._weights:
                    if each != link:
                        send(message, each)
        else:
            self._look_around()  # Whatever else happens may have changed the links.
            if type(event) is Start:
                self.broadcast((self.id, 0))

    def _look_around(self) -> None:
        self._weights = {link: self.weight(link) for link in self.links}


model = Algorithm(
    name="bellman-ford-ids",
    node=BellmanFordIds,
    topology="random:12,degree=4,connected,weights=1-9",
    properties=(shortest, nearer),  # At the end only: large networks are what this one is for.
    least={"nodes": 1},
)
