"""A run that another process serves: `worldline join` takes part; `pause`, `step`, `resume` and `end` operate it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

from worldline.cli.console import PlainConsole, print_json, remark
from worldline.cli.options import LISTEN, AccessOptions, takes, token_in
from worldline.federation.address import parse_address
from worldline.federation.environment import (
    ADDRESS,
    AUTHORITY,
    CERTIFICATE,
    KEY,
    OPERATOR_TOKEN,
    TOKEN,
    LaunchEnvironment,
    read_surroundings,
)
from worldline.federation.operator import Operator
from worldline.federation.registry import RunEntry, running
from worldline.launch.file.setup import Setup, check_name_in, check_startable, read_setup
from worldline.launch.processes import become_participant, check_welcome
from worldline.lock.why.reasons import Situation
from worldline.lock.why.words import in_words
from worldline.model import LossError, UsageError, format_time
from worldline.model.errors import nearest, shown
from worldline.model.reading import as_time
from worldline.wire.operator import RunOver

# Finds the run that an operator means, by its name or its address, and connects to it.

_RUN = """
    RUN  The run's name, its number of a process if several have that name, or its server's address (default: the only
        run of yours on this machine).
"""
ACCESS = f"""
    --token-file FILE  File with the operator's token, for a run on another machine (or set {OPERATOR_TOKEN}).
    --authority FILE  Authority whose certificates to trust, for tls://.
    --certificate FILE  Certificate to present, for tls://.
    --key
"""


_ADDRESS = re.compile(r"(?:tcp|tls|unix):.*|\[?[\w.:-]*\]?:\d+")


def is_noted(run: str) -> bool:
    """Whether what an operator names is a file, and not a run that goes on."""
    return Path(run).suffix in (".mcap", ".timing")


def connected(run: str | None, access: AccessOptions) -> Operator:
    """Connect to the run that is meant."""
    shown: dict[str, Any] = {"authority": access.authority, "certificate": access.certificate, "key": access.key}
    if run is not None and _ADDRESS.fullmatch(run):
        return Operator(run, token=token_in(access.token_file, of_operator=True), **shown)
    entry = found(run)
    try:
        return Operator(entry.address, token=entry.token, process=entry.process, **shown)
    except LossError as error:
        raise LossError(f"{entry.name} (process {entry.process}): {error.problem}", advice=error.advice) from error


def operated(run: str | None, access: AccessOptions) -> Operator:
    """Connect to the run that is meant, to change how it goes on; say which that is, if it wasn't named."""
    if run is None:
        entry = found(run)
        run = str(entry.process)
        remark(f"{entry.name}, process {run}:")
    return connected(run, access)


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
        raise UsageError("none of your runs is going on here", advice="name another by its address")
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


# `worldline end`: end a run.

_END_PATIENCE_S = 10.0


@takes(
    _RUN,
    """
    --at TIME  When, in simulated time (default: as soon as possible).
    --now  Break it off, as Ctrl-C would: it has no result, and all participants are told why.
    """,
    ACCESS,
)
def end(run: str | None = None, *, at: str | None = None, now: bool = False, access: AccessOptions) -> None:
    """End a federation in good order: it has a result, as if it had been run with --until that time."""
    if at is not None and now:
        raise UsageError("--at and --now contradict each other", advice="use one")
    when = None if at is None else as_time(at, "a time for --at")
    with operated(run, access) as operator:
        ends = operator.end(at=when, now=now)
        if isinstance(ends, RunOver):
            conclude(ends)
        if ends is not None:
            PlainConsole().print(f"it ends at {format_time(ends)}")
        try:
            over = operator.last_word(_END_PATIENCE_S)
        except LossError:  # It ends when all participants are there; its operator can ask again.
            return
        conclude(over)


# `worldline pause`: hold a run where it is.


@takes(_RUN, ACCESS)
def pause(run: str | None = None, *, access: AccessOptions) -> None:
    """Hold a running federation where it is; its result stays the same.

    Participants that were allowed to go on still do so; none is allowed any more. `worldline resume` lets them go on.
    """
    with operated(run, access) as operator:
        held = operator.pause()
        if isinstance(held, RunOver):
            conclude(held)
        PlainConsole().print(f"paused at {format_time(held)}")


# `worldline resume`: let a run go on that was paused.


@takes(_RUN, ACCESS)
def resume(run: str | None = None, *, access: AccessOptions) -> None:
    """Let a federation go on that `worldline pause` or `worldline step` holds."""
    with operated(run, access) as operator:
        over = operator.resume()
        if over is not None:
            conclude(over)
        PlainConsole().print("resumed")


_PATIENCE_S = 10.0


@takes(
    _RUN,
    """
    --by TIME  How far to go, in simulated time: 10ms.
    --to TIME  Where to stop, in simulated time: 12.5s.
    --wait SECONDS at least 0.0  How long to wait for all participants to get there.
    """,
    ACCESS,
)
def step(
    run: str | None = None,
    *,
    by: str | None = None,
    to: str | None = None,
    wait: float = _PATIENCE_S,
    access: AccessOptions,
) -> None:
    """Let a federation go on, to the next time at which a participant acts or as far as you say, and hold it there.

    The command ends when all participants stand there. The run's result stays the same.
    """
    if by is not None and to is not None:
        raise UsageError("--by and --to contradict each other", advice="use one")
    far = None if by is None else as_time(by, "a time for --by")
    target = None if to is None else as_time(to, "a time for --to")
    with operated(run, access) as operator:
        try:
            reached = operator.step(by=far, to=target, within_s=wait)
        except LossError as error:
            raise _not_there(operator, wait) from error
        if isinstance(reached, RunOver):
            conclude(reached)
        PlainConsole().print(f"at {format_time(reached)}")


def _not_there(operator: Operator, waited_s: float) -> LossError:
    """Say who hasn't come as far as that: they go on all the same."""
    situation = operator.situation()
    if isinstance(situation, Situation):
        for line in in_words(situation):
            PlainConsole().print(line)
    return LossError(f"not all participants were there within {waited_s:g} seconds", advice="they are on their way")


# `worldline join`: one participant of a federation, started here, in a run that goes on elsewhere.


@takes(
    f"""
    file: FILE.toml  The file that describes the federation.
    NAME  The participant to start.
    --address ADDRESS  Where the run is served (default: {ADDRESS}, or your run of that federation here, or {LISTEN}).
    --token-file FILE  File with the token to present (or set {TOKEN}).
    --authority FILE  Authority to trust, for tls:// (or set {AUTHORITY}).
    --certificate FILE  Certificate to present, for tls:// (or set {CERTIFICATE}).
    --key FILE  The certificate's key, if in a separate file (or set {KEY}).
    --set
    """
)
def join(
    file: Path,
    name: str,
    address: str | None = None,
    token_file: Path | None = None,
    authority: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    settings: list[str] | None = None,
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
