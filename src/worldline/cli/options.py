"""Options that several commands have, and what they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from worldline.model import UsageError
from worldline.targets import RunOptions

if TYPE_CHECKING:
    from worldline.recording import Shelf


# Reads tokens: never from the command line, where every user of the machine could see them.


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


# What happens in a run, as several commands say it. How they are declared: see `worldline.cli.commands.flat`.

SEED = typer.Option(help="Seed of all random draws (default: the target's own).")
UNTIL = typer.Option(
    metavar="TIME", help="End of the run: 20s, or in spacetime a lab time such as 100 (default: the target's own)."
)
_END_TIME = typer.Option("--until", metavar="TIME", help="End of the run, such as 20s (default: the target's own).")
SETTINGS = typer.Option(
    "--set",
    metavar="NAME=VALUE",
    help="Set a model parameter, or a key in a federation's file, such as link.latency=5ms.",
)
DRAWS = typer.Option(
    "--draws",
    metavar="TABLE",
    help="Replace random draws, by name: FILE.toml, FILE.json, FILE.csv, or module:function.",
)
FAULT = typer.Option(
    "--fault",
    metavar="TEXT",
    help='Let something befall a participant of a federation, such as "2s crash planner 1s". Can be repeated.',
)
DRAWN_FAULTS = typer.Option(
    "--faults",
    metavar="KINDS",
    help="Draw faults of participants by the seed, such as crash=1,hang=2; crash-after=1 waits for an event.",
)
OF_FEDERATIONS = {
    "seed": SEED,
    "until": _END_TIME,
    "settings": SETTINGS,
    "draws": DRAWS,
    "faults": FAULT,
    "drawn_faults": DRAWN_FAULTS,
}
"""How the options of a federation's run are declared, for commands that take nothing else."""

FederationRun = Annotated[RunOptions, OF_FEDERATIONS]
KindOfDay = Annotated[
    str | None,
    typer.Option(
        "--day",
        metavar="DAY",
        help="The kind of day: usual, or some of constant, quick, tail, slow-links, bursts, no-crash and the like"
        " (default: a search draws one for each seed).",
    ),
]


# How a federation is run.

FEDERATIONS = "Federations only"
"""Where `worldline run` lists what is for federations."""

REALTIME = typer.Option(metavar="RATE", help="Run at most this many simulated seconds per real second.")
TIMING = typer.Option(
    "--timing", help="Note who asks when, in wall-clock time, in NAME.timing next to the recording: see `why`."
)
PATIENCE = typer.Option(
    min=0.1,
    metavar="SECONDS",
    help="Name whoever holds everybody for longer than this, in wall-clock time (default: 10). The result stays the"
    " same.",
)
LCM = typer.Option(
    "--lcm",
    metavar="TARGET",
    help="Show all messages on an LCM: udpm://GROUP:PORT, tcpq://HOST:PORT or a log.",
)
LCM_SERVE = typer.Option(
    metavar="HOST:PORT", help="Be a tcpq:// endpoint for LCM programs that look on; port 0 picks one."
)
PATIENCE_S = 10.0
"""How long time may stand still before the participant that holds it is named, unless another patience is chosen."""

LISTEN = "tcp://127.0.0.1:7475"


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Where participants reach a run that is served, and what they have to present."""

    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen: tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH.")
    ] = LISTEN
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that participants must present (or set WORLDLINE_TOKEN).")
    ] = None
    token_directory: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with one token file per participant, named after it.")
    ] = None
    operator_token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token of operators elsewhere (or set WORLDLINE_OPERATOR_TOKEN; default: a new one)."
        ),
    ] = None
    certificate: Annotated[Path | None, typer.Option(help="The server's certificate, for tls://.")] = None
    key: Annotated[Path | None, typer.Option(help="The certificate's key, if in a separate file.")] = None
    authority: Annotated[
        Path | None,
        typer.Option(help="Authority whose certificates participants must present, for tls:// (default: none)."),
    ] = None


# What a command leaves behind, and what it prints.

FORCE = typer.Option("--force", help="Replace existing files even if they aren't recordings.")
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the outcome.")]


class RecordingOptions(Struct, frozen=True, kw_only=True):
    """Where a run is recorded, and whether it is."""

    record: Annotated[
        Path | None, typer.Option(metavar="FILE.mcap", help="Where to record (default: NAME.mcap in this folder).")
    ] = None
    no_record: Annotated[bool, typer.Option("--no-record", help="Record nothing.")] = False
    force: Annotated[bool, FORCE] = False

    def shelf(self, default: str | None = None) -> Shelf | None:
        """Return where a run is to be recorded, if it is, or refuse that place before anything has happened."""
        if self.no_record and self.record is not None:
            raise UsageError("--record and --no-record contradict each other")
        place = default if self.record is None else self.record
        return None if self.no_record else shelf_at(place, force=self.force)


def shelf_at(place: Path | str | None, *, force: bool) -> Shelf | None:
    """Return the place of a recording, if there is to be one."""
    if place is None:
        return None
    from worldline.recording import Shelf  # Here, since many runs aren't recorded.

    return Shelf(place, force=force)
