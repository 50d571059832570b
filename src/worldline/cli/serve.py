"""`worldline serve`: wait for the participants of a federation to connect, from wherever they are.

What is served, and how, is put together in `Service`, for other commands that serve something else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.federation_options import wanted_run
from worldline.cli.holder_notice import PATIENCE_S
from worldline.cli.interruption import Interruption
from worldline.cli.options import (
    DrawnFaults,
    DrawsTable,
    EndTime,
    Faults,
    Force,
    NoRecord,
    Patience,
    Quiet,
    Seed,
    Settings,
    Timing,
    operator_token_in,
    read_token,
    shelf_for,
    token_in,
)
from worldline.cli.public_lcm import LcmServe, LcmTargets, shown_on_lcm
from worldline.cli.recorded import recording_of, timing_of, timing_place
from worldline.cli.run_federation import conclude, hurry, say_drawn, screen_for, warn_of, watch_on
from worldline.federation.environment import OPERATOR_TOKEN, TOKEN
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.declaration import Plain
from worldline.federation.server.limits import Limits, LossPolicy, too_few_files
from worldline.federation.server.server import Server, check_listening, check_tokens
from worldline.files.saving import sweep_scratch_folders
from worldline.history.observer import Observer
from worldline.history.outcome import Status
from worldline.launch.file.setup import Setup, nobody, stated_by
from worldline.lock import Phase
from worldline.lock.events import Witness
from worldline.model import UsageError
from worldline.model.text import counted
from worldline.recording import Shelf
from worldline.targets.federation import ReadyFederation, from_file

Listen = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where to listen: tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH.")
]
LISTEN = "tcp://127.0.0.1:7475"
TokenFile = Annotated[
    Path | None, typer.Option(help=f"File with the token that participants must present (or set {TOKEN}).")
]
ServerCertificate = Annotated[Path | None, typer.Option(help="The server's certificate, for tls://.")]
CertificateKey = Annotated[Path | None, typer.Option(help="The certificate's key, if in a separate file.")]
Realtime = Annotated[
    float | None, typer.Option(metavar="RATE", help="Run at most this many simulated seconds per real second.")
]
Record = Annotated[
    Path | None, typer.Option(metavar="FILE.mcap", help="Where to record (default: NAME.mcap in this folder).")
]


def serve(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The file that describes the federation.")],
    listen: Listen = LISTEN,
    token_file: TokenFile = None,
    token_directory: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with one token file per participant, named after it.")
    ] = None,
    operator_token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with the token of operators elsewhere (or set {OPERATOR_TOKEN}; default: a new one)."),
    ] = None,
    certificate: ServerCertificate = None,
    key: CertificateKey = None,
    authority: Annotated[
        Path | None,
        typer.Option(help="Authority whose certificates participants must present, for tls:// (default: none)."),
    ] = None,
    seed: Seed = None,
    until: EndTime = None,
    settings: Settings = None,
    draws: DrawsTable = None,
    fault: Faults = None,
    faults: DrawnFaults = None,
    realtime: Realtime = None,
    timing: Timing = False,
    patience: Patience = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write what is needed to go on if this server is killed; the same command again does.",
        ),
    ] = None,
    lcm: LcmTargets = None,
    lcm_serve: LcmServe = None,
    record: Record = None,
    no_record: NoRecord = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Serve one run of a federation to participants started elsewhere."""
    options = wanted_run(seed, until, settings, draws, fault, faults)
    ready = from_file(file, options, starts=nobody)
    warn_of(ready)
    setup = ready.setup
    assert setup is not None
    token = _tokens(token_directory, setup, token_file) if token_directory is not None else token_in(token_file)
    service = Service(
        ready=ready,
        listen=listen,
        token=token,
        operator_token=operator_token_in(operator_token_file),
        certificate=certificate,
        key=key,
        authority=authority,
        # Here, the file also has the last word on who controls the run: others start the participants.
        declared={name: {**stated_by(part), "controls": part.controls} for name, part in setup.parts.items()},
        realtime=realtime,
        limits=setup.limits,
        on_loss=setup.on_loss,
        journal=journal,
        lcm=(*setup.lcm, *(lcm or ())),
        lcm_serve=lcm_serve or setup.lcm_serve,
        patience_s=patience or PATIENCE_S,
    )
    shelf = shelf_for(record, ready.recording, no_record=no_record, force=force)
    with timing_of(ready, timing_place(ready, shelf, wanted=timing), force=force) as noted:
        service.witness = noted.writer
        noted.conclude(service.run(shelf, quiet=quiet))


