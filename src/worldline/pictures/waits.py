"""A situation as a picture: which participant holds which, from left to right, with the links between them.

Holders are at the left. All others are as many columns to the right of their roots as there are links between them, so
an arrow always leads from the one that is waited for to the one that waits.
"""

from __future__ import annotations

from worldline.lock.states import State
from worldline.lock.why.reasons import Cause, Hop, Situation, Standing
from worldline.lock.why.words import chains, headline, holder_in_words, holds, seconds
from worldline.model.time import format_time
from worldline.pictures import svg
from worldline.pictures.svg import Point

_MARGIN, _TOP = 24.0, 84.0
_WIDTH, _HEIGHT = 168.0, 48.0
_ACROSS, _DOWN = 300.0, 84.0
_NAME, _SMALL, _TITLE = 14.0, 11.0, 16.0
_HEAD = 9.0
_WAITS = svg.PALETTE[0]
_LABEL_AT = 0.45


def situation_svg(situation: Situation) -> svg.Svg:
    """Draw a situation."""
    columns = _columns(situation)
    places = {
        name: (_MARGIN + column * _ACROSS, _TOP + row * _DOWN)
        for column, names in enumerate(columns)
        for row, name in enumerate(names)
    }
    hops = _hops(situation)
    width = 2 * _MARGIN + _WIDTH + _ACROSS * max(0, len(columns) - 1)
    height = _TOP + _DOWN * max(1, *(len(names) for names in columns), 1) + _MARGIN - (_DOWN - _HEIGHT)
    found = holds(situation)
    told = holder_in_words(found[0], situation) if found else "no participant waits"
    width = max(width, 2 * _MARGIN + svg.text_width(told, _NAME))
    roots = {hold.root for hold in found}
    boxes = [
        _box(standing, places[standing.name], is_root=standing.name in roots)
        for standing in situation.standings
        if standing.name in places
    ]
    content = [
        svg.element("defs", svg.arrow_head(svg.SOFT, _HEAD)),
        svg.text_at(_MARGIN, _MARGIN + _TITLE, headline(situation), size=_TITLE, font_weight="bold"),
        svg.text_at(_MARGIN, _MARGIN + _TITLE + 22, told, size=_NAME, fill=svg.ALARM if found else svg.SOFT),
        *(_arrow(hop, places) for hop in hops),
        *boxes,
        *svg.haloed((_label(hop, places) for hop in hops), class_="links", fill=svg.INK, text_anchor="middle"),
    ]
    return svg.document(width, height, content, kind="why", title=f"{headline(situation)}: {told}")


def _hops(situation: Situation) -> list[Hop]:
    return list({hop: None for why in situation.whys for hop in why.path})


def _columns(situation: Situation) -> list[list[str]]:
    """Put each participant into a column: as many links from its root as there are on the longest of its chains."""
    depth: dict[str, int] = {hold.root: 0 for hold in holds(situation) if hold.root is not None}
    for chain in sorted(chains(situation.whys), key=len):
        links = [hop for why in reversed(chain) for hop in why.path]
        for number, hop in enumerate(links, 1):
            depth[hop.receiver] = max(depth.get(hop.receiver, 0), number)
        depth.setdefault(chain[0].participant, 0 if chain[-1].cause is not Cause.SENDER else 1)
    for standing in situation.standings:
        if standing.state is not State.LEFT:
            depth.setdefault(standing.name, 0)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for name in sorted(depth, key=lambda each: (all(each != hold.root for hold in holds(situation)), each)):
        columns[depth[name]].append(name)
    return columns


def _box(standing: Standing, place: Point, *, is_root: bool) -> str:
    x, y = place
    waits = standing.state in (State.ADVANCING, State.AWAITING, State.PEEKING, State.JOINED)
    color = svg.ALARM if is_root else _WAITS if waits else svg.FAINT
    since = standing.activity.seconds
    is_stopped = standing.activity.condition == "stopped"
    state = "lost" if standing.activity.lost else "stopped" if is_stopped else standing.state.value
    below = f"{format_time(standing.now)}, {state}" + ("" if since is None else f" {seconds(since)}")
    inside = _WIDTH - 20
    return svg.element(
        "g",
        (
            svg.hover(f"{standing.name}: {below}"),
            svg.element(
                "rect", x=x, y=y, width=_WIDTH, height=_HEIGHT, rx=6, fill=svg.PAPER, stroke=color, stroke_width=2
            ),
            svg.text_at(x + 10, y + 20, svg.fitted(standing.name, inside, _NAME), size=_NAME, font_weight="bold"),
            svg.text_at(x + 10, y + 37, svg.fitted(below, inside, _SMALL), size=_SMALL, fill=svg.SOFT),
        ),
    )


def _ends(hop: Hop, places: dict[str, Point]) -> tuple[Point, Point] | None:
    """Return where an arrow begins and ends: at the sides that face each other, or at the left if both are above."""
    if hop.sender not in places or hop.receiver not in places:
        return None
    (x, y), (to_x, to_y) = places[hop.sender], places[hop.receiver]
    middle = _HEIGHT / 2
    if to_x > x:
        return (x + _WIDTH, y + middle), (to_x, to_y + middle)
    if to_x < x:
        return (x, y + middle), (to_x + _WIDTH, to_y + middle)
    down = to_y > y
    return (x + 30, y + (_HEIGHT if down else 0)), (to_x + 30, to_y + (0 if down else _HEIGHT))


def _arrow(hop: Hop, places: dict[str, Point]) -> str:
    ends = _ends(hop, places)
    if ends is None:
        return ""
    return svg.path(ends, stroke=svg.SOFT, stroke_width=1.5, fill="none", marker_end=svg.arrow_end(svg.SOFT, _HEAD))


def _label(hop: Hop, places: dict[str, Point]) -> str:
    ends = _ends(hop, places)
    if ends is None:
        return ""
    x, y = svg.between(*ends, _LABEL_AT)
    return svg.text_at(x, y - 4, f"{hop.topic or 'control'} {format_time(hop.latency)}", size=_SMALL)
