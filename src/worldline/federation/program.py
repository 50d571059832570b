"""A federation as its author writes it: programs by name, and the network between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction

from worldline.federation.participant import Participant
from worldline.lock import Join, Subscription
from worldline.model import Network, Plan, plan
from worldline.model.buffer import Buffer, as_buffer
from worldline.model.errors import ConfigurationError, shown
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

Subscribes = Iterable[str] | Mapping[str, Buffer | str]


@dataclass(frozen=True)
class Program:
    """What one participant does, and what it declares at joining.

    `publishes` of None means any topic; naming the topics lets others go ahead of this participant where it can't reach
    them. `subscribes` is a list of topics, or a mapping from topics to buffers. `latency_least` holds for all of its
    sends. `controls` is needed to invite or stop. A `guest` comes when somebody invites it.
    """

    run: Callable[[Participant], object]
    _: KW_ONLY
    publishes: Iterable[str] | None = None
    subscribes: Subscribes = ()
    latency_least: TimeLike = 0
    controls: bool = False
    guest: bool = False

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise ConfigurationError(f"{shown(self.run)} isn't a function of a participant")
        if isgeneratorfunction(self.run) or iscoroutinefunction(self.run) or isasyncgenfunction(self.run):
            raise ConfigurationError(
                f"{getattr(self.run, '__name__', 'the program')} is a generator or a coroutine, which would never run",
                advice="write an ordinary function; advance() and next() wait by themselves",
            )
        if isinstance(self.publishes, str) or isinstance(self.subscribes, str):
            raise ConfigurationError("topics are given as a list, not as one text")
        # Kept as they are now: an iterator would be used up by the first of several runs.
        if self.publishes is not None:
            object.__setattr__(self, "publishes", tuple(self.publishes))
        topics = self.subscribes
        buffers = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "unbounded")
        object.__setattr__(self, "subscribes", buffers)

    def join(self) -> Join:
        """Return the declaration, checked."""
        assert isinstance(self.subscribes, dict)
        topics = None if self.publishes is None else tuple(check_name(topic, "a topic") for topic in self.publishes)
        return Join(
            publishes=topics,
            subscribes=tuple(
                Subscription(check_name(topic, "a topic"), as_buffer(buffer))
                for topic, buffer in self.subscribes.items()
            ),
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
        if not isinstance(self.programs, Mapping):
            raise ConfigurationError(f"{shown(self.programs)} isn't a mapping from names to programs")
        for name, program in self.programs.items():
            if not isinstance(program, Program):
                raise ConfigurationError(
                    f"{name}: {shown(program)} isn't a Program", advice="write Program(function, ...)"
                )
        guests = [name for name, program in self.programs.items() if program.guest]
        roster = [name for name, program in self.programs.items() if not program.guest]
        return plan(roster, guests=guests, network=self.network, seed=self.seed, end=self.end)
