"""The page itself: one file of HTML with its looks and its script, and nothing from elsewhere.

Served, it asks its server for what it shows. Written to a file, it has all of that in it (`packed`), up to a size that
a browser still reads: of long runs, all messages, but neither all payloads nor all signals.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import json

from worldline.pictures.svg import escaped
from worldline.watch.show import Show, with_payload

_SCRIPTS = ("core", "diagram", "network", "signals", "overview", "space", "world", "story", "app")
"""The parts of the script, in the order in which they are read: one module, in files that have a subject each."""

_FOLDER = Path(__file__).parent / "files"
_PART = re.compile(r"\{(\w+)\}")


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return "\n".join(_text(f"{name}.js") for name in _SCRIPTS)


@cache
def policy() -> str:
    """Return what the browser lets the page do: run its own script, have its own looks, and ask its own server."""
    script, style = (b64encode(sha256(text.encode()).digest()).decode() for text in (_script(), _text("page.css")))
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def written_page(facts: list[dict[str, Any]], content: dict[str, Any]) -> str:
    """Write the page for some shows. `content` is what it needn't ask for."""
    title = " and ".join(str(each.get("name", "")) for each in facts) or "Worldline"
    data = json.encode({"shows": facts, **content}).decode()
    # A script ends at the first thing that looks like its end, even in a text; so there must be none.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    parts = {
        "policy": escaped(policy()),
        "title": escaped(title),
        "style": _text("page.css"),
        "script": _script(),
        "data": data,
    }
    return _PART.sub(lambda found: parts[found[1]], _text("page.html"))  # At once: what is put in may look like one.


MESSAGES_MAX, BYTES_MAX = 20_000, 2**22
"""Messages whose payloads go into a file, and how many bytes of payloads."""

POINTS_MAX = 500_000
"""Points of signals that go into a file."""


def packed(show: Show) -> dict[str, Any]:
    """Return all that the page could ask for, as it is answered."""
    if show.reading is not None:
        show.reading.join()
    fields, signals, points = show.fields(), {}, 0
    for found in show.signals(fields):
        points += sum(len(line["times"]) for line in found["lines"])
        if points <= POINTS_MAX:
            signals[f"{found['topic']} {found['field']}"] = found
    messages, size = [], 0
    for place, payload in enumerate(show.payloads(MESSAGES_MAX)):
        size += len(payload)
        if size > BYTES_MAX:
            break
        row = show.tape.row(place)
        if row is not None:
            messages.append(with_payload(row, payload))
    return {
        "news": b64encode(show.news({}, rows_max=2**62)).decode(),
        "messages": messages,
        "fields": fields,
        "signals": signals,
        "scene": show.scene(),
    }
