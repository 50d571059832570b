"""Whoever looks on while a metasimulator runs: a recording, the public LCM, and an observer of the user's own.

All that can be refused is refused before the run. The recording begins when all clients are there: their names are part
of it, and may not be known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from worldline.federation.outcome import FederationOutcome
from worldline.history.guarding import check_observer
from worldline.history.observer import LOG, Observer
from worldline.history.several import SeveralObservers
from worldline.launch.lcm_types import ENCODING
from worldline.launch.topics import lcm_topic
from worldline.metasim.public import PublicLcm
from worldline.model import Plan
from worldline.recording import Recorder, RunRecording, Shelf
from worldline.recording.output import RecordingTarget
from worldline.recording.writer import Schema


class Onlookers(SeveralObservers):
    """Tells all of them everything. `plan` is asked for when the run begins."""

    def __init__(
        self,
        plan: Callable[[], Plan],
        *,
        observer: Observer | None = None,
        record: Path | str | None = None,
        types: Mapping[str, type[Any]] | None = None,
        public: str | Iterable[str] = (),
        serve_lcm: str | None = None,
    ) -> None:
        self._plan = plan
        described = {channel: lcm_topic(kind) for channel, kind in (types or {}).items()}
        self._schemas = {
            channel: Schema(topic.schema_name, topic.schema_encoding, topic.schema)
            for channel, topic in described.items()
        }
        self._recording = None if record is None else RunRecording(Shelf(record), self._recorder)
        self._begun = False
        self._closed = False
        self.public = PublicLcm(public, serve=serve_lcm) if public or serve_lcm is not None else None
        if observer is not None:
            check_observer(observer)
        super().__init__(each for each in (observer, self.public) if each is not None)

    def open(self) -> None:
        """Open what can be opened before the run."""
        if self.public is not None:
            self.public.open()

    def _recorder(self, target: RecordingTarget) -> Recorder:
        return Recorder(
            target, self._plan(), encoding=ENCODING, encodings={LOG: "json"}, schemas=self._schemas, overwrite=True
        )

    def began(self, who: str, at: int) -> None:
        if self._recording is not None and not self._begun:
            self._observers = (self._recording.__enter__().observer, *self._observers)
            self._begun = True
        super().began(who, at)

    def close(self, outcome: FederationOutcome | None, error: BaseException | None = None) -> None:
        """Finish, once, with what has come of the run, or with why nothing has."""
        if self._closed:
            return
        self._closed = True
        try:
            if self.public is not None:
                self.public.close(None if outcome is None else outcome.now)
        finally:
            if self._recording is not None and self._begun:
                if outcome is not None:
                    self._recording.conclude(outcome)
                self._recording.__exit__(None if error is None else type(error), error, None)
