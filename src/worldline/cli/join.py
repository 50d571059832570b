"""`worldline join`: one participant of a federation, started here, in a run that goes on elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.options import LISTEN, SETTINGS, token_in
from worldline.federation.address import parse_address
from worldline.federation.environment import (
    ADDRESS,
    AUTHORITY,
    CERTIFICATE,
    KEY,
    TOKEN,
    LaunchEnvironment,
    read_surroundings,
)
from worldline.federation.registry import running
from worldline.launch.file.setup import Setup, check_name_in, check_startable, read_setup
from worldline.launch.processes import become_participant, check_welcome
from worldline.model import UsageError


def join(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The file that describes the federation.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The participant to start.")],
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=f"Where the run is served (default: {ADDRESS}, or your run of that federation here, or {LISTEN}).",
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help=f"File with the token to present (or set {TOKEN}).")] = None,
    authority: Annotated[
        Path | None, typer.Option(help=f"Authority to trust, for tls:// (or set {AUTHORITY}).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help=f"Certificate to present, for tls:// (or set {CERTIFICATE}).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help=f"The certificate's key, if in a separate file (or set {KEY}).")
    ] = None,
    settings: Annotated[list[str] | None, SETTINGS] = None,
) -> None:
    """Start one participant of a federation here, for a run served elsewhere.

    The run is one of `worldline run --without NAME` or `worldline serve`, on this machine or another. The file here and
    the file there must declare the same for the participant.
    """

    def is_wanted(each: str) -> bool:
        return each == name

    setup = read_setup(file, changes=settings or (), starts=is_wanted)
    check_name_in(setup, name)
    check_startable(setup, is_wanted)
    where = address or os.environ.get(ADDRESS) or _address_here(setup)
    parse_address(where)
    surroundings = LaunchEnvironment(
        address=where,
        name=name,
        federation=setup.name,
        token=token_in(token_file),
        authority=_path_to(authority, AUTHORITY),
        certificate=_path_to(certificate, CERTIFICATE),
        key=_path_to(key, KEY),
        functions=read_surroundings(os.environ).functions,
    )
    check_welcome(setup, surroundings)
    sys.stdout.flush()
    become_participant(setup.parts[name], surroundings)


def _address_here(setup: Setup) -> str:
    """Return where a run of this federation is served on this machine, or where one would be served."""
    found = [entry.address for entry in running(setup.name)]
    if len(found) > 1:
        raise UsageError(
            f"there are {len(found)} runs of {setup.name} here", advice=f"use --address with one of {', '.join(found)}"
        )
    return found[0] if found else LISTEN


def _path_to(given: Path | None, variable: str) -> str | None:
    file = given or os.environ.get(variable)
    return str(Path(file).absolute()) if file else None
