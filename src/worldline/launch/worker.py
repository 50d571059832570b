"""A participant's process: ``python -m worldline.launch.worker module:function``; ``@FILE`` if several share it.

Where to connect and as whom stands in the environment, and what it declares in the federation's file, which the server
tells it. The exit code says how it went, as for the `worldline` command.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from worldline.federation.client import connect
from worldline.launch.conduct import last_words, live, stamped_output
from worldline.launch.entry import load_program


def main() -> NoReturn:
    code = 0
    stamps = stamped_output()
    _, entry = sys.argv
    if entry.startswith("@"):
        from worldline.launch.shared_worker import work  # Most processes don't need it.

        sys.exit(work(Path(entry[1:]), stamps))
    try:
        program = load_program(entry, Path.cwd())
        with connect(**program.said()) as participant:
            stamps.now = lambda: participant.now
            live(program, participant)
    except (Exception, KeyboardInterrupt) as error:
        code = last_words(error)
    sys.exit(code)


if __name__ == "__main__":
    main()
