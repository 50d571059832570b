"""A world over several processes of this machine, as one block of code."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from msgspec import json

from worldline.federation.address import Address
from worldline.federation.environment import TOKEN
from worldline.files.saving import ScratchFolder
from worldline.model.errors import LossError, UsageError, shortened
from worldline.processes.lifeline import Lifeline
from worldline.world.engines import open_engine
from worldline.world.hosting import Exchange
from worldline.world.primary import Primary
from worldline.world.sdf import read_world
from worldline.world.secondary import SILENCE_S, SecondaryTask

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


class _LocalProcess(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    lifeline: Lifeline
    said: IO[bytes]

    def last_words(self) -> str:
        size = os.fstat(self.said.fileno()).st_size
        said = os.pread(self.said.fileno(), _SAID_MAX, max(0, size - _SAID_MAX)).decode(errors="replace")
        lines = [line for line in said.splitlines() if line.strip()]
        return shortened(lines[-1].removeprefix("worldline: ")) if lines else "it said nothing"


class LocalSecondaries:
    """Processes that take part in a run on this machine. Those that are left when it is over are ended.

    They wait for their primary as long as it takes, however long it computes: if it is gone, they are ended.
    """

    def __init__(self, file: Path, engine: str, count: int, *, federation: str = "") -> None:
        self._file = file
        self._engine = engine
        self._federation = federation
        width = len(str(count))
        self.names = tuple(f"local-{number:0{width}}" for number in range(1, count + 1))
        self._processes: list[_LocalProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        until = time.monotonic() + _GRACE_S  # For all of them: there may be many.
        for each in self._processes:
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(max(0.0, until - time.monotonic()))
            each.lifeline.let_go()  # Whoever is still there is killed.
            each.process.wait()
            each.said.close()

    def start(self, address: Address, token: str) -> None:
        """Start them all, to connect to a primary."""
        for name in self.names:
            task = SecondaryTask(str(self._file), self._engine, str(address), name, self._federation, None)
            command = [sys.executable, "-m", "worldline.world.secondary", json.encode(task).decode()]
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
            self._processes.append(_LocalProcess(name, process, lifeline, said))

    def check(self) -> None:
        """Raise if one of them has ended: before the run is over, nobody is to."""
        for each in self._processes:
            if each.process.poll() is not None:
                raise LossError(f"{each.name} ended before the run began: {each.last_words()}")
