"""`worldline view`: look at a recording, or at two side by side, in a browser; and `--watch` for a run that goes on."""

from __future__ import annotations

import os
import signal
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from worldline.cli.console import PlainConsole, remark
from worldline.cli.options import PageOptions, takes
from worldline.cli.runner import interruptible
from worldline.federation.operator import Operator
from worldline.federation.registry import running
from worldline.model import Interrupted, LossError
from worldline.model.text import printable
from worldline.recording import Recording
from worldline.recording.comparing import compare_recordings
from worldline.watch.live import LiveRun
from worldline.watch.recorded import recorded_show
from worldline.watch.server import LOOPBACK, PageServer


@takes(
    """
    FILE  A recording.
    OTHER  Another recording, shown beside it, with the first difference.
    --port
    --host
    --no-browser
    """
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


# A run that goes on, shown on a page: `--watch`.


class LivePage:
    """The page of a run, there from before the run until its user ends it, however the run ends.

    One that `is_served` can be reached by operators, through the server in this process.
    """

    def __init__(self, name: str, room: str, seed: int, options: PageOptions, *, is_served: bool) -> None:
        facts = {"name": printable(name), "room": room, "seed": seed, "file": ""}
        self._run = LiveRun(facts, _operator if is_served else None)
        self._options = options
        self._server = PageServer([self._run.show], host=options.host, port=options.port)

    def __enter__(self) -> LiveRun:
        self._server.__enter__()
        _announce(self._server, self._options)
        return self._run

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                self._run.failed(error)
            if not isinstance(error, Interrupted):
                how = "is over" if error is None else f"has failed ({error})"
                remark(f"the run {how}; its page stays at {self._server.url} until Ctrl-C")
                with interruptible_quietly():
                    signal.pause()
        finally:
            self._server.__exit__(None, None, None)


def _operator() -> Operator:
    """Connect to the run that this process serves."""
    entry = next((each for each in running() if each.process == os.getpid()), None)
    if entry is None:
        raise LossError("the run doesn't listen yet")
    return Operator(entry.address, token=entry.token, process=entry.process)
