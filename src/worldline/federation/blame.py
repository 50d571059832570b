"""Says what a program has raised, and where in its own code: for the others, who can't see its traceback."""

from __future__ import annotations

import traceback
from pathlib import Path

from worldline.model.errors import WorldlineError

_OURS = Path(__file__).parent.parent


def blame(error: BaseException) -> str:
    """Return what was raised, and the innermost line of the program that led to it."""
    said = error.problem if isinstance(error, WorldlineError) else str(error)
    text = f"its program raised {type(error).__name__}" + (f": {said}" if said else "")
    if isinstance(error, WorldlineError) and error.advice:
        text += f" ({error.advice})"
    lines = [line for line in traceback.extract_tb(error.__traceback__) if _OURS not in Path(line.filename).parents]
    return f"{text}, in {Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else text