@dataclass(kw_only=True)
class Service:
    """A run for participants started elsewhere, and how they get to it. What can't be is refused when it is made."""

    ready: ReadyFederation
    listen: str
    token: str | dict[str, str] | None = None
    operator_token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None
    declared: Mapping[str, Plain] = field(default_factory=dict)
    realtime: float | None = None
    limits: Limits | None = None
    on_loss: LossPolicy = "abort"
    journal: Path | None = None
    lcm: Sequence[str] = ()
    lcm_serve: str | None = None
    patience_s: float = PATIENCE_S
    witness: Witness | None = None

    def __post_init__(self) -> None:
        check_listening(self.listen, self.token, self.certificate, self.authority)
        check_tokens(self.ready.plan(), self.token, self.operator_token)

    def run(self, shelf: Shelf | None, *, quiet: bool) -> FederationOutcome:
        """Serve it to its end, show it, and record it."""
        sweep_scratch_folders()
        ready = self.ready
        with screen_for(ready, shelf, quiet=quiet) as screen, Interruption() as interruption:
            with (
                recording_of(ready, shelf, screen.note) as recording,
                shown_on_lcm(ready, recording.observer, self.lcm, self.lcm_serve, screen.note) as observer,
            ):
                server = self._server(observer)
                server.host.arbiter.witness = self.witness
                ready.name_functions(server.host.arbiter)
                watch = watch_on(screen, self.patience_s)
                screen.time_of, screen.remarks = server.host.arbiter.time_of, server.remarks
                address = server.open()
                if resumed := server.host.resumed():
                    screen.note(resumed)
                screen.conclude(f"{ready.name} on {address}, waiting for {', '.join(server.host.missing())}")
                missing = server.host.missing()
                if problem := too_few_files(len(missing), counted(len(missing), "participant")):
                    screen.conclude(problem)
                if self.operator_token is None and not address.is_local:
                    screen.conclude(f"for operators on other machines: {OPERATOR_TOKEN}={server.operator_token}")
                say_drawn(ready, screen)
                interruption.first, interruption.again = server.end, partial(hurry, screen, recording, ready)
                began = time.monotonic()

                def look(status: Status) -> None:
                    nonlocal began
                    if server.host.arbiter.phase is Phase.GATHERING:
                        began = time.monotonic()  # Waiting for people is no part of the run.
                    while server.host.notices:
                        screen.tell(server.host.notices.popleft())
                    watch(status)

                server.serve(look, watch_every_s=0.1)
                elapsed_s = time.monotonic() - began
                look(server.host.status())
                outcome = server.outcome()
                recording.conclude(outcome)
            conclude(ready, screen, outcome, elapsed_s)
        return outcome

    def _server(self, observer: Observer | None) -> Server:
        return Server(
            self.ready.plan(),
            self.listen,
            federation=self.ready.name,
            token=self.token,
            operator_token=self.operator_token,
            certificate=self.certificate,
            key=self.key,
            authority=self.authority,
            declared=self.declared,
            observer=observer,
            on_loss=self.on_loss,
            journal=self.journal,
            pace=self.realtime,
            limits=self.limits,
        )


def _tokens(directory: Path, setup: Setup, file: Path | None) -> dict[str, str]:
    """Read a token for each participant."""
    if file is not None:
        raise UsageError("--token-file is one token for all, and --token-directory one for each", advice="use one")
    if not directory.is_dir():
        raise UsageError(f"{directory} isn't a directory", advice="it has a file with a token for each participant")
    for name in setup.parts:
        if "/" in name or name in (".", ".."):
            raise UsageError(f"no file can have the name of {name}", advice="rename it, or use --token-file")
    return {name: read_token(directory / name) for name in setup.parts}
