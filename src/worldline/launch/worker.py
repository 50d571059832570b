"""A participant's process: ``python -m worldline.launch.worker module:function``; ``@FILE`` if several share it.

Where to connect and as whom stands in the environment, and what it declares in the federation's file, which the server
tells it. The exit code says how it went, as for the `worldline` command.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import NoReturn

from worldline.federation.environment import read_surroundings
from worldline.federation.participant.call import Call
from worldline.federation.participant.client import Client, connect, connection_over, dial_server
from worldline.federation.participant.program import Program
from worldline.launch.file.startable import load_program
from worldline.launch.shared_worker import last_words, live, stamped_output


def main() -> NoReturn:
    code = 0
    stamps = stamped_output()
    _, entry = sys.argv
    if entry.startswith("@"):
        from worldline.launch.shared_worker import work  # Most processes don't need it.

        sys.exit(work(Path(entry[1:]), stamps))
    try:
        program = load_program(entry, Path.cwd())
        with _participant(program) as participant:
            stamps.now = lambda: participant.now
            live(program, participant)
    except (Exception, KeyboardInterrupt) as error:
        code = last_words(error)
    sys.exit(code)


def _participant(program: Program) -> Client:
    """Return the participant that this process is to be: one with a connection, or a twin of one."""
    around = read_surroundings(os.environ)
    if around.twin is not None and around.name is not None:
        from worldline.launch.twin import TwinWire  # These, too, hardly anybody needs.

        return TwinWire(around.name, Path(around.twin)).participant(program)
    if around.script is None:
        return connect(**program.said())
    from worldline.launch.twin import OverheardSocket
    from worldline.launch.twins import ScriptWriter, is_begun

    folder = Path(around.script)
    if is_begun(folder):  # By a process that was lost, and whose place this one takes.
        return connect(**program.said())
    call = Call(None, None, **program.said())
    dialed = dial_server(call)
    assert isinstance(dialed, socket.socket)  # A launcher's participants are on its machine, and need no TLS.
    connection = connection_over(call, OverheardSocket(dialed, ScriptWriter(folder)))
    return Client(call.ledger(connection.welcome), connection, connection)


if __name__ == "__main__":
    main()
