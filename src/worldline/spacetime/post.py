"""Takes in the letters that other workers have written to bodies of this one."""

from __future__ import annotations

from worldline.spacetime.build import Core, new_lambda
from worldline.spacetime.worker_messages import LambdaInFlight, LaneGone, Letter, UnwatchFor, WatchedFor, WatchFor


def take(core: Core, letter: Letter) -> None:
    match letter:
        case LambdaInFlight():
            _take_lambda(core, letter)
        case LaneGone(lane, target):
            core.lose(lane, core.body(target, core.me))
        case WatchFor():
            _be_watched(core, letter)
        case WatchedFor(news):
            lane_of_news = core.lanes.get(news)
            if lane_of_news is not None:
                lane_of_news.asked = False
                core.wake(lane_of_news.target)
        case UnwatchFor(name, news):
            lane_of_news = core.lanes.pop(news, None)
            body = core.body(name, core.me)
            if lane_of_news is not None and lane_of_news in body.outs:
                body.outs.remove(lane_of_news)


def _take_lambda(core: Core, letter: LambdaInFlight) -> None:
    name, source, home, target, *parts = letter
    if name.endswith("!") and name not in core.lanes:
        return  # News that nobody waits for any more.
    lane = core.lanes.get(name) or core.lane(name, core.body(source, home), core.body(target, core.me))
    core.deliver(lane, new_lambda(*parts))


def _be_watched(core: Core, letter: WatchFor) -> None:
    body = core.body(letter.body, core.me)
    assert body.is_here, f"{letter.body} is thought to be here"  # Otherwise the watcher would take it for dead.
    if letter.news:
        lane = core.lane(letter.news, body, core.body(letter.watcher, letter.worker))
        lane.is_news = True
        core.tell_death(body, lane)
        core.outbox.append((lane.target, WatchedFor(letter.news)))
    body.partners[letter.worker] = True
    core.moved[letter.body] = body


def watch_sources(core: Core) -> None:
    """Ask for the positions of all those elsewhere that agents here wait for."""
    asked: dict[str, bool] = {}
    for lane in list(core.lanes.values()):
        source = lane.source
        if lane.target.is_here and not source.is_here and not lane.gone and source.name not in asked:
            asked[source.name] = True
            core.outbox.append((source, WatchFor(source.name, "", lane.target.name, core.me)))
