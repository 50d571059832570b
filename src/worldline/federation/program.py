"""A federation as its author writes it: programs by name, and the network between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from worldline.federation.participant import Participant
from worldline.lock import Join, Subscription
from worldline.model import Network, Plan, plan
from worldline.model.buffer import Buffer, as_buffer
from worldline.model.errors import ConfigurationError
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

Subscribes = Iterable[str] | Mapping[str, Buffer | str]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What one participant does, and what it declares at joining.

    `publishes` of None means any topic; naming the topics lets others go ahead of this participant where it can't
    reach them. `subscribes` is a list of topics, or a mapping from topics to buffers. `controls` is needed to invite
    or stop. A `guest` isn't there from the beginning but when somebody invites it.
    """

    run: Callable[[Participant], object]
    publishes: Iterable[str] | None = None
    subscribes: Subscribes = ()
    latency_least: TimeLike = 0
    controls: bool = False
    guest: bool = False

    def join(self) -> Join:
        """Return the declaration, checked."""
        if isinstance(self.publishes, str) or isinstance(self.subscribes, str):
            raise ConfigurationError("topics are given as a list, not as one text")
        topics = self.subscribes
        buffers = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, "unbounded")
        return Join(
            publishes=None
            if self.publishes is None
            else tuple(check_name(topic, "a topic") for topic in self.publishes),
            subscribes=tuple(Subscription(check_name(topic, "a topic"), as_buffer(b)) for topic, b in buffers.items()),
            latency_least=as_time(self.latency_least, "the least latency of a participant's sends"),
            controls=self.controls,
        )


@dataclass(frozen=True)
class Federation:
    """Programs by name, the network between them, the seed, and the end of the run if it has a fixed one."""

    programs: Mapping[str, Program]
    network: Network = field(default_factory=Network)
    seed: int = 0
    end: TimeLike | None = None

    def plan(self) -> Plan:
        """Return the plan of the run, checked."""
        roster = [name for name, program in self.programs.items() if not program.guest]
        return plan(roster, network=self.network, seed=self.seed, end=self.end)
