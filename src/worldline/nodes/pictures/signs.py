"""What stands for what in a space-time diagram, and how the legend explains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from worldline.drawing.legend import Entry
from worldline.drawing.lines import Look, fading
from worldline.drawing.svg import ALARM, INK, PAPER, SOFT, arrow_end, cross, element, path, shortened, way
from worldline.nodes.pictures.happenings import NodesPicture

_KINDS_UP_TO = 14

_MARK_NAMES = {
    "Start": "start",
    "Timer": "timer",
    "Crash": "crash",
    "Recover": "recovery",
    "LinkDown": "link down",
    "LinkUp": "link up",
    "": "other event",
}
_WELL = "#00734f"


def entries_of(story: NodesPicture, looks: Mapping[str, Look], head: float) -> list[Entry]:
    """Return what the legend of a story explains."""
    sent = [message.what for message in story.messages]
    entries = [
        Entry(f"{shortened(kind, 40)} ({sent.count(kind):,})", _line_sample(look, head))
        for kind, look in list(looks.items())[:_KINDS_UP_TO]
    ]
    if len(looks) > _KINDS_UP_TO:
        entries.append(Entry(f"and {len(looks) - _KINDS_UP_TO} other kinds", _no_sample))
    fates = [message.fate for message in story.messages]
    if "lost" in fates or "dropped" in fates:
        entries.append(Entry("lost", _lost_sample))
    if "under way" in fates:
        entries.append(Entry("still under way", _fading_sample))
    shown = [_mark_name(mark.what) for mark in story.marks]
    entries += [Entry(name, _glyph_sample(what)) for what, name in _MARK_NAMES.items() if name in shown]
    if story.notes:
        entries.append(Entry("logged", _note_sample))
    return entries


def _mark_name(what: str) -> str:
    return _MARK_NAMES.get(what, _MARK_NAMES[""])


def glyph(what: str, x: float, y: float) -> str:
    """Draw what stands for an event that isn't a message."""
    if what == "Start":
        return path(((x, y - 5), (x, y + 5)), stroke=INK, stroke_width=2)
    if what == "Timer":
        return element("path", d=f"{way(((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)))}z", fill=PAPER, stroke=INK)
    if what == "Crash":
        return element("path", d=cross(x, y, 5), stroke=ALARM, stroke_width=2.6, fill="none")
    if what == "Recover":
        return element("circle", cx=x, cy=y, r=4.5, fill=PAPER, stroke=_WELL, stroke_width=2)
    if what in ("LinkDown", "LinkUp"):  # A plug that is pulled out, or in.
        is_down = what == "LinkDown"
        color, gap = (ALARM, 2.5) if is_down else (_WELL, 0.0)
        arms = ((x, y - 6), (x, y - gap)), ((x, y + gap), (x, y + 6))
        bars = [way(((x - 3.5, y + side), (x + 3.5, y + side))) for side in ((-gap, gap) if is_down else (0.0,))]
        return element("path", d="".join((*map(way, arms), *bars)), stroke=color, stroke_width=2, fill="none")
    return element("rect", x=x - 3, y=y - 3, width=6, height=6, fill=SOFT)


def failure_glyph(x: float, y: float) -> str:
    """Draw what stands for a property that doesn't hold, or an error."""
    triangle = f"{way(((x, y - 9), (x + 9, y + 7), (x - 9, y + 7)))}z"
    sign = f"{way(((x, y - 3.5), (x, y + 2)))}{way(((x, y + 4), (x, y + 5.4)))}"
    return element("path", d=triangle, fill=ALARM) + element("path", d=sign, stroke=PAPER, stroke_width=1.8)


def failure_entry() -> Entry:
    return Entry("here it went wrong", lambda x, y: failure_glyph(x + 12, y))


def _glyph_sample(what: str) -> Callable[[float, float], str]:
    return lambda x, y: glyph(what, x + 12, y)


def _line_sample(look: Look, head: float) -> Callable[[float, float], str]:
    return lambda x, y: path(
        ((x, y), (x + 24, y)),
        stroke=look.color,
        stroke_width=1.6,
        stroke_dasharray=look.dashes,
        marker_end=arrow_end(look.color, head),
    )


def _no_sample(_x: float, _y: float) -> str:
    return ""


def _note_sample(x: float, y: float) -> str:
    return element("circle", cx=x + 12, cy=y, r=2.2)


def _lost_sample(x: float, y: float) -> str:
    line = path(((x, y), (x + 20, y)), stroke=SOFT, stroke_width=1.4, stroke_dasharray="4 3")
    return line + element("path", d=cross(x + 20, y, 3.6), stroke=SOFT, stroke_width=1.6)


def _fading_sample(x: float, y: float) -> str:
    return element("g", fading((x, y), (x + 24, y)), stroke=SOFT, stroke_width=1.6)
