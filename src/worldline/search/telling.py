"""The story of a failure in lines: what happened last, and of what was before that, what matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.names import MessageFate, fate_of
from worldline.model.errors import shortened
from worldline.model.lifecycle import ESTOP_LOG
from worldline.model.segments import read_any, read_segment
from worldline.model.text import printable
from worldline.model.time import format_time
from worldline.search.properties import Happening

_LINES_MAX = 40
_EARLIER_MAX = 10


def told(each: Happening) -> str:
    """Say what happened as logs do."""
    if each.kind == "befell":
        return each.text if each.text.startswith(ESTOP_LOG) else f"fault: {each.text}"
    if each.kind == "noted":
        return f"noted  {each.text}"
    of = "" if each.sender == each.who else f" from {each.sender}"
    segment = read_any(each.payload)
    return f"{each.kind}  {each.topic}{of}: {shortened(each.text if segment is None else printable(str(segment)))}"


def is_idle(each: Happening) -> bool:
    """Whether it is a segment that only acknowledges or closes."""
    if each.kind not in ("sent", "received") or not each.topic.startswith("tcp/"):
        return False
    segment = read_segment(each.payload)
    return segment is not None and segment.is_idle


class StoryStep(NamedTuple):
    """One thing that happened. It matters if all may have begun there: a fault, or a message that the failure takes."""

    at: int
    who: str
    text: str
    matters: bool


def story_steps(
    happenings: Iterable[Happening], draws: Mapping[str, DrawnValue] | None, *, with_idle: bool = True
) -> Iterator[StoryStep]:
    """Yield what happened, one by one. `draws` are those that the failure takes: what they do to a message is said.

    Segments of programs that only acknowledge or close are left out unless it is told `with_idle` ones.
    """
    fates, sent = _fates(draws), dict[tuple[str, str], int]()
    for each in happenings:
        of = each.who, each.topic
        becomes = list[str]()
        if each.kind == "sent":
            number = sent[of] = sent.get(of, -1) + 1
            becomes = [fate.text for fate in fates if (fate.sender, fate.topic, fate.number) == (*of, number)]
        if becomes or with_idle or not is_idle(each):
            becoming = f"  ({', '.join(becomes)})" if becomes else ""
            matters = each.kind == "befell" or bool(becomes)
            yield StoryStep(each.at, each.who, f"{told(each)}{becoming}", matters)


def story_lines(
    happenings: Iterable[Happening], draws: Mapping[str, DrawnValue] | None, *, with_idle: bool = True
) -> list[str]:
    """Return the last lines of a story, and of those before them what matters."""
    steps = list(story_steps(happenings, draws, with_idle=with_idle))
    before = steps[:-_LINES_MAX]
    earlier = [_line(step) for step in before if step.matters][-_EARLIER_MAX:]
    found = [f"... {len(before):,} before that" + (", among them" if earlier else "")] if before else []
    found += [*earlier, "..."] if earlier else []
    return found + [_line(step) for step in steps[-_LINES_MAX:]]


def _line(step: StoryStep) -> str:
    return f"{format_time(step.at):>12}  {step.who}  {step.text}"


def _fates(draws: Mapping[str, DrawnValue] | None) -> Sequence[MessageFate]:
    fates = (fate_of(name, value) for name, value in (draws or {}).items())
    return [fate for fate in fates if fate is not None]
