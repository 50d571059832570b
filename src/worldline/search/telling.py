"""The story of a failure in lines: what happened last, and of what was before that, what matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def story_lines(
    happenings: Iterable[Happening], draws: Mapping[str, DrawnValue] | None, *, with_idle: bool = True
) -> list[str]:
    """Return the lines of a story. `draws` are those that the failure takes, and what they are about is never left out.

    Segments of programs that only acknowledge or close are left out unless it is told `with_idle` ones.
    """
    lines = list(_lines_of(happenings, _fates(draws), with_idle))
    before = lines[:-_LINES_MAX]
    earlier = [text for text, matters in before if matters][-_EARLIER_MAX:]
    found = [f"... {len(before):,} before that" + (", among them" if earlier else "")] if before else []
    found += [*earlier, "..."] if earlier else []
    return found + [text for text, _ in lines[-_LINES_MAX:]]


def _lines_of(
    happenings: Iterable[Happening], fates: Sequence[MessageFate], with_idle: bool
) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a story, and whether it may all have begun there: a fault, or a message that it takes."""
    sent: dict[tuple[str, str], int] = {}
    for each in happenings:
        of = each.who, each.topic
        becomes = list[str]()
        if each.kind == "sent":
            number = sent[of] = sent.get(of, -1) + 1
            becomes = [fate.text for fate in fates if (fate.sender, fate.topic, fate.number) == (*of, number)]
        if becomes or with_idle or not is_idle(each):
            becoming = f"  ({', '.join(becomes)})" if becomes else ""
            text = f"{format_time(each.at):>12}  {each.who}  {told(each)}{becoming}"
            yield text, each.kind == "befell" or bool(becomes)


def _fates(draws: Mapping[str, DrawnValue] | None) -> list[MessageFate]:
    fates = (fate_of(name, value) for name, value in (draws or {}).items())
    return [fate for fate in fates if fate is not None]
