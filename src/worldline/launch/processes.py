"""The processes of a federation: started, listened to, and ended.

Every participant gets a session of its own, so that a Ctrl-C in the terminal reaches only the launcher, which then ends
the run in good order. They are started by a keeper, which ends them, and all that they have started, if the launcher
can't any more.

Nothing that a participant writes is lost: what its process had written when it ended is passed on, however long that
takes. Who has been started by it and writes for longer has a short time for that, and is ended then, with a word.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn, Protocol

from worldline.federation.environment import OUTPUT, VARIABLES, LaunchEnvironment
from worldline.federation.participant.call import PATIENCE_S, Call
from worldline.federation.participant.client import connection_to
from worldline.federation.participant.declaration import Declaration, compare_declarations
from worldline.files.loading import sources_of
from worldline.launch.file.setup import ParticipantSetup, Setup, stated_by
from worldline.launch.file.startable import files_of, search_path
from worldline.launch.worker import STAMPING, read_speaker, read_stamp
from worldline.model import LossError, UsageError
from worldline.model.frames import HEADER_SIZE, Cutter, frame
from worldline.model.text import LineSplitter
from worldline.processes.tied import describe_exit as describe_exit  # Others find it here, too.

# Says whose processes may be forks of a warm keeper, and in which environment such a keeper lives: theirs.


def inherited() -> dict[str, str]:
    """Return what every participant's process has in its environment, besides what is its own."""
    passed_on = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {
        **passed_on,
        "PYTHONUNBUFFERED": "1",  # What it prints is shown when it is printed.
        "PYTHONIOENCODING": "utf-8",
    }


def may_fork(part: ParticipantSetup) -> bool:
    """Whether a fork may be as good as an interpreter for it; the keeper knows the rest (`worker.py`)."""
    return part.entry is not None and not part.environment and _is_found_anywhere()


def _is_found_anywhere() -> bool:
    """Whether interpreters find Worldline, and the same modules, wherever they are started, but for what is there."""
    if sys.platform != "linux":
        return False
    search = os.environ.get("PYTHONPATH", "")
    is_absolute = not search or all(map(os.path.isabs, search.split(os.pathsep)))
    return is_absolute and str(Path(__file__).parents[2]) in sys.path[1:]


_START_S = 30.0
_LEFT_S = 5.0
_GOING_S = 10.0
_ROOM = " " * 160  # For the commands of forks, which `ps` shows in its place.


LeftoverProcess = tuple[int, str | None, str]
"""A process that is left: its number, whose it is, as far as that is known, and its command."""


