"""`worldline serve`: wait for the participants of a federation to connect, from wherever they are."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.interruption import Interruption
from worldline.cli.run import (
    Changes,
    FederationFile,
    Force,
    NoRecord,
    Quiet,
    Realtime,
    Record,
    Seed,
    Until,
    conclude,
    prepare,
    recording,
    screen_for,
    shelf_for,
    watch,
)
from worldline.federation.environment import TOKEN
from worldline.federation.server import Server, check_listening
from worldline.model import UsageError


def serve(
    file: FederationFile,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH.")
    ] = "tcp://127.0.0.1:7475",
    token_file: Annotated[
        Path | None, typer.Option(help=f"The file with the token that participants need (or set {TOKEN}).")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="The server's certificate, for tls://.")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's key, if it is in a file of its own.")] = None,
    seed: Seed = None,
    until: Until = None,
    changes: Changes = None,
    realtime: Realtime = None,
    record: Record = None,
    no_record: NoRecord = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Serve one run of a federation to participants that others start."""
    setup = prepare(file, seed, until, changes, startable=False)
    token = _token(token_file)
    check_listening(listen, token, certificate)  # Before anything is touched.
    shelf = shelf_for(setup, record, no_record=no_record, force=force)
    began = time.monotonic()
    with screen_for(setup, shelf, quiet=quiet) as screen, Interruption() as interruption:
        with recording(setup, screen, shelf) as recorder:
            server = Server(
                setup.plan,
                listen,
                federation=setup.name,
                token=token,
                certificate=certificate,
                key=key,
                witness=recorder,
                pace=realtime,
            )
            screen.arbiter, screen.remarks = server.host.arbiter, server.host.remarks
            address = server.open()
            screen.conclude(f"{setup.name} on {address}, waiting for {', '.join(setup.plan.roster)}")
            interruption.first = server.end
            server.serve(lambda: watch(screen, recorder), watch_every_s=0.1)
            outcome = server.outcome()
            if recorder is not None:
                recorder.close(dropped=outcome.dropped)
        conclude(screen, outcome, time.monotonic() - began)


def _token(file: Path | None) -> str | None:
    """Read the token; never from the command line, where everybody on the machine could see it."""
    if file is None:
        return os.environ.get(TOKEN) or None
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise UsageError(f"the token can't be read from {file}: {error.strerror}") from error
    if not token:
        raise UsageError(f"the token file {file} is empty")
    return token
