"""A secondary as a process of its own, with its task as the only argument: see `local`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec import json

from worldline.federation.environment import TOKEN
from worldline.model.errors import WorldlineError
from worldline.world.engines import open_engine
from worldline.world.local import SecondaryTask
from worldline.world.sdf import read_world
from worldline.world.secondary import Secondary


def main() -> int:
    task = json.decode(sys.argv[1], type=SecondaryTask)
    try:
        engine = open_engine(task.engine, read_world(Path(task.file)))
        Secondary(
            task.address,
            task.name,
            engine,
            federation=task.federation,
            token=os.environ.get(TOKEN) or None,
            silence_s=task.silence_s,
        ).run()
    except WorldlineError as error:
        print(f"worldline: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