class KeeperClient:
    """A keeper, told and heard. One thread tells, another one, which calls `hear`, hears.

    A `warm` one forks participants' processes. It has loaded Worldline when it answers for the first time, so it is
    best made some time before. One that is dropped again without having been used ends.
    """

    def __init__(self, *, warm: bool = False) -> None:
        self._socket, theirs = socket.socketpair()
        self._frames = Cutter()
        self._over = threading.Event()
        self._answers: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
        if warm:
            how = ("-m", "worldline.launch.keeper", str(theirs.fileno()), _ROOM)
        else:  # As a file, without whatever the environment would add: it is to be there soon, and to fail at nothing.
            how = ("-I", "-S", str(Path(__file__).with_name("keeper.py")), str(theirs.fileno()))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *how],
                cwd="/",  # Where no modules lie in its way.
                env=inherited(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        self._drop = weakref.finalize(self, _end, self._socket, self._process)

    def fileno(self) -> int:
        return self._socket.fileno()

    # --- In the thread that tells ---

    def start(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        environment: dict[str, str],
        files: Sequence[int],
        *,
        may_fork: bool = False,
    ) -> int:
        """Have a process started, and return its number; raise if that can't be.

        `files` is where it writes to, or a terminal's standard input, output and error.
        """
        self._tell(["fork" if may_fork else "start", name, list(command), str(directory), environment], files)
        verb, what = self._answer(_START_S)
        if verb == "refused":
            raise UsageError(f"{name} can't be started: {what}", advice=" ".join(command))
        assert isinstance(what, int)
        return what

    def remove(self, folder: str) -> None:
        """Have a folder removed when all has ended, however it ends."""
        self._tell(["remove", folder])

    def signal(self, number: signal.Signals) -> None:
        """Have a signal sent to all that is left."""
        with contextlib.suppress(LossError):  # Then it has ended all of them.
            self._tell(["signal", int(number)])

    def left(self) -> list[LeftoverProcess]:
        """Return all that is left."""
        try:
            self._tell(["left"])
            _, left = self._answer(_LEFT_S)
        except LossError:
            return []
        return [(pid, name, command) for pid, name, command in left]

    def end_all(self) -> None:
        """Have all that is left killed at once. May be called in the middle of anything, from a signal's handler."""
        with contextlib.suppress(OSError):  # It has gone by itself.
            self._socket.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Wait until the keeper has ended, and all with it."""
        self._resume()
        self._over.wait(_GOING_S)  # To wait for a process is to look again and again; this is quicker.
        _wait(self._process)

    def close(self) -> None:
        """Let go of it; it ends, if it hasn't."""
        self._drop()

    def _resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)  # It may have been stopped.

    def _tell(self, message: list[Any], files: Sequence[int] = ()) -> None:
        framed = frame(json.dumps(message).encode())
        self._resume()
        try:
            if files:
                socket.send_fds(self._socket, [framed[:HEADER_SIZE]], list(files))
                framed = framed[HEADER_SIZE:]
            self._socket.sendall(framed)
        except OSError as error:
            raise _gone() from error

    def _answer(self, within_s: float) -> list[Any]:
        try:
            answer = self._answers.get(timeout=within_s)
        except queue.Empty:
            answer = None
        if answer is None:
            self._answers.put(None)  # For the next question.
            raise _gone()
        return answer

    # --- In the thread that hears ---

    def hear(self) -> list[tuple[str, int]] | None:
        """Take what the keeper has said; return who has ended, and how. None: it has ended itself."""
        try:
            data = self._socket.recv(2**16)
        except OSError:
            data = b""
        if not data:
            self._answers.put(None)
            self._over.set()
            return None
        ended = []
        for body in self._frames.feed(data):
            message = json.loads(body)
            if message[0] == "exited":
                ended.append((message[1], message[2]))
            else:
                self._answers.put(message)
        return ended


def keeper_for(parts: Iterable[ParticipantSetup]) -> KeeperClient:
    """Return a keeper for these participants: a warm one, if that is of use to any of them."""
    return KeeperClient(warm=any(map(may_fork, parts)))


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_GOING_S)
    except subprocess.TimeoutExpired:
        process.kill()  # The system ends those that it has started.
        process.wait()


def _gone() -> LossError:
    return LossError("the process that looks after the participants' processes is gone")


# What a participant's process is started with: its command and its environment, also if a person starts it.


def command_of(part: ParticipantSetup) -> tuple[str, ...]:
    """Return what is to be executed, in the participant's directory."""
    return part.command or (sys.executable, "-m", "worldline.launch.worker", part.entry or "")


def environment_of(part: ParticipantSetup, surroundings: LaunchEnvironment) -> dict[str, str]:
    """Return the whole environment: ours, what says whom it is to be, and what the file adds."""
    return {
        **inherited(),
        "PATH": search_path(part.environment),
        OUTPUT: str(Path(os.environ.get(OUTPUT, ".")).absolute()),
        **replace(surroundings, code=_code_of(part)).variables(),
        **part.environment,
    }


def _code_of(part: ParticipantSetup) -> str:
    """Return a hash of the files that a participant is started from: one that comes back should have the same."""
    code = sources_of(files_of(part.entry, part.command, part.directory), part.directory).code
    return blake2b(repr(code).encode(), digest_size=8).hexdigest() if code else ""


GRACE_S = 5.0
_TERM_S = 2.0
_STRAYS_S = 1.0
_LOOK_S = 0.02
_LAST_WORDS = 5
_LINE_MAX = 8192
_READ_MAX = 2**16
_PIPE_MAX = 2**20  # What a pipe can hold, at the most.

