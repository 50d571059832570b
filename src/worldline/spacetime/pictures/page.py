"""The page that plays an animation of agents."""

from __future__ import annotations

from collections.abc import Iterable

from worldline.drawing.player_page import player_page
from worldline.spacetime.pictures.player import PROGRAM

_STYLE = """#legend canvas{position:static;width:16px;height:16px}
#legend output{min-width:2ch;color:var(--soft)}
"""


def page(title: str, summary: str, failures: Iterable[str], data: str, *, flat: bool) -> str:
    """Write the page around its data, which is JSON without angle brackets."""
    return player_page(
        title,
        summary,
        data,
        PROGRAM,
        switches={"trails": "Trails", "circles": "Light"},
        colors="--light:#f0b429",
        dark_colors="--light:#f0b429",
        style=_STYLE,
        alarms=failures,
        time_label="lab time",
        is_still=flat,
    )
