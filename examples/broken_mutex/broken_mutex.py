"""Mutual exclusion after Ricart and Agrawala, with a mistake.

A node that wants to be inside asks all others, with a number and its own id. A node that is asked looks first whether
it has to keep its reply back: because it is inside, or because its own request is the smaller one. Then it notes by
which link to reply when it has left, and is done. Otherwise it makes its clock no smaller than the number it was asked
with, so that whatever it wants later comes later, and replies. Who has all replies goes inside.

All that Ricart and Agrawala ask for is there: requests are ordered by number and id, replies are kept back, every node
waits for all others, nothing is sent twice. Most runs go well. The properties are those of the correct algorithm:

    worldline nodes --file examples/broken_mutex/broken_mutex.py --seeds 1000

The mistake: a node that keeps its reply back returns before it has adjusted its clock. It has seen a large number and
forgets it. When it has left and replied, it may ask again with a number that is *smaller* than the request it has just
agreed to. The node that made that request may not be inside yet: the reply is still under way, or another node's is. It
takes the new request for an older one and replies at once, and then each of the two has the other's reply. It takes a
request that overtakes a reply, or a third node that is slow, so it is rare. The cure is in `RicartAgrawala.judge`: the
clock comes first.
"""

from __future__ import annotations

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.lamport_mutex import all_served, one_inside
from worldline.nodes.algorithms.ricart_agrawala import Request, RicartAgrawala, two_messages_for_each


class BrokenMutex(RicartAgrawala):
    """Mutual exclusion that looks right: all nodes are asked, and reply late if their own request is the older one."""

    def judge(self, request: Request, link: int) -> None:
        if self.comes_first(request):
            self.deferred.append(link)
            return
        self.clock = max(self.clock, request.timestamp)
        self.reply(link)


model = Algorithm(
    name="broken-mutex",
    node=BrokenMutex,
    topology="clique:3",
    properties=(one_inside, all_served, two_messages_for_each),
    least={"nodes": 1, "rounds": 1},
)
