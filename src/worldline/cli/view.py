"""`worldline view`: look at a recording, or at two side by side, in a browser; and `--watch` for a run that goes on."""

from __future__ import annotations

import os
import signal
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.cli.console import PlainConsole, remark
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model import Interrupted, UsageError
from worldline.recording import Recording
from worldline.recording.comparing import compare_recordings
from worldline.watch.recorded import recorded_show
from worldline.watch.server import LOOPBACK, PageServer


class PageOptions(Struct, frozen=True, kw_only=True):
    """Where a page is served, and whether a browser is opened."""

    port: int = 0
    host: str = LOOPBACK
    no_browser: bool = False


PAGE = """
    --port N  Port of the page (default: a free one). If it is taken, a free one is used.
    --host ADDRESS  Where to serve the page (default: 127.0.0.1). Others on the network can reach any other address.
    --no-browser  Print the page's address, and open no browser.
"""


@takes(
    """
    FILE  A recording.
    OTHER  Another recording, shown beside it, with the first difference.
    """,
    PAGE,
)
def view(file: Path, other: Path | None = None, *, page: PageOptions) -> None:
    """Look at a recording in a browser: its messages over time, signals, members; or at two side by side.

    It is served to this machine alone until Ctrl-C. Nothing is loaded from elsewhere.
    """
    recordings = [Recording(each) for each in (file, other) if each is not None]
    content: dict[str, Any] = {}
    if len(recordings) == 2:
        content["difference"] = _difference(*recordings)
    shows = [recorded_show(each) for each in recordings]
    with interruptible_quietly(), PageServer(shows, host=page.host, port=page.port, extras=content) as server:
        _announce(server, page)
        signal.pause()


def _difference(a: Recording, b: Recording) -> dict[str, Any]:
    """Say where two recordings differ, for the page."""
    found = compare_recordings(a.path, b.path)
    if found.is_same:
        return {"text": "no difference", "at": None, "chain": []}
    cause = found.cause
    text = "; ".join(line.strip() for line in found.cause_lines()[:3]) or "they differ"
    return {
        "text": text,
        "at": None if cause is None else cause.parting.at,
        "chain": [{"member": step.member, "at": step.at} for step in found.chain()],
    }


def _announce(server: PageServer, options: PageOptions) -> None:
    if options.port and f":{options.port}/" not in server.url:
        remark(f"port {options.port} is taken, so another one is used")
    if options.host not in (LOOPBACK, "::1", "localhost"):
        remark("the page is served without encryption to all who can reach this address and know its token")
    PlainConsole().print(f"page: {server.url}  (Ctrl-C ends it)")
    if not options.no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        with suppress(webbrowser.Error):
            webbrowser.open(server.url)


@contextmanager
def interruptible_quietly() -> Iterator[None]:
    """Let Ctrl-C end what waits here: that is how it is meant to end."""
    try:
        with interruptible():
            yield
    except Interrupted:
        pass
