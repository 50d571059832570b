"""A participant's process: ``python -m worldline.launch.worker module:function``; ``@FILE`` if several share it.

Where to connect and as whom stands in the environment, and what it declares in the federation's file, which the server
tells it. The exit code says how it went, as for the `worldline` command.

Where several share a process, each is a program on its own, which ends as it would in a process of its own, with the
same last words. A file says who they are. In the end it says with which exit code each would have ended a process of
its own; the exit code of this one is the first of these that isn't because of another participant.

The process may be a fork of the keeper, which has loaded Worldline already. That costs milliseconds, where a fresh
interpreter takes a tenth of a second to load the same. Nothing else may differ: whatever a program can see is as in
``python -m worldline.launch.worker ENTRY``. The keeper has loaded nothing of the user's, so no two participants share
anything that they could change; and where a fork could tell, there is none:

N1. The keeper has one thread, is neither traced nor profiled, and runs on Linux: elsewhere libraries don't expect
    forks.
N2. The keeper's environment is the participant's, apart from what says whom it is to be: what an interpreter or the
    system's loader reads at the start was the same.
N3. The participant's directory has no module of a name that is loaded already: a fresh interpreter would find that one.

What a fork has that a fresh process hasn't: the seed of string hashes is the keeper's, where PYTHONHASHSEED doesn't say
which, and so the same for all participants of a run; and ``/proc/PID/environ`` shows the keeper's environment.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from worldline.federation.environment import read_surroundings
from worldline.federation.participant.call import Call, is_cut_short, parting_words
from worldline.federation.participant.client import Client, connect
from worldline.federation.participant.crew import Circuit, Crew
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import NO_TERMINAL, Program, is_debugger_quit, run_program
from worldline.launch.file.startable import load_program
from worldline.model import Interrupted, Stream, UsageError, WorldlineError
from worldline.model.blame import trace_of

# Stamps: lines of a participant's output that carry its simulated time from its process to the launcher's.
#
# The launcher knows only how far a participant has come when it last said so; the participant itself knows better.
# Where several share a process, lines also carry the name of the one that has printed them.
#
# What stands in for standard output and standard error are ordinary text files on the same descriptors, so whatever
# works with those works here, too: `buffer`, `fileno`, `reconfigure`, other programs that write there. Only what
# bypasses Python has no stamp.

STAMPING = "WORLDLINE_STAMPING"
"""Set in the environment of processes whose launcher understands stamps."""

_BEGIN, _BY, _END = "\x1e", "\x1d", "\x1f"
_STAMPED = re.compile(rf"{_BEGIN}(?P<time>[0-9]{{1,19}}){_END}(?P<text>.*)", re.DOTALL)  # No time is longer.


# Whose program runs in a process that several share, noted where others can read it, even after the process is gone.
#
# A process that a program ends by `os._exit`, or that crashes, says nothing any more. So who runs is noted in four
# bytes of a file that is mapped into the process's memory, which costs hardly more than an assignment.

_NONE = 0
_BYTE_ORDER: Final = "little"
_SIZE = 4


def running_mark(file: Path) -> Callable[[int | None], None]:
    """Return the process's end of it: a call notes the place, counted from 0, of who runs now; None: no program."""
    with _mark_of(file).open("w+b") as opened:
        opened.write(bytes(_SIZE))
        opened.flush()
        mark = mmap.mmap(opened.fileno(), _SIZE)

    def note(place: int | None) -> None:
        mark[:] = (_NONE if place is None else place + 1).to_bytes(_SIZE, _BYTE_ORDER)

    return note


def running_in(file: Path) -> int | None:
    """Return the place of the one that runs, or ran when the process ended; None: none does, or it isn't known."""
    try:
        noted = int.from_bytes(_mark_of(file).read_bytes(), _BYTE_ORDER)
    except OSError:
        return None
    return None if noted == _NONE else noted - 1


def forget_running(file: Path) -> None:
    """Remove what a process has noted that is gone: the next one notes its own."""
    _mark_of(file).unlink(missing_ok=True)


