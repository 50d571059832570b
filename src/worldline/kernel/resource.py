"""Something of which there is only so much, for the processes of one entity."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from worldline.kernel.waiting import Signal
from worldline.model.errors import ConfigurationError, ModelError, shown


class Claim(Signal):
    """A claim to a resource: fires when it is granted. As a context it gives back what was granted, or the claim up."""

    __slots__ = ("_resource", "_was_awaited")

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._resource = resource
        self._was_awaited = False  # By somebody who doesn't wait any more.

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
        """Refuse a claim that nobody has ever waited for: what was done under it was done without it."""
        if turn in self._waiting:
            raise ModelError(
                "a with block of a resource was left before its turn, and nothing has waited for it",
                advice="write yield turn at its beginning, or resource.release(turn) to give it up",
            )

    def _grant(self) -> None:
        while self._waiting and len(self._held) < self.capacity:
            turn = self._waiting.popleft()
            self._held.append(turn)
            turn.fire(turn)
