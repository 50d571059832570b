"""`worldline metasim`: simulators that somebody else starts, under one clock."""

from __future__ import annotations

from typing import Annotated

import typer

from worldline.cli.options import Force, NoRecord, Quiet, operator_token_in, shelf_for, token_in
from worldline.cli.public_lcm import LcmServe, LcmTargets
from worldline.cli.serve import (
    LISTEN,
    CertificateKey,
    Listen,
    Realtime,
    Record,
    ServerCertificate,
    Service,
    TokenFile,
)
from worldline.launch.file.lcm_types import ENCODING
from worldline.model import Network, Rule, UsageError, as_time, link, plan
from worldline.processes.executor import Tcp
from worldline.targets.federation import ReadyFederation


def metasim() -> None:
    """Coordinate simulators in several processes as one, without a federation's file."""


def serve(
    clients: Annotated[
        list[str], typer.Argument(metavar="CLIENTS", help="The names of the clients, or how many they are.")
    ],
    delay: Annotated[
        str,
        typer.Option(metavar="TIME", help='How long messages take: 10ms, or drawn for each: "uniform(4ms, 9ms)".'),
    ],
    links: Annotated[
        list[str] | None,
        typer.Option(
            "--link", metavar="FROM:TO=TIME", help="How long they take from one client to another; * is any client."
        ),
    ] = None,
    loss: Annotated[float, typer.Option(min=0.0, max=1.0, help="Probability that a message is lost.")] = 0.0,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the run, such as 20s (default: when all have left).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    name: Annotated[str, typer.Option(help="Name of the run; its recording is named after it.")] = "metasim",
    encoding: Annotated[str, typer.Option(help="How the recording says that messages are encoded.")] = ENCODING,
    listen: Listen = LISTEN,
    token_file: TokenFile = None,
    certificate: ServerCertificate = None,
    key: CertificateKey = None,
    realtime: Realtime = None,
    lcm: LcmTargets = None,
    lcm_serve: LcmServe = None,
    record: Record = None,
    no_record: NoRecord = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Wait for clients to connect, and run their simulators as one.

    A client is a Drake diagram or any other simulator: see MetasimClient. Once all are there, nobody may connect.
    """
    counted = len(clients) == 1 and clients[0].isdecimal()
    if counted and not no_record:
        raise UsageError("a recording needs the clients' names", advice="name them all, or use --no-record")
    network = Network(default=link(delay, loss=loss), rules=tuple(_rule(text, loss) for text in links or ()))
    planned = plan(
        () if counted else clients,
        vacancies=int(clients[0]) if counted else 0,
        network=network,
        seed=seed,
        until=None if until is None else as_time(until, "an end time"),
    )
    ready = ReadyFederation(name=name, made_plan=planned, chosen=Tcp(), names=planned.roster, encoding=encoding)
    service = Service(
        ready=ready,
        listen=listen,
        token=token_in(token_file),
        operator_token=operator_token_in(None),
        certificate=certificate,
        key=key,
        realtime=realtime,
        lcm=tuple(lcm or ()),
        lcm_serve=lcm_serve,
    )
    service.run(shelf_for(record, ready.recording, no_record=no_record, force=force), quiet=quiet)


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
