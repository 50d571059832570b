"""A world over several processes of this machine, as one block of code."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from worldline.federation.address import Address
from worldline.federation.environment import TOKEN
from worldline.files.saving import ScratchFolder
from worldline.model.errors import LossError, UsageError, shortened
from worldline.processes.lifeline import Lifeline
from worldline.world.engines import open_engine
from worldline.world.hosting import Exchange
from worldline.world.primary import Primary
from worldline.world.sdf import read_world
from worldline.world.secondary import SILENCE_S, secondary_command

PATIENCE_S = 120.0  # To start processes may take long on a busy machine; one that ends is noticed at once.


@contextmanager
def local_secondaries(
    file: Path | str,
    count: int,
    *,
    engine: str = "mujoco",
    silence_s: float = SILENCE_S,
    patience_s: float = PATIENCE_S,
) -> Iterator[Exchange]:
    """Have a world simulated by so many secondaries, each a process on this machine::

    with local_secondaries("levels.sdf", 3) as exchange, World("levels.sdf", exchange=exchange) as world:
        world.run_to("10s")
    """
    path = Path(file)
    token = secrets.token_hex()
    opened = open_engine(engine, read_world(path))
    with (
        ScratchFolder() as folder,
        LocalSecondaries(path, engine, count) as processes,
    ):
        address = f"unix://{folder}/world.sock"  # Faster than TCP.
        primary = Primary(opened, count, address, token=token, patience_s=patience_s, silence_s=silence_s)
        processes.start(primary.open(), token)
        with primary.gathered(check=processes.check) as exchange:
            yield exchange


# Secondaries on this machine: a process each, started for one run and ended with it.

_GRACE_S = 3.0
_SAID_MAX = 2**16


class LocalSecondaries:
    """Processes that take part in a run on this machine. Those that are left when it is over are ended.

    They wait for their primary as long as it takes, however long it computes: if it is gone, they are ended.
    """

    def __init__(self, file: Path, engine: str, count: int) -> None:
        self._file = file
        self._engine = engine
        width = len(str(count))
        self.names = tuple(f"local-{number:0{width}}" for number in range(1, count + 1))
        self._processes: list[tuple[str, subprocess.Popen[bytes], Lifeline, IO[bytes]]] = []  # And what it said.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        until = time.monotonic() + _GRACE_S  # For all of them: there may be many.
        for _, process, lifeline, said in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            lifeline.let_go()  # A process that is still there is killed.
            process.wait()
            said.close()

    def start(self, address: Address, token: str) -> None:
        """Start them all, to connect to a primary."""
        for name in self.names:
            command = secondary_command(self._file, self._engine, address, name)
            lifeline = Lifeline()
            said = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended.
            try:
                process = subprocess.Popen(
                    lifeline.tied(command),
                    env={**os.environ, TOKEN: token},
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    pass_fds=[lifeline.end],
                    start_new_session=True,  # Ctrl-C is for the primary, which tells them.
                )
            except OSError as error:
                lifeline.let_go()
                said.close()
                raise UsageError(f"{name} can't be started: {error}") from error
            finally:
                lifeline.hand_over()
            self._processes.append((name, process, lifeline, said))

    def check(self) -> None:
        """Raise if one of them has ended: before the run is over, none is to."""
        for name, process, _, said in self._processes:
            if process.poll() is not None:
                size = os.fstat(said.fileno()).st_size
                text = os.pread(said.fileno(), _SAID_MAX, max(0, size - _SAID_MAX)).decode(errors="replace")
                last = next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")
                raise LossError(f"{name} ended before the run began: {shortened(last.removeprefix('worldline: '))}")
