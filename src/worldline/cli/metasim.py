"""`worldline metasim`: simulators that somebody else starts, under one clock."""

from __future__ import annotations

from msgspec import Struct

from worldline.cli.options import RecordingOptions, ServerOptions, takes, token_in
from worldline.cli.serve import check_service, serve_run
from worldline.launch.file.lcm_types import ENCODING
from worldline.model import Network, Plan, Rule, UsageError, as_time, link, plan
from worldline.processes.executor import Tcp
from worldline.targets import FederationOptions, RunOptions
from worldline.targets.federation import ReadyFederation


class ClientsOptions(Struct, frozen=True, kw_only=True):
    """What the run of some clients is: how messages get from one to another, and until when."""

    delay: str
    links: tuple[str, ...] = ()
    loss: float = 0.0
    until: str | None = None
    seed: int = 0
    name: str = "metasim"
    encoding: str = ENCODING

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
    """
)
def serve(
    clients: list[str],
    options: ClientsOptions,
    access: ServerOptions,
    federation: FederationOptions,
    recording: RecordingOptions,
    quiet: bool = False,
) -> None:
    """Wait for clients to connect, and run their simulators as one.

    A client is a Drake diagram or any other simulator: see MetasimClient. Once all are there, nobody may connect.
    """
    if _are_counted(clients) and not recording.no_record:
        raise UsageError("a recording needs the clients' names", advice="name them all, or use --no-record")
    ready = ReadyFederation(
        name=options.name,
        made_plan=options.plan(clients),
        chosen=Tcp(),
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
