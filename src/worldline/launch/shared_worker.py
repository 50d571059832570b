"""What is done in a process that several participants share.

Each is a program on its own, which ends as it would in a process of its own, with the same last words. A file says
who they are. In the end it says with which exit code each would have ended a process of its own; the exit code of this
one is the first of these that isn't because of somebody else.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from worldline.federation.bystander import is_bystander
from worldline.federation.call import Call
from worldline.federation.circuits import Circuit
from worldline.federation.crew import Crew
from worldline.federation.environment import read_surroundings
from worldline.launch.conduct import last_words, live
from worldline.launch.entry import load_program
from worldline.launch.running_mark import RunningMark
from worldline.launch.time_stamps import TimeStamps
from worldline.model import Stream


class SharedParticipant(msgspec.Struct, frozen=True):
    """One of those who share a process, as its launcher describes it."""

    name: str
    entry: str
    token: str


def write_share(file: Path, share: list[SharedParticipant]) -> None:
    """Write down who is to share a process. There are tokens in it: nobody else can ever read it."""
    file.touch(mode=0o600)
    file.write_bytes(msgspec.json.encode(share))


def failed_in_share(file: Path) -> list[str]:
    """Return who of those who shared a process has come to a bad end, if they have come to an end by themselves."""
    try:
        codes = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    except (OSError, msgspec.MsgspecError):  # It still says who they are.
        return []
    return [name for name, code in codes.items() if code]


def work(file: Path, stamps: TimeStamps) -> int:
    """Run the programs of those whom the file names, to the end; return the exit code."""
    loading: str | None = None
    stamps.speaker = lambda: loading
    try:
        share = msgspec.json.decode(file.read_bytes(), type=list[SharedParticipant])
        running = RunningMark(file)
        programs = {}
        for place, each in enumerate(share):  # All before anybody joins: one that can't be loaded isn't missed then.
            loading = each.name
            running.note(place)
            programs[each.name] = load_program(each.entry, Path.cwd())
        loading = None
        running.note(None)
        calls = [Call(None, each.name, token=each.token, **programs[each.name].said()) for each in share]
        shake = read_surroundings(os.environ).shake
        crew = Crew(calls, None if shake is None else Stream(shake, "shake", share[0].name), running.note)
    except (Exception, KeyboardInterrupt) as error:
        code = last_words(error)
        if loading is not None:
            _write_codes(file, {loading: code})
        return code
    stamps.speaker, stamps.now = crew.running, crew.now
    codes = dict.fromkeys(programs, 0)
    bystanders = dict.fromkeys(programs, 0)

    def run(circuit: Circuit) -> None:
        try:
            with crew.participant(circuit) as participant:
                live(programs[circuit.name], participant)
        except SystemExit as error:
            codes[circuit.name] = _exit_code(error)
        except BaseException as error:  # Whatever it is, the others of this process go on.
            (bystanders if is_bystander(error) else codes)[circuit.name] = last_words(error)

    crew.run(run)
    _write_codes(file, {name: code or bystanders[name] for name, code in codes.items()})
    return next(filter(None, (*codes.values(), *bystanders.values())), 0)


def _write_codes(file: Path, codes: dict[str, int]) -> None:
    with suppress(OSError):  # Whoever started this is gone.
        file.write_bytes(msgspec.json.encode(codes))


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1
