"""Rare branches, which a program takes in a simulation now and then: ``if sometimes("drop cache"): ...``.

Whether one is taken is drawn by name, so a search takes it on some seeds and shrinks towards not taking it, and a table
can replace it. Where no participant's program runs, in production, the answer is False. Little is loaded for that.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

CHANCE = 0.1
"""How often a branch is taken unless its author says otherwise."""


class Drawing(Protocol):
    """A participant, or what draws for it."""

    def sometimes(self, branch: str, chance: float = CHANCE) -> bool: ...


# Threads have a context of their own each, and so have greenlets and tasks: it is that of the program which runs.
_drawing: ContextVar[Drawing | None] = ContextVar("worldline: what draws for the program", default=None)


def sometimes(branch: str, chance: float = CHANCE) -> bool:
    """Return whether to take a rare branch: drawn by its name in a simulation, elsewhere False."""
    drawing = _drawing.get()
    return drawing is not None and drawing.sometimes(branch, chance)


def draw_for(drawing: Drawing) -> None:
    """Let this participant's program, which runs in this context, have rare branches."""
    _drawing.set(drawing)
