"""`worldline serve` and `worldline metasim`: wait for participants to connect, from wherever they are."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from worldline.cli.console import warn
from worldline.cli.options import (
    OF_FEDERATION,
    PAGE,
    PageOptions,
    RecordingOptions,
    ServerOptions,
    read_token,
    takes,
    token_in,
)
from worldline.cli.run_federation import run_on_screen, say_drawn, screen_for
from worldline.cli.runner import page_of_ready, recording_of, timing_noted
from worldline.federation.environment import OPERATOR_TOKEN
from worldline.federation.outcome import FederationOutcome
from worldline.federation.server.limits import too_few_files
from worldline.federation.server.server import Server, check_listening, check_tokens
from worldline.files.saving import sweep_scratch_folders
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.launch.file.setup import Setup, starts_none, stated_by
from worldline.launch.file.topics import LCM
from worldline.model import Interrupted, Network, Plan, Rule, UsageError, as_time, link, plan
from worldline.model.text import counted
from worldline.processes.executor import Executor
from worldline.recording import Shelf
from worldline.targets import FederationOptions, RunOptions
from worldline.targets.federation import ReadyFederation, from_file

if TYPE_CHECKING:
    from worldline.watch.live import LiveRun


@takes(
    """
    file: FILE.toml  The file that describes the federation.
    --listen
    --token-file
    --token-directory FOLDER  Folder with one token file per participant, named after it.
    --operator-token-file FILE  File with the token of operators elsewhere (or set WORLDLINE_OPERATOR_TOKEN; default: a
        new one).
    --certificate
    --key
    --authority FILE  Authority whose certificates participants must present, for tls:// (default: none).
    """,
    OF_FEDERATION,
    """
    --property
    --realtime
    --timing
    --patience
    --journal FILE  Write what is needed to go on if this server is killed; the same command again does.
    --lcm
    --lcm-serve
    --record
    --no-record
    --force
    --quiet
    """,
    PAGE,
)
def serve(
    file: Path,
    serving: ServerOptions,
    options: RunOptions,
    recording: RecordingOptions,
    paging: PageOptions,
    quiet: bool = False,
) -> None:
    """Serve one run of a federation to participants started elsewhere."""
    ready = from_file(file, options, starts=starts_none)
    assert ready.setup is not None
    for warning in ready.setup.warnings:
        warn(warning)
    token = _tokens(serving, ready.setup)
    check_service(ready, serving, token)
    shelf = recording.shelf(ready.recording)
    with timing_noted(ready, shelf, force=recording.force) as conclude, page_of_ready(ready, paging) as page:
        outcome = serve_run(ready, serving, token, shelf, quiet=quiet, page=page)
        conclude(outcome)
        if outcome.failure is not None:
            raise outcome.failure


def check_service(ready: ReadyFederation, serving: ServerOptions, token: str | dict[str, str] | None) -> None:
    """Refuse what can't be served like that."""
    check_listening(serving.listen, token, serving.access.certificate, serving.access.authority)
    check_tokens(ready.plan(), token, token_in(serving.operator_token_file, of_operator=True))


def serve_run(
    ready: ReadyFederation,
    serving: ServerOptions,
    token: str | dict[str, str] | None,
    shelf: Shelf | None,
    *,
    quiet: bool,
    page: LiveRun | None = None,
) -> FederationOutcome:
    """Serve a run to its end, to participants started elsewhere; show it, and record it."""
    sweep_scratch_folders()
    screen = screen_for(ready, shelf, quiet=quiet)
    operator_token = token_in(serving.operator_token_file, of_operator=True)
    server: Server | None = None

    def run(observer: Observer | None, watch: Watch) -> FederationOutcome:
        nonlocal server
        server = _server(ready, serving, token, operator_token, observer)
        host = server.host
        host.arbiter.witness = ready.launching.witness
        ready.name_functions(host.arbiter)
        screen.time_of, screen.remarks = host.arbiter.time_of, server.remarks
        address = server.open()
        if resumed := host.resumed():
            screen.note(resumed)
        missing = host.missing()
        screen.conclude(f"{ready.name} on {address}, waiting for {', '.join(missing)}")
        if problem := too_few_files(len(missing), counted(len(missing), "participant")):
            screen.conclude(problem)
        if operator_token is None and not address.is_local:
            screen.conclude(f"for operators on other machines: {OPERATOR_TOKEN}={server.operator_token}")
        say_drawn(ready, screen)
        server.serve(watch, watch_every_s=0.1)
        return server.outcome()

    def interrupt(error: Interrupted) -> None:
        if server is None:
            raise error
        server.end(error)

    def notices() -> list[str]:
        waiting = deque[str]() if server is None else server.host.owner.notices
        return [waiting.popleft() for _ in range(len(waiting))]

    recording = recording_of(ready.recorder, shelf, screen.note)
    return run_on_screen(run, ready, screen, recording, interrupt=interrupt, notices=notices, page=page)


