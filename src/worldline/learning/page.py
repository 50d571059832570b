"""Episodes on a page, while a learner plays them: one after the other on one axis, as if they were one long run."""

from __future__ import annotations

from typing import Any

from worldline.history.observer import LOG, MEASURE, Observer
from worldline.history.outcome import Status
from worldline.history.plain import encoded
from worldline.learning.task import REWARD
from worldline.model.payload import from_json
from worldline.model.time import FOREVER
from worldline.watch.live import LiveRun
from worldline.watch.server import PageServer


class EpisodesPage:
    """The page of an environment's episodes, served until it is closed."""

    def __init__(self, agent: str) -> None:
        self._live = LiveRun({"name": agent, "room": "learning", "file": ""})
        self._hold = self._live.watching(None)
        self._server = PageServer([self._live.show])
        self._server.__enter__()
        self._agent = agent
        self._number = 0
        self._is_closed = False
        self._now: Episode | None = None

    @property
    def url(self) -> str:
        return self._server.url

    def episode(self, seed: int) -> Observer:
        """Return what is to be told of the next episode; it begins where the last one ended."""
        start = self._end()
        self._now = Episode(self._live.observer, self._agent, start, is_first=not self._number)
        text = f"episode {self._number}, seed {seed}"
        self._live.observer.noted(self._agent, LOG, start, encoded({"text": text}))
        self._number += 1
        return self._now

    def wait(self) -> None:
        """Tell the page how far it is, and return when the learner may go on."""
        if self._now is not None:
            self._hold(Status(time=self._now.start + self._now.reached, events=self._number))

    def _end(self) -> int:
        """End the episode that is under way, if there is one: say what it has earned, and return when that was."""
        if self._now is None:
            return 0
        end = self._now.start + self._now.reached
        self._live.observer.noted(self._agent, MEASURE, end, encoded({"return": self._now.earned}))
        self._live.observer.finish(end + 1)
        self._now = None
        return end + 1

    def close(self) -> None:
        """Serve it no longer; to close it twice does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._end()
            self._server.__exit__(None, None, None)


class Episode(Observer):
    """Tells another observer of an episode as of a part of a longer run."""

    def __init__(self, told: Observer, agent: str, start: int, *, is_first: bool) -> None:
        self._told = told
        self._agent = agent
        self._is_first = is_first
        self.start = start
        self.reached = 0
        self.earned = 0.0

    def began(self, who: str, at: int) -> None:
        if self._is_first:
            self._told.began(who, at)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.reached = max(at, self.reached)
        self._told.sent(who, number, topic, self.start + at, payload, self.start + until)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._told.arrives(sender, number, receiver, self.start + at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        self._told.lasts(sender, number, self.start + until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        self._told.closed(receiver, topic, self.start + at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self.reached = max(at, self.reached)
        if topic == MEASURE and who == self._agent and payload is not None:
            self.earned += from_json(payload, dict[str, float]).get(REWARD, 0.0)
        self._told.noted(who, topic, self.start + at, payload)

    def passed(self, time: int) -> None:
        if time < FOREVER:
            self.reached = max(time, self.reached)
            self._told.passed(self.start + time)
