"""Ctrl-C while a command is being loaded: it ends the process, since modules that are half loaded can't be left."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130


def leave_at_once() -> None:
    """From now on an interruption ends the process, unless somebody has said otherwise: nothing has begun."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """From now on an interruption is a KeyboardInterrupt, as usual: all is loaded."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> NoReturn:
    os._exit(INTERRUPTED)
