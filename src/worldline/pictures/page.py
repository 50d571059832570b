"""The page: one file of HTML with its looks and its script, and nothing from elsewhere.

It shows runs, which it asks its server for or has in it as a file; or a chart, which it always has in it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape as html_escape
from pathlib import Path
from typing import Any

from msgspec import json

from worldline.pictures.svg import escaped

_SCRIPTS = ("core", "diagram", "network", "signals", "overview", "space", "world", "story", "chart", "app")
"""The parts of the script, in the order in which they are read: one module, in files that have a subject each."""

_FOLDER = Path(__file__).parent / "files"
_PART = re.compile(r"\{(\w+)\}")


class Page(str):
    """The text of a page, which a notebook shows in a frame of its own."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html_escape(self)}" style="width:100%;height:560px;border:0"></iframe>'


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


def written_page(title: str, content: Mapping[str, Any], picture: bytes | None = None) -> Page:
    """Write the page of what its script finds as `given`: shows, a chart, and what it needn't ask for.

    A picture, of SVG, is there for browsers that run no script, and for what the script doesn't draw.
    """
    data = json.encode({"shows": [], **content}).decode()
    # A script ends at the first thing that looks like its end, even in a text; so there must be none.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    source = "" if picture is None else f"data:image/svg+xml;base64,{b64encode(picture).decode()}"
    parts = {
        "policy": escaped(policy()),
        "title": escaped(title or "Worldline"),
        "style": _text("page.css"),
        "script": _script(),
        "data": data,
        "picture": f'<img id="picture" alt="{escaped(title)}" src="{source}">' if source else "",
    }
    return Page(_PART.sub(lambda found: parts[found[1]], _text("page.html")))  # At once: what is put in may look so.


def title_of(shows: Sequence[Mapping[str, Any]]) -> str:
    """Return the title of a page of some shows, by their facts."""
    return " and ".join(str(facts.get("name", "")) for facts in shows)