Hear = Callable[[str, int | None, str], None]
"""Told the name of a participant, its time if the line says so, and a line that it has printed."""


class Terminal(Protocol):
    """What a debugged participant is given; it is given back when the participant's process ends."""

    def make_way(self) -> Sequence[int]:
        """Show nothing on it from now on; return the standard input, output and error of it."""

    def lend(self, group: int) -> None:
        """It belongs to this group of processes from now on."""

    def give_back(self) -> None:
        """It isn't needed any more. From any thread, and more than once."""


class StartedProcess:
    """One process that was started, and what comes out of it; nothing, if it has a terminal."""

    def __init__(self, part: ParticipantSetup, surroundings: LaunchEnvironment, pid: int, output: int | None) -> None:
        self.name = part.name
        self.started_as = part, surroundings
        self.pid = pid
        self.begun = time.monotonic()
        self.output = output
        self.lines = LineSplitter(_LINE_MAX)
        self.counts: Counter[str] = Counter()  # How many lines have come, by speaker.

    def fileno(self) -> int:
        assert self.output is not None
        return self.output


class ParticipantProcesses:
    """The participants' processes of one run. `hear` is told what they print, and `fell_silent` who prints no more.

    `keeping` is a keeper that hasn't been used yet; without one, there is one as soon as it is needed.
    """

    def __init__(
        self,
        hear: Hear,
        fell_silent: Callable[[str], None] = lambda _: None,
        keeping: KeeperClient | None = None,
    ) -> None:
        self._hear = hear
        self._fell_silent = fell_silent
        self._keeping: KeeperClient | None = keeping
        self._processes: dict[str, StartedProcess] = {}  # Those that were started last under each name.
        self._heard: dict[str, array[int]] = {}  # When each has printed the lines that were passed on; -1: unknown.
        # The exit codes of those that have ended, and when. It may be known before it is known that one was started.
        self._exits: dict[str, tuple[int, float]] = {}
        self._silent: set[str] = set()  # Those of whom nothing more is to be heard.
        self._at_terminal: set[str] = set()  # Those who aren't heard here at all.
        self._ended: list[str] = []  # Those whom the launcher itself has ended.
        self._changed = threading.Condition()
        self._last_words: dict[str, deque[str]] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = threading.Thread(target=self._listen, name="worldline output", daemon=True)

    def start(self, part: ParticipantSetup, surroundings: LaunchEnvironment) -> None:
        """Start a participant's process."""
        keeping = self._listened(warm=may_fork(part))
        environment = {STAMPING: "1", **environment_of(part, surroundings)}
        reading, writing = os.pipe()
        try:
            pid = keeping.start(
                part.name, command_of(part), part.directory, environment, [writing], may_fork=may_fork(part)
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        os.set_blocking(reading, False)
        self._processes[part.name] = process = StartedProcess(part, surroundings, pid, reading)
        self._selector.register(process, selectors.EVENT_READ)

    def restart(self, name: str) -> None:
        """Start a process again that has ended. What it prints again isn't passed on again."""
        with self._changed:
            del self._exits[name]
            self._silent.discard(name)
        self.start(*self._processes[name].started_as)

    def exits(self) -> dict[str, int]:
        """Return who has ended, heard or not, and how."""
        return {name: code for name, (code, _) in dict(self._exits).items()}

    def running(self) -> dict[str, tuple[int, float]]:
        """Return which processes are running: the number of each, and for how many seconds it has."""
        now = time.monotonic()
        return {
            name: (process.pid, now - process.begun)
            for name, process in self._processes.items()
            if name not in self._exits and process.output is not None
        }

    def start_at(self, terminal: Terminal, part: ParticipantSetup, surroundings: LaunchEnvironment) -> None:
        """Start a participant's process that has a terminal for itself: what it prints isn't heard here."""
        self._at_terminal.add(part.name)
        pid = self._listened().start(
            part.name, command_of(part), part.directory, environment_of(part, surroundings), terminal.make_way()
        )
        self._processes[part.name] = StartedProcess(part, surroundings, pid, None)
        terminal.lend(pid)

    def remove(self, folder: str) -> None:
        """Have a folder removed when all of this is over, even if this process is killed."""
        self._listened().remove(folder)

    def _listened(self, *, warm: bool = False) -> KeeperClient:
        """Return the keeper, which is heard from now on."""
        if self._keeping is None:
            self._keeping = KeeperClient(warm=warm)
        if self._listener.ident is None:
            self._selector.register(self._keeping, selectors.EVENT_READ)
            self._listener.start()
        return self._keeping

    def failed(self, *, killed: bool = True) -> dict[str, str]:
        """Return who has ended by itself, and otherwise than well, and how; also those who were `killed`, or not."""
        codes = {name: code for name, code in self.exits().items() if code and (killed or code > 0)}
        return {name: describe_exit(code) for name, code in codes.items() if name not in self._ended}

    def ended(self) -> list[str]:
        """Return who didn't end by itself, so that it had to be ended."""
        return list(self._ended)

    def exited(self) -> Iterable[str]:
        """Return who has ended, and has been heard: if others hold its output open, not for long."""
        now = time.monotonic()
        ended = dict(self._exits)
        return [name for name, (_, since) in ended.items() if name in self._silent or now - since > _STRAYS_S]

    def exit_code(self, name: str) -> int | None:
        """Return how a process has ended; None if it hasn't."""
        return self.exits().get(name)

    def wait_for(self, name: str, unless: Callable[[], bool]) -> None:
        """Wait until this one has ended, however long that takes, unless that is no use any more."""
        while name in self._processes and name not in self._exits and not unless():
            with self._changed:
                self._changed.wait(_LOOK_S)

    def last_words(self, name: str) -> list[str]:
        """Return the last lines that a participant has printed."""
        return list(self._last_words.get(name, ()))

    def finish(self, grace_s: float = GRACE_S, strays_s: float = _STRAYS_S, *, given_up: Collection[str] = ()) -> None:
        """Wait for all to end by themselves; then ask them to; then end them. Return when all that they said is heard.

        What they have started, and left running, has the time `strays_s` from then on. Those who are `given_up` aren't
        waited for.
        """
        if self._keeping is not None and self._listener.ident is not None:
            with self._changed:
                self._changed.wait_for(lambda: self._processes.keys() <= self._exits.keys() | set(given_up), grace_s)
                self._ended = [name for name in self._processes if name not in self._exits]
            if left := self._left_after(0 if self._ended else strays_s):
                self._say_left(left)
                self._keeping.signal(signal.SIGTERM)
                self._left_after(_TERM_S)
            self.kill()
            self._keeping.wait()
            self._listener.join()
        if self._keeping is not None:
            self._keeping.close()
            self._keeping = None
        self._selector.close()

    def kill(self) -> None:
        """End all of them here and now. May be called in the middle of anything, from a signal's handler."""
        if self._keeping is not None:
            self._keeping.end_all()

    def _left_after(self, seconds: float) -> list[LeftoverProcess]:
        """Return what is left after so long, or nothing, as soon as nothing is."""
        assert self._keeping is not None
        deadline = time.monotonic() + seconds
        while (left := self._keeping.left()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return left

    def _say_left(self, left: list[LeftoverProcess]) -> None:
        started = [process.pid for process in self._processes.values()]
        for pid, name, command in left:
            if pid not in started:
                whose = "it" if name else "a process"
                self._hear(name or "", None, f"worldline: {whose} left this running; it was ended: {command}")

    # --- In the listener's thread ---

    def _listen(self) -> None:
        """Pass on what comes, until nothing can come any more: no process is left, and all is read."""
        deadline: float | None = None  # For pipes of a process that even the keeper couldn't end.
        while self._selector.get_map():
            wait_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = [key.fileobj for key, _ in self._selector.select(wait_s)]
            for source in ready:
                if isinstance(source, StartedProcess):
                    self._take(source)
                elif self._look():
                    self._selector.unregister(source)
                    deadline = time.monotonic() + _STRAYS_S
            if deadline is not None and time.monotonic() >= deadline:
                for key in list(self._selector.get_map().values()):
                    assert isinstance(key.fileobj, StartedProcess)
                    self._abandon(key.fileobj)

    def _look(self) -> bool:
        """Take note of who has ended; return whether the keeper has."""
        assert self._keeping is not None
        exits = self._keeping.hear()
        if exits is None:  # If that was before its time, those that it had started end with it.
            exits = [(name, -signal.SIGKILL) for name in self._processes if name not in self._exits]
            for name, _ in exits:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._processes[name].pid, signal.SIGKILL)
            is_gone = True
        else:
            is_gone = False
        with self._changed:
            self._exits.update((name, (code, time.monotonic())) for name, code in exits)
            self._changed.notify_all()
        for name in self._at_terminal.intersection(name for name, _ in exits):
            self._fall_silent(name)
        return is_gone

    def _is_repeated(self, process: StartedProcess, name: str, now: int | None) -> bool:
        """Whether a line was passed on already; one that was restored from a snapshot leaves out those before it."""
        heard = self._heard.setdefault(name, array("q"))
        count = process.counts[name]
        while now is not None and count < len(heard) and heard[count] < now:
            count += 1
        process.counts[name] = count + 1
        if count < len(heard):
            return True
        heard.append(-1 if now is None else now)
        return False

    def _take(self, process: StartedProcess) -> bool:
        """Pass on what there is; return whether more may follow at once."""
        try:
            data = os.read(process.fileno(), _READ_MAX)
        except BlockingIOError:
            return False
        for line in process.lines.feed(data) if data else process.lines.finish():
            speaker, line = read_speaker(line)
            now, text = read_stamp(line)
            name = speaker or process.name
            if self._is_repeated(process, name, now):
                continue
            self._last_words.setdefault(name, deque(maxlen=_LAST_WORDS)).append(text)
            self._hear(name, now, text)
        if not data:
            self._close(process)
        return bool(data)

    def _abandon(self, process: StartedProcess) -> None:
        """Take what was written so far, and no more: a process that can't be ended holds the pipe open."""
        for _ in range(_PIPE_MAX // _READ_MAX):
            if not self._take(process):
                break
        if process in [key.fileobj for key in self._selector.get_map().values()]:
            self._hear(process.name, None, "worldline: what it started keeps running, and is no longer shown")
            self._close(process)

    def _close(self, process: StartedProcess) -> None:
        self._selector.unregister(process)
        os.close(process.fileno())
        if self._processes[process.name] is process:
            self._fall_silent(process.name)

    def _fall_silent(self, name: str) -> None:
        self._fell_silent(name)
        self._silent.add(name)


# Starts one participant of a federation's file for a run that is served elsewhere: `worldline join`.
#
# First it knocks: it connects as that participant, hears what the server's own file declares for it, and goes again
# before it has joined, which changes nothing. What would go wrong is found then, whatever the participant's program is:
# another federation, a wrong token, a name that is taken, other declarations. Only then this process becomes the
# participant's.


def check_welcome(setup: Setup, surroundings: LaunchEnvironment, patience_s: float = PATIENCE_S) -> None:
    """Knock at the server; refuse to start a participant that it wouldn't admit, or that it knows otherwise."""
    name = surroundings.name or ""
    call = Call(
        surroundings.address,
        name,
        federation=setup.name,
        token=surroundings.token or "",
        authority=surroundings.authority,
        certificate=surroundings.certificate,
        key=surroundings.key,
    )
    connection = connection_to(call, patience_s)
    connection.close()
    welcome = connection.welcome
    there = Declaration().completed(welcome.declared, welcome.period, welcome.clock).said()
    compare_declarations(stated_by(setup.parts[name]), there, who=name, where=str(setup.file))


def become_participant(part: ParticipantSetup, surroundings: LaunchEnvironment) -> NoReturn:
    """Be the participant's process from here on: with its command, in its directory and its environment."""
    command, environment = command_of(part), environment_of(part, surroundings)
    os.chdir(part.directory)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise UsageError(f"{part.name} can't be started: {error}", advice=" ".join(command)) from error
