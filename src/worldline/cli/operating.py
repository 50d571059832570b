"""Finds the run that an operator means, by its name or its address, and connects to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from worldline.cli.console import PlainConsole, print_json
from worldline.cli.token_file import operator_token_in
from worldline.federation.environment import OPERATOR_TOKEN
from worldline.federation.operator import Operator
from worldline.federation.registry import RunEntry, running
from worldline.model import LossError, UsageError
from worldline.model.errors import shown
from worldline.model.nearest import nearest
from worldline.wire.operator import RunOver

Run = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="The run's name, its number of a process if several have that name, or its server's address (default: the"
        " only run of yours on this machine).",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(help=f"File with the operator's token, for a run on another machine (or set {OPERATOR_TOKEN})."),
]
Authority = Annotated[Path | None, typer.Option(help="Authority whose certificates to trust, for tls://.")]
OwnCertificate = Annotated[Path | None, typer.Option(help="Certificate to present, for tls://.")]
OwnKey = Annotated[Path | None, typer.Option(help="The certificate's key, if in a separate file.")]

_ADDRESS = re.compile(r"(?:tcp|tls|unix):.*|\[?[\w.:-]*\]?:\d+")


def is_noted(run: str) -> bool:
    """Whether what an operator names is a file, and not a run that goes on."""
    return Path(run).suffix in (".mcap", ".timing")


def connected(
    run: str | None,
    token_file: Path | None = None,
    authority: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
) -> Operator:
    """Connect to the run that is meant."""
    if run is not None and _ADDRESS.fullmatch(run):
        return Operator(run, token=operator_token_in(token_file), authority=authority, certificate=certificate, key=key)
    entry = found(run)
    try:
        return Operator(
            entry.address,
            token=entry.token,
            authority=authority,
            certificate=certificate,
            key=key,
            process=entry.process,
        )
    except LossError as error:
        raise LossError(f"{entry.name} (process {entry.process}): {error.problem}", advice=error.advice) from error


def found(run: str | None) -> RunEntry:
    """Return the one run that is meant."""
    entries = running()
    meant = [each for each in entries if run is None or run in (each.name, str(each.process))]
    if len(meant) == 1:
        return meant[0]
    listed = "; ".join(f"{each.name}, process {each.process}, {each.address}" for each in meant or entries)
    if meant:
        which = "several runs are going on" if run is None else f"several runs are called {shown(run)}"
        raise UsageError(f"{which}: {listed}", advice="name one, by the number of its process if need be")
    if run is None:
        raise UsageError("no run of yours is going on on this machine", advice="name one by its address")
    advice = nearest(run, [each.name for each in entries]) or (f"going on: {listed}" if listed else "none is going on")
    raise UsageError(f"no run is called {shown(run)}", advice=advice)


def conclude(over: RunOver, *, as_json: bool = False) -> NoReturn:
    """Say how the run has ended, which is no mistake of the operator's."""
    console = PlainConsole()
    if as_json:
        print_json({"phase": "over", "digest": over.digest, "failure": over.failure})
    elif over.failure is not None:
        console.print(f"the run was broken off: {over.failure}")
    elif over.digest is not None:
        console.print(f"the run is over, digest {over.digest}")
    else:
        console.print("the run is over")
    raise typer.Exit
