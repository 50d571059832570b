"""A process that several participants share: ``python -m worldline.launch.shared_worker FILE``.

Each is a program on its own, which ends as it would in a process of its own, with the same last words. FILE says who
they are; whoever started this process removes it. The exit code is that of the first who has come to a bad end, if not
because of somebody else.
"""

from __future__ import annotations

import os
import sys
from operator import itemgetter
from pathlib import Path
from typing import NoReturn

import msgspec

from worldline.federation.bystander import is_bystander
from worldline.federation.call import Call
from worldline.federation.circuits import Circuit
from worldline.federation.crew import Crew
from worldline.federation.environment import read_surroundings
from worldline.launch.entry import load_program
from worldline.launch.worker import last_words, live, prepared
from worldline.model import Stream


class SharedParticipant(msgspec.Struct, frozen=True):
    """One of those who share a process, as its launcher describes it."""

    name: str
    entry: str
    token: str


def write_share(share: list[SharedParticipant]) -> bytes:
    """Return what tells a process who shares it."""
    return msgspec.json.encode(share)


def main() -> NoReturn:
    stamps = prepared()
    loading: str | None = None
    stamps.speaker = lambda: loading
    try:
        share = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[SharedParticipant])
        programs = {}
        for each in share:  # All of them before anybody joins: whoever can't be loaded is missed by nobody then.
            loading = each.name
            programs[each.name] = load_program(each.entry, Path.cwd())
        loading = None
        calls = [Call(None, each.name, token=each.token, **programs[each.name].said()) for each in share]
        shake = read_surroundings(os.environ).shake
        crew = Crew(calls, None if shake is None else Stream(shake, "shake", share[0].name))
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(last_words(error))
    stamps.speaker, stamps.now = crew.running, crew.now
    ends: list[tuple[bool, int]] = []  # For each, whether that was because of somebody else, and its exit code.

    def run(circuit: Circuit) -> None:
        try:
            with crew.participant(circuit) as participant:
                live(programs[circuit.name], participant)
        except SystemExit as error:
            ends.append((False, _exit_code(error)))
        except (Exception, KeyboardInterrupt) as error:
            ends.append((is_bystander(error), last_words(error)))

    crew.run(run)
    sys.exit(next((code for _, code in sorted(ends, key=itemgetter(0)) if code), 0))


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main()