def _server(
    ready: ReadyFederation,
    serving: ServerOptions,
    token: str | dict[str, str] | None,
    operator_token: str | None,
    observer: Observer | None,
) -> Server:
    wanted, setup = ready.options.federation, ready.setup
    said: dict[str, Any] = {}
    if setup is not None:
        # Here, the file also has the last word on who controls the run: others start the participants.
        declared = {name: {**stated_by(part), "controls": part.controls} for name, part in setup.parts.items()}
        said = {"declared": declared, "on_loss": setup.on_loss, "limits": setup.limits}
    return Server(
        ready.plan(),
        serving.listen,
        federation=ready.name,
        token=token,
        operator_token=operator_token,
        certificate=serving.access.certificate,
        key=serving.access.key,
        authority=serving.access.authority,
        observer=observer,
        journal=wanted.journal,
        pace=wanted.realtime,
        **said,
    )


def _tokens(serving: ServerOptions, setup: Setup) -> str | dict[str, str] | None:
    """Read the token of all participants, or one for each."""
    directory = serving.token_directory
    if directory is None:
        return token_in(serving.access.token_file)
    if serving.access.token_file is not None:
        raise UsageError("--token-file is one token for all, and --token-directory one for each", advice="use one")
    if not directory.is_dir():
        raise UsageError(f"{directory} isn't a directory", advice="it has a file with a token for each participant")
    for name in setup.parts:
        if "/" in name or name in (".", ".."):
            raise UsageError(f"no file can have the name of {name}", advice="rename it, or use --token-file")
    return {name: read_token(directory / name) for name in setup.parts}


# `worldline metasim`: simulators that others start, under one clock.


class ClientsOptions(Struct, frozen=True, kw_only=True):
    """What the run of some clients is: how messages get from one to another, and until when."""

    delay: str
    links: tuple[str, ...] = ()
    loss: float = 0.0
    until: str | None = None
    seed: int = 0
    name: str = "metasim"
    encoding: str = LCM

    def plan(self, clients: list[str]) -> Plan:
        """Return the plan of a run of these clients, which are named or counted."""
        rules = tuple(_rule(text, self.loss) for text in self.links)
        is_number = _are_counted(clients)
        return plan(
            () if is_number else clients,
            vacancies=int(clients[0]) if is_number else 0,
            network=Network(default=link(self.delay, loss=self.loss), rules=rules),
            seed=self.seed,
            until=None if self.until is None else as_time(self.until, "an end time"),
        )


def _are_counted(clients: list[str]) -> bool:
    return len(clients) == 1 and clients[0].isdecimal()


def metasim() -> None:
    """Coordinate simulators in several processes as one, without a federation's file."""


@takes(
    """
    CLIENTS  The names of the clients, or how many they are.
    --delay TIME  How long messages take: 10ms, or drawn for each: "uniform(4ms, 9ms)".
    links: --link FROM:TO=TIME  How long they take from one client to another; * is any client.
    --loss NUMBER 0.0 to 1.0  Probability that a message is lost.
    --until TIME  End of the run, such as 20s (default: when all have left).
    --seed N  Seed of all random draws.
    --name TEXT  Name of the run; its recording is named after it.
    --encoding TEXT  How the recording says that messages are encoded.
    --listen
    --token-file
    --certificate
    --key
    --realtime
    --lcm
    --lcm-serve
    --record
    --no-record
    --force
    --quiet
    """,
    PAGE,
)
def metasim_serve(
    clients: list[str],
    options: ClientsOptions,
    serving: ServerOptions,
    federation: FederationOptions,
    recording: RecordingOptions,
    paging: PageOptions,
    quiet: bool = False,
) -> None:
    """Wait for clients to connect, and run their simulators as one.

    A client is a Drake diagram or any other simulator: see MetasimClient. Once all are there, no other may connect.
    """
    if _are_counted(clients) and not recording.no_record:
        raise UsageError("a recording needs the clients' names", advice="name them all, or use --no-record")
    ready = ReadyFederation(
        name=options.name,
        made_plan=options.plan(clients),
        chosen=Executor("tcp"),
        encoding=options.encoding,
        options=RunOptions(federation=federation),
    )
    token = token_in(serving.access.token_file)
    check_service(ready, serving, token)
    shelf = recording.shelf(ready.recording)
    with page_of_ready(ready, paging) as page:
        serve_run(ready, serving, token, shelf, quiet=quiet, page=page)


def _rule(text: str, loss: float) -> Rule:
    pair, equals, delay = text.partition("=")
    sender, colon, receiver = pair.partition(":")
    if not (equals and colon and sender and receiver and delay):
        raise UsageError(f"--link {text} isn't a link", advice="write FROM:TO=TIME, such as plant:controller=5ms")
    return Rule(
        link=link(delay, loss=loss),
        sender=None if sender == "*" else sender,
        receiver=None if receiver == "*" else receiver,
    )


COMMANDS = {"metasim": {"serve": metasim_serve}}
"""The commands of a group of commands."""
