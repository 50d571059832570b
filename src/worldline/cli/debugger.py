"""The debugger for participants that run in this process: `breakpoint()` leads here.

It talks with the user, so it needs the terminal for itself as long as it does, and standard output as it is.
"""

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Debugger(pdb.Pdb):
    """Python's own, which has `make_way` called before it says anything."""

    def __init__(self, make_way: Callable[[], None], output: Any) -> None:
        super().__init__(nosigint=True)
        self._make_way = make_way
        self._output = output
        self.stdout = output

    def interaction(self, frame: FrameType | None, *what: Any) -> None:
        self._make_way()
        usual, sys.stdout = sys.stdout, self._output
        try:
            super().interaction(frame, *what)
        finally:
            sys.stdout = usual

    def do_EOF(self, arg: str) -> bool | None:  # noqa: N802 - Python's name.
        self.message("there is no input to take commands from, so the debugger quits (run it in a terminal)")
        return super().do_EOF(arg)
