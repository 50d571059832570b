"""A world over several processes of this machine, as one block of code."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worldline.files.saving import ScratchFolder
from worldline.world.engines import open_engine
from worldline.world.hosting import Exchange
from worldline.world.local import LocalSecondaries
from worldline.world.primary import Primary
from worldline.world.sdf import read_world
from worldline.world.secondary import SILENCE_S

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
