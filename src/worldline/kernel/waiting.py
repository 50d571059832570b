"""What a process can wait for, resources among it, and what it is then given.

`process._wait` looks at what was yielded. If it has happened already, the process goes on at once with its value.
Otherwise the process is noted where that happens (a signal's `waiters`, an inbox's `readers`), which is then what it
`_waits_on`: that calls `process._give(value)` when it happens, and forgets the process by `forget(process)` if the
process goes on for another reason, such as a limit or an interruption. Whatever else is to be waited for needs just
these two.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any, Final, NamedTuple, NoReturn

from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

NO_LIMIT: Final = -1


class EntityMessage(NamedTuple):
    """What an entity gets: as a participant's `model.Message`, but its payload can be any value, not just bytes."""

    arrival: int
    sent: int
    sender: str
    sequence: int
    copy: int
    topic: str
    payload: Any


class Interrupt(Exception):  # noqa: N818 - It isn't an error.
    """Raised in a process that was interrupted, where it waits."""

    def __init__(self, cause: Any = None) -> None:
        super().__init__(cause)
        self.cause = cause


def refuse_combination() -> NoReturn:
    """Say what to write instead of ``a | b`` and ``a & b``."""
    raise ModelError(
        "what a process waits for can't be combined by | or &",
        advice="for both, yield one after the other; for either, let each fire the same signal, and yield that; for a "
        'time limit, yield wait(signal, limit="5s")',
    )


class Awaited:
    """Whatever a process can wait for, besides a process."""

    __slots__ = ()

    def __or__(self, _: object) -> NoReturn:
        refuse_combination()

    __ror__ = __and__ = __rand__ = __or__


class Receive(Awaited):
    """The wish for a message; see `receive`."""

    __slots__ = ("limit", "topic")

    def __init__(self, topic: str | None, limit: int) -> None:
        self.topic = topic
        self.limit = limit


class Wait(Awaited):
    """The wish for a signal, or for the end of a process, with a limit; see `wait`."""

    __slots__ = ("default", "limit", "what")

    def __init__(self, what: Any, limit: int, default: Any) -> None:
        self.what = what
        self.limit = limit
        self.default = default


def receive(topic: str | None = None, *, limit: TimeLike | None = None) -> Receive:
    """Wait for a message: ``message = yield receive()``.

    With a topic, others stay in the inbox. With a limit, the process is given None once it has passed.
    """
    return Receive(topic, NO_LIMIT if limit is None else as_time(limit, "a limit"))


def wait(what: Any, *, limit: TimeLike | None = None, default: Any = None) -> Wait:
    """Wait for a signal or a process's end: ``value = yield wait(signal, limit="5ms")``; if it takes longer, `default`.

    Where None may be what the signal is fired with, or what the process returns, another default tells the two apart.
    """
    if limit is None and default is not None:
        raise UsageError("a wait without a limit has no use for a default", advice='give it one: limit="1s"')
    return Wait(what, NO_LIMIT if limit is None else as_time(limit, "a limit"), default)


class EntityInbox:
    """The messages that no handler takes, and the processes that wait for one."""

    __slots__ = ("messages", "readers")

    def __init__(self) -> None:
        self.messages: deque[EntityMessage] = deque()
        self.readers: list[tuple[str | None, Any]] = []

    def take(self, topic: str | None) -> EntityMessage | None:
        """Return the first message of the topic that has come already."""
        messages = self.messages
        if topic is None:
            return messages.popleft() if messages else None
        for place, message in enumerate(messages):
            if message.topic == topic:
                del messages[place]
                return message
        return None

    def reader(self, topic: str) -> Any:
        """Return the process that has waited longest for such a message, and let it go; None if there is none."""
        for place, (wanted, process) in enumerate(self.readers):
            if wanted is None or wanted == topic:
                del self.readers[place]
                return process
        return None

    def forget(self, process: Any) -> None:
        self.readers = [reader for reader in self.readers if reader[1] is not process]


class Signal(Awaited):
    """Something that happens once inside an entity, and that its processes can wait for: ``value = yield signal``."""

    __slots__ = ("fired", "value", "waiters")

    def __init__(self) -> None:
        self.fired = False
        self.value: Any = None
        self.waiters: list[Any] = []

    def fire(self, value: Any = None) -> None:
        """Let all processes that wait go on, in the order in which they came; one that comes later doesn't wait."""
        if self.fired:
            raise ModelError("a signal was fired twice", advice="make a new one for the next time")
        self.fired = True
        self.value = value
        waiters, self.waiters = self.waiters, []
        for process in waiters:
            process._give(value)

    def forget(self, process: Any) -> None:
        self.waiters = [waiter for waiter in self.waiters if waiter is not process]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {'fired' if self.fired else f'{len(self.waiters)} waiting'}>"


def refuse(yielded: object) -> ModelError:
    """Say why a process can't wait for this."""
    advice = "yield a number of nanoseconds, receive(), a signal or a process"
    if isinstance(yielded, float):
        advice = "times are whole nanoseconds: yield 5 * MS, or round(seconds * SECOND)"
    return ModelError(f"a process can't wait for {shown(yielded)}", advice=advice)


# -- Something of which there is only so much, for the processes of one entity


class Claim(Signal):
    """A claim to a resource: fires when it is granted. As a context it gives back what was granted, or the claim up."""

    __slots__ = ("_resource", "_was_awaited")

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._resource = resource
        self._was_awaited = False  # By a process that doesn't wait any more.

    def forget(self, process: object) -> None:
        super().forget(process)
        self._was_awaited = True

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.fired and not self.waiters and not self._was_awaited:
            self._resource.check_withdrawn(self)
        self._resource.release(self)


class Resource:
    """So many that can be held at a time, first come, first served: ``with machine.acquire() as turn: yield turn``."""

    def __init__(self, capacity: int = 1) -> None:
        if type(capacity) is not int or capacity < 1:
            raise ConfigurationError(f"a resource can't have a capacity of {shown(capacity)}", advice="use at least 1")
        self.capacity = capacity
        self._held: list[Claim] = []
        self._waiting: deque[Claim] = deque()

    @property
    def held(self) -> int:
        """How many are held."""
        return len(self._held)

    @property
    def waiting(self) -> int:
        """How many claims wait."""
        return len(self._waiting)

    def acquire(self) -> Claim:
        """Claim one."""
        turn = Claim(self)
        self._waiting.append(turn)
        self._grant()
        return turn

    def release(self, turn: Claim) -> None:
        """Give one back, or give up the claim if it isn't granted yet. A second time does nothing."""
        if turn in self._held:
            self._held.remove(turn)
            self._grant()
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def check_withdrawn(self, turn: Claim) -> None:
        """Refuse a claim that no process has ever waited for: what was done under it was done without it."""
        if turn in self._waiting:
            raise ModelError(
                "a with block of a resource was left before its turn, and nothing has waited for it",
                advice="write yield turn at its beginning, or resource.release(turn) to give it up",
            )

    def __repr__(self) -> str:
        return f"<Resource, {self.held} of {self.capacity} held, {self.waiting} waiting>"

    def _grant(self) -> None:
        while self._waiting and len(self._held) < self.capacity:
            turn = self._waiting.popleft()
            self._held.append(turn)
            turn.fire(turn)
