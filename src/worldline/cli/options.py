"""Options that several commands have, and what they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worldline.model import UsageError

if TYPE_CHECKING:
    from worldline.recording import Shelf


# Reads tokens: never from the command line, where everybody on the machine could see them.


def token_in(file: Path | None) -> str | None:
    """Read the token from its file, or without one from the environment."""
    if file is not None:
        return read_token(file)
    from worldline.federation.environment import TOKEN  # Here, since most runs have none.

    return os.environ.get(TOKEN) or None


def operator_token_in(file: Path | None) -> str | None:
    """Read the operator's token, in the same way."""
    if file is not None:
        return read_token(file)
    from worldline.federation.environment import OPERATOR_TOKEN

    return os.environ.get(OPERATOR_TOKEN) or None


def read_token(file: Path) -> str:
    """Read a token that must be there."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"the token can't be read from {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the token file {file} isn't UTF-8 text", advice="a token is one line of text") from error
    if not token:
        raise UsageError(f"the token file {file} is empty")
    return token


Seed = Annotated[int | None, typer.Option(help="Seed of all random draws (default: the target's own).")]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="End of the run: 20s, or in spacetime a lab time such as 100 (default: the target's own)."
    ),
]
EndTime = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="End of the run, such as 20s (default: the target's own).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a model parameter, or a key in a federation's file, such as link.latency=5ms.",
    ),
]
DrawsTable = Annotated[
    str | None,
    typer.Option(
        "--draws",
        metavar="TABLE",
        help="Replace random draws, by name: FILE.toml, FILE.json, FILE.csv, or module:function.",
    ),
]
Faults = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="TEXT",
        help='Let something befall a participant of a federation, such as "2s crash planner 1s". Can be repeated.',
    ),
]
DrawnFaults = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="KINDS",
        help="Draw faults of participants by the seed, such as crash=1,hang=2; crash-after=1 waits for an event.",
    ),
]
KindOfDay = Annotated[
    str | None,
    typer.Option(
        "--day",
        metavar="DAY",
        help="The kind of day: usual, or some of constant, quick, tail, slow-links, bursts, no-crash and the like"
        " (default: a search draws one for each seed).",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files even if they aren't recordings.")]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Record nothing.")]
Timing = Annotated[
    bool,
    typer.Option(
        "--timing", help="Note who asks when, in wall-clock time, in NAME.timing next to the recording: see `why`."
    ),
]
Patience = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="SECONDS",
        help="Name whoever holds everybody for longer than this, in wall-clock time (default: 10). The result stays the"
        " same.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the outcome.")]


def shelf_for(record: Path | None, default: str | None, *, no_record: bool, force: bool) -> Shelf | None:
    """Return where a run is to be recorded, if it is, or refuse that place before anything has happened."""
    if no_record and record is not None:
        raise UsageError("--record and --no-record contradict each other")
    place = default if record is None else record
    if no_record or place is None:
        return None
    from worldline.recording import Shelf  # Here, since many runs aren't recorded.

    return Shelf(place, force=force)
