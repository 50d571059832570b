"""What SimPy raises in processes."""

from __future__ import annotations

from typing import Any


class SimPyException(Exception):
    """The root of SimPy's own exceptions."""


class Interrupt(SimPyException):
    """Thrown into a process that is interrupted, for a cause."""

    def __init__(self, cause: Any) -> None:
        super().__init__(cause)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.cause!r})"

    @property
    def cause(self) -> Any:
        return self.args[0]
