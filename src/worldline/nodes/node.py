"""The node: what users write. It is created with what it knows of the network, and executes events.

An event is a message of its algorithm, or something that the simulator does to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn
from typing import Protocol as Interface

from msgspec import Struct

from worldline.kernel.draws import Draws
from worldline.model.errors import ModelError, UsageError
from worldline.model.time import TimeLike


class Protocol(Struct, frozen=True, gc=False):
    """A message of the algorithm, and the local link that it came in by."""

    message: Any
    link: int


class Meta(Struct, frozen=True):
    """What isn't part of the algorithm: the simulator acts on the node."""

    def __str__(self) -> str:
        """Write it as traces do: ``Start``, ``Link down 2``, ``Timer election``."""
        name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__).strip()
        values = [str(getattr(self, field)) for field in self.__struct_fields__]
        return " ".join((name.capitalize(), *values)).rstrip()


class Start(Meta, frozen=True):
    """The algorithm begins at this node."""


class Recover(Meta, frozen=True):
    """The node is back after a crash: new, but for what it keeps in its `stable` attributes."""


class LinkDown(Meta, frozen=True):
    """A link carries nothing any more, until it is up again."""

    link: int


class LinkUp(Meta, frozen=True):
    """A link that was down carries messages again."""

    link: int


class NeighborAdded(Meta, frozen=True):
    """There is a new link; it has the next free number."""

    link: int


class NeighborRemoved(Meta, frozen=True):
    """A link is gone for good; its number isn't used again."""

    link: int


class Timer(Meta, frozen=True):
    """A timer that the node has set has run out."""

    name: str


Event = Protocol | Meta


Send = Callable[[Any, int], None]


class Executes(Interface):
    """All that the simulator requires of a node. Its class takes the arguments of `Node`; a `Node` can do more."""

    def execute(self, event: Event, /) -> None: ...


class NodeContext(Interface):
    """What a node can do apart from sending."""

    @property
    def now(self) -> int: ...
    @property
    def random(self) -> Draws: ...
    def stream(self, name: str, /) -> Draws: ...
    @property
    def links(self) -> list[int]: ...
    def log(self, text: object, /) -> None: ...
    def measure(self, what: str, value: float, /) -> None: ...
    def set_timer(self, delay: TimeLike, name: str, /) -> None: ...
    def cancel_timer(self, name: str, /) -> bool: ...
    def weight(self, link: int, /) -> int: ...


class NoHost:
    """Stands for the host of a node that hasn't been started yet; or that has come back from a worker (`node`)."""

    def __init__(self, node: int | None = None) -> None:
        self._node = node

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._node is None:
            raise ModelError(f"a node has no {name} while it is being created", advice="use it from its Start on")
        raise UsageError(f"node {self._node} can't act any more", advice="its run is over, in another process")

    def transmit(self, _message: Any, _link: int) -> NoReturn:
        self.__getattr__("send")


class Node:
    """One participant of a distributed algorithm.

    It knows how many nodes there are, its own global id, and its neighbors only as local links, numbered from 0. Derive
    from it and write `execute`; take parameters of the algorithm as keyword arguments.

    A crash wipes everything that a node has, except the attributes named in `stable`. Those named in `shows` are told
    to observers whenever they have changed: pages show them.
    """

    stable: ClassVar[tuple[str, ...]] = ()
    shows: ClassVar[tuple[str, ...]] = ()

    _host: NodeContext = NoHost()

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send) -> None:  # noqa: A002
        self.num_nodes = num_nodes
        self.id = id
        self.num_neighbors = num_neighbors
        self.send = send

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id} of {self.num_nodes}, {self.num_neighbors} neighbors)"

    def execute(self, event: Event) -> None:
        """Act on an event. It takes no time; what is sent arrives later."""
        raise NotImplementedError

    def broadcast(self, message: Any, *, but: int | None = None) -> None:
        """Send a message to every neighbor, except over one link if it is named."""
        for link in self.links:
            if link != but:
                self.send(message, link)

    def route(self, root: int) -> tuple[int | None, int | None]:
        """Return the local link that leads toward a node, and the distance, for pictures; None means unknown."""
        return None, None

    # -- What the simulator offers, from Start on

    @property
    def now(self) -> int:
        """The simulated time, in nanoseconds. For inspection: no algorithm should need it."""
        return self._host.now

    @property
    def random(self) -> Draws:
        """The node's own random draws, like `random.Random`; determined by the run's seed and the node's id."""
        return self._host.random

    def stream(self, name: str) -> Draws:
        """Return a named stream of draws, independent of `random`: drawing from one doesn't affect the other."""
        return self._host.stream(name)

    @property
    def links(self) -> list[int]:
        """The local links that exist: 0 to `num_neighbors` - 1, except those whose neighbor was removed."""
        return self._host.links

    def log(self, text: object) -> None:
        """Write a line to the trace."""
        self._host.log(text)

    def measure(self, what: str, value: float) -> None:
        """Measure a number, as of now: it is in the outcome's monitors, for sweeps and observers, and in no digest."""
        self._host.measure(what, value)

    def set_timer(self, delay: TimeLike, name: str = "") -> None:
        """Schedule a `Timer` event. Setting a timer of the same name again replaces it."""
        self._host.set_timer(delay, name)

    def cancel_timer(self, name: str = "") -> bool:
        """Cancel a timer; return whether it was running."""
        return self._host.cancel_timer(name)

    def weight(self, link: int) -> int:
        """The weight of a link, 1 unless the topology says otherwise."""
        return self._host.weight(link)
