"""What a participant keeps when it crashes: its disk, so to speak."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from copy import deepcopy
from typing import Any


class StableStore(MutableMapping[str, Any]):
    """A mapping whose values are copied on the way in and out, so that nothing else survives by being in one of them.

    Whoever changes a value has to store it again.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return deepcopy(self._values[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = deepcopy(value)

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StableStore({self._values!r})"
