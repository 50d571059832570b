"""`worldline world`: a world of robots, in this process or over several."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.console import PlainConsole, remark
from worldline.cli.interruption import interruptible
from worldline.cli.options import Force, Quiet, shelf_for, token_in
from worldline.cli.serve import CertificateKey, Realtime, ServerCertificate, TokenFile
from worldline.cli.world_run import FEDERATION, WorldNetwork, WorldSession
from worldline.model import as_time
from worldline.model.errors import UsageError
from worldline.world.cast import Cast
from worldline.world.description import WorldDescription
from worldline.world.discovery import DiscoveryOptions, PeerRole
from worldline.world.engines import ENGINES, first_notes, open_engine
from worldline.world.report import load_remarks, world_report
from worldline.world.sdf import read_world
from worldline.world.secondary import SILENCE_S, network_part

_NETWORK = "Several processes"
_DISCOVERY = "Discovery"
_OUTPUT = "Output"
_LISTEN = "tcp://127.0.0.1:0"
_PATIENCE_S = 60.0
_STDIN = "-"


def world(
    file: Annotated[Path, typer.Argument(metavar="FILE.sdf", help="The world, in Gazebo's SDF.")],
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the run, such as 20s (default: until interrupted).")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what is in the file and what isn't supported, and run nothing.")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help=f"Physics: {' or '.join(ENGINES)}, without contacts.")
    ] = ENGINES[0],
    realtime: Realtime = None,
    run_ahead: Annotated[
        int, typer.Option(min=1, metavar="STEPS", help="Steps that secondaries may go without waiting. Same result.")
    ] = 1,
    console: Annotated[
        str | None,
        typer.Option(
            metavar="[SCRIPT]",
            help="Control the run by commands, from a file or from the keyboard. `help` lists them.",
        ),
    ] = None,
    replay_interactions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Repeat what was done to a run, from its recording or its log."),
    ] = None,
    quiet: Quiet = False,
    local_secondaries: Annotated[
        int | None,
        typer.Option(rich_help_panel=_NETWORK, min=1, metavar="N", help="Simulate in N processes on this machine."),
    ] = None,
    network_role: Annotated[
        str | None,
        typer.Option(rich_help_panel=_NETWORK, metavar="ROLE", help="primary or secondary (default: run alone)."),
    ] = None,
    network_secondaries: Annotated[
        int | None,
        typer.Option(rich_help_panel=_NETWORK, metavar="N", help="How many secondaries a primary waits for."),
    ] = None,
    network_primary: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_NETWORK, metavar="ADDRESS", help="Where a secondary's primary is (default: discovered)."
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(rich_help_panel=_NETWORK, metavar="ADDRESS", help="Where a primary's secondaries connect."),
    ] = _LISTEN,
    name: Annotated[
        str | None,
        typer.Option(rich_help_panel=_NETWORK, help="A secondary's name (default: of its machine and process)."),
    ] = None,
    federation: Annotated[
        str, typer.Option(rich_help_panel=_NETWORK, metavar="ID", help="Keeps runs on one network apart.")
    ] = FEDERATION,
    token_file: TokenFile = None,
    certificate: ServerCertificate = None,
    key: CertificateKey = None,
    authority: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_NETWORK, help="Certificates that a secondary trusts, for a tls:// primary."),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(rich_help_panel=_NETWORK, min=0, metavar="SECONDS", help="How long to wait for the others."),
    ] = _PATIENCE_S,
    heartbeat_limit: Annotated[
        float,
        typer.Option(
            rich_help_panel=_NETWORK, min=1, metavar="SECONDS", help="How long another process may be silent."
        ),
    ] = SILENCE_S,
    no_discovery: Annotated[
        bool, typer.Option("--no-discovery", rich_help_panel=_DISCOVERY, help="Connect by address alone.")
    ] = False,
    interface: Annotated[
        str, typer.Option(rich_help_panel=_DISCOVERY, metavar="NAME", help="Network interface (default: loopback).")
    ] = "",
    meet: Annotated[
        str,
        typer.Option(rich_help_panel=_DISCOVERY, metavar="ENDPOINT", help="Where processes of one machine meet."),
    ] = "",
    discovery_listen: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_DISCOVERY, metavar="ENDPOINT", help="Where others can find this process."),
    ] = None,
    discovery_connect: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_DISCOVERY, metavar="ENDPOINT", help="Where to find another process."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_OUTPUT, metavar="FILE.mcap", help="Record the run, for Foxglove too."),
    ] = None,
    record_every: Annotated[
        int, typer.Option(rich_help_panel=_OUTPUT, min=1, metavar="STEPS", help="Steps between recorded poses.")
    ] = 1,
    paths: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_OUTPUT, metavar="FILE.svg", help="Draw the performers' paths, by secondary."),
    ] = None,
    animation: Annotated[
        Path | None, typer.Option(rich_help_panel=_OUTPUT, metavar="FILE.html", help="Draw the run as an animation.")
    ] = None,
    hashes: Annotated[
        Path | None, typer.Option(rich_help_panel=_OUTPUT, metavar="FILE", help="Write the state hash of each step.")
    ] = None,
    interactions: Annotated[
        Path | None, typer.Option(rich_help_panel=_OUTPUT, metavar="FILE", help="Write down what was done to the run.")
    ] = None,
    force: Force = False,
) -> None:
    """Run a world of robots in lockstep, in one process or over several: the same bit for bit.

    With --local-secondaries, processes on this machine simulate it. With --network-role, start one primary and its
    secondaries by hand, here or on other machines. They find each other, or are told the primary's address.
    """
    part = network_part(network_role, network_secondaries, os.environ)
    for warning in part.warnings:
        remark(warning)
    description = read_world(file)
    if check:
        _check(description, engine)
        return
    opened = open_engine(engine, description)
    for line in load_remarks(description, first_notes(opened, Cast(description).loaded())):
        remark(f"{file}: {line}")
    network = WorldNetwork(
        federation=federation,
        token=token_in(token_file),
        patience_s=patience,
        silence_s=heartbeat_limit,
        discovery=None
        if no_discovery
        else DiscoveryOptions(
            interface=interface,
            meeting_point=meet,
            listen=discovery_listen or (),
            connect=discovery_connect or (),
            stale_s=heartbeat_limit,
        ),
        certificate=certificate,
        key=key,
        authority=authority,
    )

    def say(text: str) -> None:
        if not quiet:
            PlainConsole().print(text)

    if part.role is PeerRole.SECONDARY:
        _refuse_on_secondary(
            {
                "--until": until,
                "--realtime": realtime,
                "--console": console,
                "--replay-interactions": replay_interactions,
                "--local-secondaries": local_secondaries,
                "--record": record,
                "--paths": paths,
                "--animation": animation,
                "--hashes": hashes,
                "--interactions": interactions,
            }
        )
        with interruptible():
            step = network.secondary(opened, name, network_primary, say)
        say(f"the run is over, after step {step:,}")
        return
    if network_primary is not None or name is not None:
        raise UsageError("--network-primary and --name are for secondaries", advice="--network-role=secondary")
    if part.role is not None and local_secondaries is not None:
        raise UsageError("--local-secondaries starts all there is", advice="leave out --network-role")
    WorldSession(
        description=description,
        file=file,
        engine=opened,
        engine_name=engine,
        network=network,
        secondaries=part.secondaries,
        listen=listen,
        local_secondaries=local_secondaries,
        run_ahead=run_ahead,
        until=None if until is None else as_time(until, "an end time"),
        pace=realtime,
        script=None if console in (None, _STDIN) else Path(str(console)),
        is_console=console == _STDIN,
        replayed=replay_interactions,
        shelf=shelf_for(record, None, no_record=False, force=force),
        record_every=record_every,
        paths=paths,
        animation=animation,
        hashes=hashes,
        interactions=interactions,
        quiet=quiet,
    ).run()


def completed(arguments: list[str]) -> list[str]:
    """Return the arguments with a value for a bare --console: the keyboard."""
    found: list[str] = []
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        found.append(argument)
        if argument == "--console" and (following is None or not _is_script(following)):
            found.append(_STDIN)
    return found


def _is_script(text: str) -> bool:
    return text == _STDIN or not (text.startswith("-") or text.endswith((".sdf", ".world")))


def _check(description: WorldDescription, engine: str) -> None:
    """Say what is in a world. What passes can be run, so the engine builds it, if it is installed."""
    try:
        opened = open_engine(engine, description)
    except UsageError as error:
        remark(f"not checked by an engine: {error.text()}")
        found = []
    else:
        found = first_notes(opened)
    for line in world_report(description, found):
        PlainConsole().print(line)


def _refuse_on_secondary(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is for the primary, through which everything is controlled and seen")
