"""`worldline metasim`: simulators that somebody else starts, under one clock."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec import Struct

from worldline.cli.options import (
    LCM,
    LCM_SERVE,
    REALTIME,
    Quiet,
    RecordingOptions,
    ServerOptions,
    token_in,
)
from worldline.cli.serve import check_service, serve_run
from worldline.launch.file.lcm_types import ENCODING
from worldline.model import Network, Plan, Rule, UsageError, as_time, link, plan
from worldline.processes.executor import Executor
from worldline.targets import FederationOptions, RunOptions
from worldline.targets.federation import ReadyFederation

_SHARED = {"token_directory": None, "operator_token_file": None, "authority": None}  # All clients have one token.


class ClientsOptions(Struct, frozen=True, kw_only=True):
    """What the run of some clients is: how messages get from one to another, and until when."""

    delay: Annotated[
        str,
        typer.Option(metavar="TIME", help='How long messages take: 10ms, or drawn for each: "uniform(4ms, 9ms)".'),
    ]
    links: Annotated[
        tuple[str, ...],
        typer.Option(
            "--link", metavar="FROM:TO=TIME", help="How long they take from one client to another; * is any client."
        ),
    ] = ()
    loss: Annotated[float, typer.Option(min=0.0, max=1.0, help="Probability that a message is lost.")] = 0.0
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the run, such as 20s (default: when all have left).")
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0
    name: Annotated[str, typer.Option(help="Name of the run; its recording is named after it.")] = "metasim"
    encoding: Annotated[str, typer.Option(help="How the recording says that messages are encoded.")] = ENCODING

    def plan(self, clients: list[str]) -> Plan:
        """Return the plan of a run of these clients, which are named or counted."""
        rules = tuple(_rule(text, self.loss) for text in self.links)
        counted = _are_counted(clients)
        return plan(
            () if counted else clients,
            vacancies=int(clients[0]) if counted else 0,
            network=Network(default=link(self.delay, loss=self.loss), rules=rules),
            seed=self.seed,
            until=None if self.until is None else as_time(self.until, "an end time"),
        )


def _are_counted(clients: list[str]) -> bool:
    return len(clients) == 1 and clients[0].isdecimal()


def metasim() -> None:
    """Coordinate simulators in several processes as one, without a federation's file."""


def serve(
    clients: Annotated[
        list[str], typer.Argument(metavar="CLIENTS", help="The names of the clients, or how many they are.")
    ],
    options: ClientsOptions,
    access: Annotated[ServerOptions, _SHARED],
    federation: Annotated[FederationOptions, {"realtime": REALTIME, "lcm": LCM, "lcm_serve": LCM_SERVE}],
    recording: RecordingOptions,
    quiet: Quiet = False,
) -> None:
    """Wait for clients to connect, and run their simulators as one.

    A client is a Drake diagram or any other simulator: see MetasimClient. Once all are there, nobody may connect.
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
    token = token_in(access.token_file)
    check_service(ready, access, token)
    serve_run(ready, access, token, recording.shelf(ready.recording), quiet=quiet)


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


COMMANDS = {"serve": serve}
