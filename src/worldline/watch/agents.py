"""Agents in spacetime as a page that is a file: what was recorded of them, or what their outcome says."""

from __future__ import annotations

from collections.abc import Sequence

from worldline.model.text import printable
from worldline.pictures.page import Page
from worldline.pictures.spacetime.happenings import failures_of, told
from worldline.spacetime.outcome import AgentRecord, Scene, tell
from worldline.watch.live import LiveRun


def agents_page(records: Sequence[AgentRecord], scene: Scene, title: str) -> Page:
    """Return the page of a run that was traced."""
    live = LiveRun({"name": printable(title or "spacetime"), "room": "spacetime", "file": ""}, bytes_max=2**62)
    tell(live.observer, scene, records, None)
    failures = failures_of(told(records, scene.n, scene.until, None)) if records else []
    return live.page("; ".join(failures) or None)
