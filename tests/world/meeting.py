"""Places to meet that no other test knows."""

from __future__ import annotations

from tests.ports import free_port
from worldline.world.discovery import DiscoveryOptions

PATIENCE_S = 60.0
"""How long a test waits for what must happen, on a machine that is busy with other things."""

NEVER_S = 1000.0
"""After how long a silent peer is missed where a test is about other ways to go."""


def free_place() -> str:
    return f"tcp/127.0.0.1:{free_port()}"


def here(meeting_point: str, stale_s: float = NEVER_S) -> DiscoveryOptions:
    return DiscoveryOptions(meeting_point=meeting_point, stale_s=stale_s)
