"""Says what a node did wrong: which one, when, on what event, and in which line of its author's own code."""

from __future__ import annotations

from typing import NoReturn

from worldline.model.blame import located, models, said_of
from worldline.model.errors import ModelError, ObserverFailure, WorldlineError, shown
from worldline.nodes.events import Event, Protocol


def blame(error: BaseException, node: int, now: int, event: Event | None) -> NoReturn:
    """Raise the error that ends the run; no event means that the node was being created."""
    blamed = _blamed(error, node, now, event)
    if blamed is error:  # An error can't be its own cause.
        raise blamed
    raise blamed from error


def _blamed(error: BaseException, node: int, now: int, event: Event | None) -> WorldlineError:
    participant = f"node {node}"
    if isinstance(error, ObserverFailure):
        return error
    if isinstance(error, WorldlineError) and event is None:
        return error.concerning(participant, now)  # The author's own, about a topology that doesn't fit.
    if isinstance(error, WorldlineError) and type(models(error)) is not ModelError:
        return error.concerning(participant, now)  # A deadline, or again the author's own.
    doing = "while it was created"
    if event is not None:
        doing = f"on the message {shown(event.message)}" if isinstance(event, Protocol) else f"on {event}"
    if isinstance(error, WorldlineError):
        problem, advice = f"{doing}: {located(error).problem}", error.advice
    else:
        problem, advice = f"{doing} it raised {said_of(error)}", None
    return ModelError(problem, participant=participant, at=now, advice=advice)
