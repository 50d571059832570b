"""What a participant declares at joining: the same for a program in this process and for a client far away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from worldline.lock import Join, Ledger, Subscription
from worldline.model.buffer import Buffer, as_buffer
from worldline.model.errors import ConfigurationError
from worldline.model.message import check_name
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

Subscribes = Iterable[str] | Mapping[str, Buffer | str]


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a participant may send, what it listens to, and what it promises once and for all.

    `publishes` of None means any topic; naming the topics lets others go ahead of this participant where it can't reach
    them. `subscribes` is a list of topics, or a mapping from topics to buffers. With a `period` it publishes only at
    multiples of that time, and promises by itself what follows from it. `latency_least` holds for all of its sends.
    `controls` is needed to invite or stop.
    """

    publishes: Iterable[str] | None = None
    subscribes: Subscribes = ()
    period: TimeLike = 0
    latency_least: TimeLike = 0
    controls: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.publishes, str) or isinstance(self.subscribes, str):
            raise ConfigurationError("topics are given as a list, not as one text")
        # Kept as they are now: an iterator would be used up by the first of several runs.
        if self.publishes is not None:
            object.__setattr__(self, "publishes", tuple(self.publishes))
        topics = self.subscribes
        buffers = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "unbounded")
        object.__setattr__(self, "subscribes", buffers)

    def join(self) -> Join:
        """Return what is said at joining, checked."""
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

    def ledger(self, name: str, *, keep_journal: bool = False) -> Ledger:
        """Return the ledger of a participant of this name that declares this."""
        return Ledger(name, self.join(), period=as_time(self.period, "a period"), keep_journal=keep_journal)

    def as_plain(self) -> dict[str, object]:
        """Return it as data from which `Declaration(**data)` makes an equal one, and that JSON can hold."""
        assert isinstance(self.subscribes, dict)
        return {
            "publishes": self.publishes,
            "subscribes": {topic: str(as_buffer(buffer)) for topic, buffer in self.subscribes.items()},
            "period": as_time(self.period, "a period"),
            "latency_least": as_time(self.latency_least, "the least latency of a participant's sends"),
            "controls": self.controls,
        }
