"""Says what a node did wrong: which one, when, on what event, and in which line of its author's file."""

from __future__ import annotations

import sys
from traceback import extract_tb

from worldline.kernel.roster import described
from worldline.model.errors import ModelError, WorldlineError, shown
from worldline.nodes.events import Event, Protocol


def blamed(error: BaseException, kind: type, node: int, now: int, event: Event | None) -> WorldlineError:
    """Return the error that ends the run; `kind` is the node's class, and no event means that it was being created."""
    participant = f"node {node}"
    if isinstance(error, WorldlineError) and (event is None or type(error) is not ModelError):
        return error.concerning(participant, now)  # The author's own, about a topology that doesn't fit, or a deadline.
    doing = "while it was created"
    if event is not None:
        doing = f"on {shown(event.message)}" if isinstance(event, Protocol) else f"on {event}"
    where, advice = _where(error, kind), None
    if isinstance(error, WorldlineError):
        problem, advice = f"{doing}{where}: {error.problem}", error.advice
    else:
        problem = f"{doing} it raised {described(error)}{where}"
    return ModelError(problem, participant=participant, at=now, advice=advice)


def _where(error: BaseException, kind: type) -> str:
    """Return the innermost line of the file that the class stands in, or where it was if that isn't on the way."""
    frames = extract_tb(error.__traceback__)
    files = [getattr(sys.modules.get(each.__module__), "__file__", None) for each in getattr(kind, "__mro__", ())]
    own = [
        frame for frame in frames if frame.filename in files[:-1] and "worldline/nodes/node.py" not in frame.filename
    ]
    place = own[-1] if own else frames[-1] if frames else None
    return f", in line {place.lineno} of {place.filename}" if place is not None else ""
