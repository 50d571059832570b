"""The page that plays an animation: HTML and its looks, with nothing from elsewhere.

What is animated, and how it is drawn, is the program's affair. It finds its data and the controls by their ids: `data`,
`view`, `legend`, `tip`, `play`, `time`, `clock`, `speed`, and the switches that whoever makes the page adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from worldline.pictures.svg import escaped

# Whatever is in the data, the page asks nobody for anything.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"

_LIGHT = "--paper:#fff;--ink:#1f2933;--soft:#66727f;--faint:#e4e8ec;--accent:#0072b2;--alarm:#b3261e"
_DARK = "--paper:#12171d;--ink:#e6ebf0;--soft:#98a4b1;--faint:#27303a;--accent:#56b4e9;--alarm:#ff7a70"

_STYLE = """
*{box-sizing:border-box}
html,body{height:100%;margin:0}
body{display:flex;flex-direction:column;background:var(--paper);color:var(--ink);
font:14px/1.4 system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif}
header{padding:12px 18px 6px;display:flex;gap:4px 16px;flex-wrap:wrap;align-items:baseline}
h1{font-size:16px;margin:0;font-weight:600;overflow-wrap:anywhere}
.note{color:var(--soft);font-size:12px}
.alarm{color:var(--alarm);font-size:12px;flex-basis:100%;overflow-wrap:anywhere}
#legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin:0;padding:0 18px 8px;list-style:none;font-size:12px}
#legend li{display:flex;gap:5px;align-items:center}
#legend span{max-width:26ch;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
main{flex:1;min-height:160px;position:relative}
canvas{position:absolute;inset:0;width:100%;height:100%;display:block;touch-action:none}
#tip{position:absolute;pointer-events:none;background:var(--ink);color:var(--paper);padding:3px 8px;border-radius:5px;
font-size:12px;max-width:320px;overflow-wrap:anywhere;white-space:pre-line}
footer{display:flex;gap:8px 12px;align-items:center;flex-wrap:wrap;padding:8px 18px 14px;
border-top:1px solid var(--faint)}
button,select{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--soft);border-radius:6px;
padding:4px 10px;min-height:32px}
button{min-width:84px;cursor:pointer}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
#time{flex:1;min-width:140px;accent-color:var(--accent)}
output{font-variant-numeric:tabular-nums;min-width:11ch}
label{display:flex;gap:5px;align-items:center}
"""

_SPEEDS = (("0.1", "⅒ ×"), ("0.25", "¼ ×"), ("0.5", "½ ×"), ("1", "1 ×"), ("2", "2 ×"), ("4", "4 ×"), ("10", "10 ×"))


def player_page(
    title: str,
    summary: str,
    data: str,
    program: str,
    *,
    switches: Mapping[str, str],
    colors: str,
    dark_colors: str,
    style: str = "",
    alarms: Iterable[str] = (),
    time_label: str = "time",
    is_still: bool = False,
) -> str:
    """Write the page around its data, which is JSON without angle brackets.

    `switches` are checkboxes, by id with what each says; where nothing moves (`is_still`), they are hidden. `colors`
    and `style` are CSS of the program's own.
    """
    options = "".join(
        f'<option value="{value}"{" selected" if value == "1" else ""}>{text}</option>' for value, text in _SPEEDS
    )
    hidden = " hidden" if is_still else ""
    boxes = "\n".join(
        f'<label{hidden}><input id="{name}" type="checkbox" checked> {text}</label>' for name, text in switches.items()
    )
    told = "".join(f'<span class="alarm">{escaped(alarm)}</span>' for alarm in alarms)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>
:root{{color-scheme:light dark;{_LIGHT};{colors}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK};{dark_colors}}}}}{_STYLE}{style}[hidden]{{display:none!important}}
</style>
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
<script>{program}</script>
</body>
</html>
"""