def _mark_of(file: Path) -> Path:
    return file.with_suffix(".running")


class TimeStamps:
    """Puts the participant's time before every line of both outputs. `now` tells it, once it is known.

    Where several share the process, `speaker` tells whose program runs.
    """

    def __init__(self) -> None:
        self.now: Callable[[], int | None] = lambda: None
        self.speaker: Callable[[], str | None] = lambda: None
        self._lock = threading.RLock()
        self._unfinished: tuple[int, str | None] | None = None  # Where, and whose, a line is that hasn't ended.

    def install(self) -> None:
        """Stand in for standard output and standard error, from here on."""
        sys.stdout = self._stamped(1, "<stdout>", "strict")
        sys.stderr = self._stamped(2, "<stderr>", "backslashreplace")

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of it, with a stamp for each line that begins."""
        with self._lock:
            speaker, now = self.speaker(), self.now()
            by = "" if speaker is None else f"{_BY}{speaker}{_END}"
            stamp = (by if now is None else f"{by}{_BEGIN}{now}{_END}").encode()
            # All outputs lead to the same place: what begins there doesn't go on with a line of another one.
            place = descriptor, speaker
            text = b"\n" if self._unfinished not in (None, place) else b""
            text += b"" if self._unfinished == place else stamp
            lines = data.split(b"\n")
            is_whole = not lines[-1]
            text += (b"\n" + stamp).join(lines[:-1] if is_whole else lines) + (b"\n" if is_whole else b"")
            self._unfinished = None if is_whole else place
            _write_all(descriptor, text)

    def _stamped(self, descriptor: int, name: str, errors: str) -> io.TextIOWrapper:
        binary = _Stamped(descriptor, self, name)
        return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, newline="\n", write_through=True)


def _write_all(descriptor: int, text: bytes) -> None:
    """Write it, apart from the lock: a signal's handler that raised at the loop's jump back would leave it locked."""
    left = memoryview(text)
    while left:
        left = left[os.write(descriptor, left) :]


class _Stamped(io.FileIO):
    """A descriptor that lines are stamped on."""

    def __init__(self, descriptor: int, stamps: TimeStamps, name: str) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._stamps = stamps
        self.name = name

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        if taken:
            self._stamps.write(self.fileno(), taken)
        return len(taken)


def read_stamp(line: str) -> tuple[int | None, str]:
    """Return the time that a line was printed at, if it says so, and the line itself."""
    match = _STAMPED.fullmatch(line)
    return (None, line) if match is None else (int(match["time"]), match["text"])


def read_speaker(line: str) -> tuple[str | None, str]:
    """Return who has printed a line, if it says so, and the rest of it, which may be stamped with the time."""
    if not line.startswith(_BY):
        return None, line
    name, _, rest = line[1:].partition(_END)
    return name, rest


# How a process behaves that a launcher has started: what it prints, and with which exit code it ends.


def stamped_output() -> TimeStamps:
    """Have what is printed stamped, if a launcher reads it: then there is no terminal, which a debugger would need."""
    stamps = TimeStamps()
    if os.environ.get(STAMPING):
        stamps.install()
        if os.environ.get("PYTHONBREAKPOINT") in (None, "", "pdb.set_trace"):  # Others may need no terminal.
            sys.breakpointhook = _stop_for_debugger
    return stamps


def live(program: Program, participant: Participant) -> None:
    """Run the program of a participant that has joined, unless the run was over by then."""
    run_program(program.run, participant)


def last_words(error: BaseException) -> int:
    """Say how a program has ended, and return the exit code that says so, too."""
    if isinstance(error, WorldlineError):
        print(parting_words(error) if is_cut_short(error) else f"worldline: {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, KeyboardInterrupt) or (is_debugger_quit(error) and not os.environ.get(STAMPING)):
        return Interrupted.exit_code
    print(trace_of(error), file=sys.stderr)  # Its author sees all of it here; the others have been told in a line.
    return 1


def _stop_for_debugger(*_: object, **__: object) -> None:
    raise UsageError("breakpoint() needs a terminal, which a participant's process doesn't have", advice=NO_TERMINAL)


SharedParticipant = tuple[str, str, str]
"""One of those who share a process, as its launcher describes it: its name, entry and token."""


def write_share(file: Path, share: list[SharedParticipant]) -> None:
    """Write down who is to share a process. There are tokens in it, so only this user can ever read it."""
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
        note_running = running_mark(file)
        programs = {}
        for place, (name, entry, _) in enumerate(share):  # All before any joins: one that can't be loaded isn't missed.
            loading = name
            note_running(place)
            programs[name] = load_program(entry, Path.cwd())
        loading = None
        note_running(None)
        calls = [Call(None, name, token=token, **programs[name].said()) for name, _, token in share]
        shake = read_surroundings(os.environ).shake
        crew = Crew(calls, None if shake is None else Stream(shake, "shake", share[0][0]), note_running)
    except (Exception, KeyboardInterrupt) as error:
        code = last_words(error)
        if loading is not None:
            _write_codes(file, {loading: code})
        return code
    stamps.speaker, stamps.now = crew.running, crew.now
    codes = dict.fromkeys(programs, 0)
    cut_short = dict.fromkeys(programs, 0)

    def run(circuit: Circuit) -> None:
        try:
            with crew.participant(circuit) as participant:
                live(programs[circuit.name], participant)
        except SystemExit as error:
            codes[circuit.name] = _exit_code(error)
        except BaseException as error:  # Whatever it is, the others of this process go on.
            (cut_short if is_cut_short(error) else codes)[circuit.name] = last_words(error)

    crew.run(run)
    _write_codes(file, {name: code or cut_short[name] for name, code in codes.items()})
    return next(filter(None, (*codes.values(), *cut_short.values())), 0)


def _write_codes(file: Path, codes: dict[str, int]) -> None:
    with suppress(OSError):  # The launcher is gone.
        file.write_bytes(msgspec.json.encode(codes))


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


# This process as a fork of the keeper: see N1 to N3 above.

_ARG_START, _ARG_END = 45, 46  # In /proc/self/stat, behind the command's name.


def is_ready_for(directory: str) -> bool:
    """Whether a fork for a participant of this directory would be as good as a fresh interpreter (N1, N3)."""
    if len(os.listdir("/proc/self/task")) > 1 or sys.gettrace() or sys.getprofile():  # noqa: PTH208 - for speed
        return False
    loaded = {name.partition(".")[0] for name in sys.modules}
    with os.scandir(directory) as entries:
        return not any(_module(entry.name) in loaded for entry in entries)


def _module(file: str) -> str:
    """Return the name of the module that a file or folder would be."""
    return next((file.removesuffix(end) for end in all_suffixes() if file.endswith(end)), file)


def become(command: Sequence[str], directory: str, environment: Mapping[str, str]) -> NoReturn:
    """Be the process that this command, to run a worker, would have started."""
    os.environ.clear()
    os.environ.update(environment)
    if not sys.flags.safe_path:
        sys.path[0] = directory
    sys.orig_argv = list(command)
    sys.argv = [__file__, *command[3:]]
    sys.modules["__main__"] = sys.modules.pop(__name__)
    globals()["__name__"] = "__main__"
    with contextlib.suppress(OSError, ValueError, IndexError):
        _show(command)
    main()


def _show(command: Sequence[str]) -> None:
    """Let `ps` and others show this command: they read it from where the system has put the keeper's own."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    text = b"".join(os.fsencode(word) + b"\0" for word in command)
    room = end - start
    import ctypes  # Here, since a process that is no fork doesn't need it.

    ctypes.memmove(start, text[: room - 1].ljust(room, b"\0"), room)


def main() -> NoReturn:
    code = 0
    stamps = stamped_output()
    _, entry = sys.argv
    if entry.startswith("@"):
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
        from worldline.launch.twins import TwinWire  # Hardly any process needs it.

        return TwinWire(around.name, Path(around.twin)).participant(program)
    return connect(**program.said())


if __name__ == "__main__":
    main()
