"""Chooses the build of the engine: compiled where there is one, unless WORLDLINE_UNCOMPILED is set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

UNCOMPILED = "WORLDLINE_UNCOMPILED"


def check_wanted() -> None:
    if os.environ.get(UNCOMPILED, "0") not in ("", "0"):
        raise ImportError(f"{UNCOMPILED} is set")


if TYPE_CHECKING:
    from random import Random

    from worldline.kernel.engine import Core, Engine, Handlers, Process, Timer, advance, handlers_of

    build = ""

    class Draws(Random):
        """What it is to whoever draws: it isn't a `Random`, which is large, but has its methods, and two more."""

        def __init__(self, seed: int, *names: str) -> None: ...
        def exponential(self, mean: float | str) -> int: ...
        def spread(self, least: int, number: int) -> int: ...
else:
    try:
        check_wanted()
        from worldline.kernel._draws import Draws
        from worldline.kernel._engine import Core, Engine, Handlers, Process, Timer, advance, handlers_of

        build = "compiled"
    except ImportError as reason:
        from worldline.kernel.draws import Draws
        from worldline.kernel.engine import Core, Engine, Handlers, Process, Timer, handlers_of
        from worldline.kernel.plain import advance

        build = f"plain Python ({reason})"

__all__ = ["Core", "Draws", "Engine", "Handlers", "Process", "Timer", "advance", "build", "handlers_of"]
