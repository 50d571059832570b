"""A participant's process: ``python -m worldline.launch.worker module:function``.

Where to connect and as whom stands in the environment, and what it declares in the federation's file, which the server
tells it. The exit code says how it went, as for the
`worldline` command.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from worldline.federation.client import Client, connect
from worldline.launch.entry import load_program
from worldline.launch.stamps import STAMPING, StampedOutput
from worldline.lock import RunEnded
from worldline.model import WorldlineError


def main() -> NoReturn:
    code = 0
    try:
        _, entry = sys.argv
        program = load_program(entry, Path.cwd())
        with connect(**program.said()) as participant:
            if not participant.ended:
                _run(program.run, participant)
    except WorldlineError as error:
        print(f"worldline: {error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception:  # Its author sees all of it here; the others have been told in a line.
        traceback.print_exc()
        code = 1
    sys.exit(code)


def _run(run: object, participant: Client) -> None:
    assert callable(run)
    usual = sys.stdout
    stamped = StampedOutput(usual, participant) if os.environ.get(STAMPING) else None
    try:
        if stamped is not None:
            sys.stdout = stamped
        run(participant)
    except RunEnded:
        return
    finally:
        sys.stdout = usual
        if stamped is not None:
            stamped.finish()


if __name__ == "__main__":
    main()
