"""Says what a node did wrong: which one, when, on what event, and in which line of its author's file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from traceback import extract_tb
from typing import Any

from worldline.model.blame import described
from worldline.model.errors import ModelError, WorldlineError, shown
from worldline.nodes.events import Event, Protocol
from worldline.nodes.node import Node


def blamed(error: BaseException, kind: type, node: int, now: int, event: Event | None) -> WorldlineError:
    """Return the error that ends the run; `kind` is the node's class, and no event means that it was being created."""
    participant = f"node {node}"
    if isinstance(error, WorldlineError) and (event is None or type(error) is not ModelError):
        return error.concerning(participant, now)  # The author's own, about a topology that doesn't fit, or a deadline.
    doing = "while it was created"
    if event is not None:
        doing = f"on {shown(event.message)}" if isinstance(event, Protocol) else f"on {event}"
    where, advice = place_of(error, getattr(kind, "__mro__", ())[:-1]), None
    if isinstance(error, WorldlineError):
        problem, advice = f"{doing}{where}: {error.problem}", error.advice
    else:
        problem = f"{doing} it raised {described(error)}{where}"
    return ModelError(problem, participant=participant, at=now, advice=advice)


def place_of(error: BaseException, defined: Iterable[Any]) -> str:
    """Return the innermost line in the files in which these things are defined, as an error says it."""
    modules = [sys.modules.get(each.__module__) for each in defined if each is not Node]
    files = [getattr(module, "__file__", None) for module in modules]
    own = [frame for frame in extract_tb(error.__traceback__) if frame.filename in files]
    return f", in line {own[-1].lineno} of {own[-1].filename}" if own else ""
