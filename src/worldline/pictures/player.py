"""The page that plays an animation: one file of HTML with its looks, data and script, and nothing from elsewhere.

The script is `player.js`, which all players share, and then that of the kind of picture, in a folder of its name; its
looks are in the `player.css` beside each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape as html_escape
from pathlib import Path
from typing import Any, Literal

from worldline.pictures.svg import PALETTE, escaped

# Whatever is in the data, the page loads nothing from anywhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"

# The colors of PALETTE for dark surroundings: those that couldn't be seen there are lighter.
_NIGHT = ("#4aa3df", "#ff8a3d", "#2fc79b", "#e39cc3", "#f0b429", "#8fd0f5", "#c9a94a", "#c5ccd3")

_SPEEDS = (("0.1", "⅒ ×"), ("0.25", "¼ ×"), ("0.5", "½ ×"), ("1", "1 ×"), ("2", "2 ×"), ("4", "4 ×"), ("10", "10 ×"))

Kind = Literal["run", "spacetime", "world"]


class Page(str):
    """The text of a page, which a notebook shows in a frame of its own."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html_escape(self)}" style="width:100%;height:520px;border:0"></iframe>'


def player_page(
    kind: Kind,
    title: str,
    summary: str,
    content: Mapping[str, Any],
    switches: Mapping[str, str],
    *,
    alarms: Iterable[str] = (),
    time_label: str = "time",
    is_still: bool = False,
) -> Page:
    """Write the page around its content, which the script finds as `data`, with the colors for day and night.

    `switches` are checkboxes, by id with what each says; where nothing moves (`is_still`), they are hidden.
    """
    options = "".join(
        f'<option value="{value}"{" selected" if value == "1" else ""}>{text}</option>' for value, text in _SPEEDS
    )
    hidden = " hidden" if is_still else ""
    boxes = "\n".join(
        f'<label{hidden}><input id="{name}" type="checkbox" checked> {text}</label>' for name, text in switches.items()
    )
    told = "".join(f'<span class="alarm">{escaped(alarm)}</span>' for alarm in alarms)
    data = script_data(content)
    return Page(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>
{player_text(kind, "css")}</style>
</head>
<body>
<header><h1>{escaped(title)}</h1><span class="note">{escaped(summary)}</span>{told}</header>
<ul id="legend" aria-label="legend"></ul>
<main><canvas id="view" role="img" aria-label="{escaped(title)}: {escaped(summary)}"></canvas>
<div id="tip" hidden></div>
<noscript>This page plays its animation with JavaScript, which is switched off.</noscript></main>
<footer>
<button id="play" type="button" aria-pressed="false" title="Space">▶ Play</button>
<input id="time" type="range" min="0" max="1000" step="any" value="0" aria-label="{time_label}" title="← →">
<output id="clock" for="time"></output>
<label title="↑ ↓">Speed <select id="speed">{options}</select></label>
{boxes}
</footer>
<script id="data" type="application/json">{data}</script>
<script>
{player_text(kind, "js")}</script>
</body>
</html>
""")


def script_data(content: Mapping[str, Any]) -> str:
    """Return the content of a page as its script finds it, with the colors for day and night."""
    data = json.dumps({**content, "day": PALETTE, "night": _NIGHT}, separators=(",", ":"))
    # A script ends at the first thing that looks like its end, even in a text; so there must be none.
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def player_text(kind: Kind, suffix: Literal["js", "css"]) -> str:
    """Return what all players share and what one kind adds, as one text."""
    here = Path(__file__).parent
    files = (here / f"player.{suffix}", here / kind / f"player.{suffix}")
    return "".join(file.read_text(encoding="utf-8") for file in files)
