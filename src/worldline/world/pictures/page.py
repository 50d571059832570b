"""The page that plays an animation of a world."""

from __future__ import annotations

from worldline.drawing.player_page import player_page
from worldline.world.pictures.player import PROGRAM

_STYLE = """#legend i{width:12px;height:12px;border-radius:3px}
output{min-width:22ch}
"""


def page(title: str, summary: str, data: str) -> str:
    """Write the page around its data, which is JSON without angle brackets."""
    return player_page(
        title,
        summary,
        data,
        PROGRAM,
        switches={"trails": "Trails", "names": "Names"},
        colors="--still:#c3ccd4;--level:#56b4e9",
        dark_colors="--still:#46525e;--level:#56b4e9",
        style=_STYLE,
    )
