"""A participant's process: ``python -m worldline.launch.worker module:function``.

Where to connect and as whom stands in the environment, and what it declares in the federation's file, which the server
tells it. The exit code says how it went, as for the `worldline` command.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from worldline.federation.blame import NO_TERMINAL
from worldline.federation.bystander import is_bystander, parting_words
from worldline.federation.client import Client, connect
from worldline.launch.entry import load_program
from worldline.launch.time_stamps import STAMPING, TimeStamps
from worldline.lock import RunEnded
from worldline.model import UsageError, WorldlineError
from worldline.model.blame import trace_of


def main() -> NoReturn:
    code = 0
    stamps = TimeStamps()
    if os.environ.get(STAMPING):
        stamps.install()
    if os.environ.get("PYTHONBREAKPOINT") in (None, "", "pdb.set_trace"):  # Others may need no terminal.
        sys.breakpointhook = _stop_for_debugger
    try:
        _, entry = sys.argv
        program = load_program(entry, Path.cwd())
        with connect(**program.said()) as participant:
            stamps.now = lambda: participant.now
            if not participant.ended:
                _run(program.run, participant)
    except WorldlineError as error:
        print(parting_words(error) if is_bystander(error) else f"worldline: {error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # Its author sees all of it here; the others have been told in a line.
        print(trace_of(error), file=sys.stderr)
        code = 1
    sys.exit(code)


def _run(run: object, participant: Client) -> None:
    assert callable(run)
    try:
        run(participant)
    except RunEnded:
        return


def _stop_for_debugger(*_: object, **__: object) -> None:
    raise UsageError("breakpoint() needs a terminal, which a participant's process doesn't have", advice=NO_TERMINAL)


if __name__ == "__main__":
    main()
