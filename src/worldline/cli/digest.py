"""`worldline digest`: print the digest of a recorded run, if the file is what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from worldline.model import LossError, ModelError
from worldline.recording import Condition, Recording


def digest(file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording.")]) -> None:
    """Print the digest of a recorded run on a line by itself; fail if the file is incomplete or altered."""
    recording = Recording(file)
    verdict = recording.verify()
    if verdict.condition is Condition.ALTERED:
        # The exit code of a model that went wrong: what the file says isn't what happened. That is another thing than
        # a file which says too little, and a script that compares digests must be able to tell the two apart.
        raise ModelError(f"{file} is {verdict}", advice="record the run again")
    if recording.outcome is None or verdict.condition is not Condition.INTACT:
        raise LossError(f"{file} is {verdict}", advice="a digest is of a whole run")
    typer.echo(recording.outcome.digest)
