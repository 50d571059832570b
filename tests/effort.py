"""How much of a search one run of the tests does.

`make test` runs them twice: under another hash seed, and with the kernel as plain Python. Rooms without compiled code
have only the hash seed to fear the second time, and do a part of their searches then.
"""

from __future__ import annotations

import os

IS_SECOND_PASS = os.environ.get("WORLDLINE_UNCOMPILED", "0") not in ("", "0")


def share_of(count: int) -> int:
    """Return how many of so many examples to try, in a room without compiled code: all, or a third."""
    return -(-count // 3) if IS_SECOND_PASS else count
