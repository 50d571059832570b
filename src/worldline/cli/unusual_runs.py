"""What a person has to do with a run in which somebody isn't started like the rest: start it, or debug it."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from worldline.cli.screen import Screen
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.federation.address import Address
    from worldline.launch.setup import Setup


@contextmanager
def unusually_run(ready: ReadyFederation, screen: Screen) -> Iterator[ReadyFederation]:
    """Have a person told whom to start, and have the terminal lent to whom it is for."""
    unusual, setup = ready.unusual, ready.setup
    if unusual is None or setup is None:
        yield ready
        return
    if unusual.awaited:
        ready = replace(
            ready, opened=lambda address, awaited: _say_whom_to_start(awaited, setup, address, ready, screen)
        )
    if unusual.debugged is None:
        yield ready
        return
    from worldline.cli.terminal import lent_terminal

    with lent_terminal(screen) as terminal:
        yield replace(ready, terminal=terminal)


def _say_whom_to_start(
    awaited: Sequence[str], setup: Setup, address: Address, ready: ReadyFederation, screen: Screen
) -> None:
    where = str(address)
    if address.place in _ANYWHERE:
        where = str(replace(address, place=socket.gethostname()))
    settings = [word for setting in ready.settings for word in ("--set", setting)]
    for name in awaited:
        part = setup.parts[name]
        if part.entry is None and part.command is None:
            screen.conclude(f"waiting for {name}, which connects to {where}")
        else:
            command = ["worldline", "join", str(setup.file), name, "--address", where, *settings]
            screen.conclude(f"waiting for {name}; start it with: {shlex.join(command)}")


_ANYWHERE = ("0.0.0.0", "::")
