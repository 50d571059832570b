"""The launcher: a federation's file becomes a server and a process for every participant, and one outcome.

Theory of operation
-------------------
The server runs in this thread. Processes are started by a keeper (`keeper.py`), which is told to over a socket, and
ends what is left of them when this process is gone, however it went. A thread of `ParticipantProcesses` hears what they
print and that they have ended. The server's loop looks at that ten times a second (`_watch`).

L1. The outcome is the server's alone. What is known of a process only explains a failure (`_explained`), or is told
    when the run is whole (`check_ends`): a process that fails after it has left, a twin that says something else.
L2. A process that ends before its participant has joined would be waited for: that ends the run, with its last line.
    Under the policy `rejoin` one that has died is started again instead (`_revive`).
L3. What the culprit prints comes first: the others' last lines, which follow from its failure, wait (`CauseFirst`).
L4. When `run` returns or raises, no process is left, all that was printed is passed on, and all folders are removed.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from pathlib import Path

from worldline.federation.address import Address
from worldline.federation.environment import ADDRESS, NAME, LaunchEnvironment
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.declaration import Plain
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Federation, Program
from worldline.federation.peer_process import is_stopped
from worldline.federation.registry import opened_folder, runtime_folder
from worldline.federation.server.limits import Limits, LossPolicy, too_few_files
from worldline.federation.server.server import Server
from worldline.files.saving import SHORT, ScratchFolder
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Status, Watch
from worldline.launch.file.setup import ParticipantSetup, Setup, check_names, check_startable, stated_by, unused_name
from worldline.launch.file.startable import load_program, search_path
from worldline.launch.processes import Hear, KeeperClient, ParticipantProcesses, Terminal
from worldline.launch.twins import RunTwins, TwinVerdict
from worldline.launch.worker import failed_in_share, forget_running, running_in, write_share
from worldline.lock import State
from worldline.lock.events import Witness
from worldline.model import Interrupted, LossError, ModelError, Stream, UsageError, WorldlineError
from worldline.model.draws.table import functions_in
from worldline.model.errors import shortened
from worldline.model.text import counted
from worldline.processes.tied import describe_exit
from worldline.programs.entries import read_machine

# How the participants of a run are started: those with a special role, and those that share a process.
#
# A special role: others start one, one is debugged, one has a twin.
#
# Which ones share a process depends on the file and on the number of processes, and on nothing else. Those that can't
# tell the difference take part in it: they are Python entries, in the directory that most are in, without an
# environment of their own. All others have a process for themselves.


WITHOUT, DEBUG, TWIN = "--without", "--debug", "--twin"


@dataclass(frozen=True, kw_only=True)
class SpecialRoles:
    """Participants that aren't started like the rest.

    Others start those in `awaited`, here or elsewhere, and present the `token`, if there is one. The one that is
    `debugged` has the terminal. Each of those in `twinned` has a twin.
    """

    awaited: tuple[str, ...] = ()
    token: str | None = None
    debugged: str | None = None
    twinned: tuple[str, ...] = ()

    def check(self, setup: Setup) -> None:
        """Refuse whom the file doesn't have, and what can't be done together."""
        check_names(setup, self.awaited, WITHOUT)
        if self.debugged is not None:
            check_names(setup, (self.debugged,), DEBUG)
            if self.debugged in self.awaited:
                raise UsageError(
                    f"{DEBUG} and {WITHOUT} both name {self.debugged}",
                    advice="a participant started with `worldline join` has a terminal already",
                )
        check_names(setup, self.twinned, TWIN)
        for name in self.twinned:
            if setup.parts[name].entry is None:
                raise UsageError(f"{name} can't have a twin: it isn't a Python entry")
            for option, others in ((WITHOUT, self.awaited), (DEBUG, (self.debugged,))):
                if name in others:
                    raise UsageError(f"{TWIN} and {option} both name {name}", advice="use one of them at a time")

    def starts(self, name: str) -> bool:
        """Whether a participant is started here."""
        return name not in self.awaited

    @property
    def apart(self) -> tuple[str, ...]:
        """Those who share their process with none."""
        return self.twinned if self.debugged is None else (*self.twinned, self.debugged)

    def started(self, setup: Setup) -> dict[str, ParticipantSetup]:
        return {name: part for name, part in setup.parts.items() if self.starts(name)}

    def tokens(self, setup: Setup) -> dict[str, str | None]:
        """Return what each has to present: of those who are started here none can take another's name."""
        return {name: secrets.token_hex(16) if self.starts(name) else self.token for name in setup.parts}

    def declared(self, setup: Setup) -> dict[str, Plain]:
        """Return what the file declares. It has the last word on who controls a run with participants of others."""
        return {
            name: stated_by(part) if self.starts(name) else {**stated_by(part), "controls": part.controls}
            for name, part in setup.parts.items()
        }

    def on_loss(self, setup: Setup) -> LossPolicy:
        """Return what happens when a participant is lost. One that is debugged was ended by a person, and stays so."""
        return setup.on_loss if self.debugged is None else "abort"

    def limits(self, setup: Setup) -> Limits:
        """Return the limits of the run. By the wall clock there are none for one in a debugger."""
        if self.debugged is None:
            return setup.limits
        return replace(setup.limits, silence_s=None, join_s=None, handshake_s=inf)


_NAMED_MAX = 3


def shares(
    parts: Mapping[str, ParticipantSetup], workers: int, apart: Collection[str] = ()
) -> dict[str, list[ParticipantSetup]]:
    """Return who shares which process, by the name of the process, which isn't that of any participant."""
    able = [
        part
        for name, part in sorted(parts.items())
        if part.entry is not None and not part.environment and name not in apart
    ]
    if not able:
        return {}
    places = Counter(part.directory for part in able)
    here = min(places, key=lambda place: (-places[place], place))
    sharing = [part for part in able if part.directory == here]
    dealt = [sharing[first::workers] for first in range(min(workers, len(sharing)))]
    return {unused_name(f"worker {number}", parts): share for number, share in enumerate(dealt, 1)}


class ProcessShares:
    """The processes of a run by name, and whose each of them is; those of one participant have its name.

    Those who are `apart` share theirs with none. Participants that have left aren't started, or started again, with
    those who share their process: the server would only refuse them.
    """

    def __init__(
        self,
        parts: Mapping[str, ParticipantSetup],
        workers: int | None,
        *,
        tokens: Mapping[str, str | None],
        has_left: Callable[[str], bool],
        apart: Collection[str] = (),
    ) -> None:
        self._parts = parts
        self._tokens = tokens
        self._has_left = has_left
        self._shares = {} if workers is None else shares(parts, workers, apart)
        self._names = {process: [part.name for part in share] for process, share in self._shares.items()}
        self._process_of = {part.name: process for process, share in self._shares.items() for part in share}
        self._files: ScratchFolder | None = None
        self._failed: dict[str, list[str]] = {}
        self._ran_last: dict[str, str | None] = {}  # Of processes that have ended.
        self._lock = threading.Lock()  # The end of a process may be noted just when it is started again.

    def processes(self) -> list[ParticipantSetup]:
        """Return every process to be started, as if it were a participant's; write down who shares it."""
        own = [part for part in self._parts.values() if part.name not in self._process_of]
        shared = [
            ParticipantSetup(name=process, directory=share[0].directory, entry=f"@{self._file(process)}")
            for process, share in self._shares.items()
        ]
        started = [part for part in own + shared if not all(map(self._has_left, self.of(part.name)))]
        for part in started:
            self.prepare(part.name)
        return started

    def prepare(self, process: str) -> None:
        """Write down who shares a process that is about to be started, if it is shared; forget how it went before."""
        if process not in self._shares:
            return
        there = [part for part in self._shares[process] if not self._has_left(part.name)]
        with self._lock:
            forget_running(self._file(process))
            self._ran_last.pop(process, None)
            self._failed.pop(process, None)
            self._names[process] = [part.name for part in there]
            write_share(
                self._file(process),
                [(part.name, part.entry or "", self._tokens[part.name] or "") for part in there],
            )

    def folder(self) -> str | None:
        """Return a folder that is to be removed whatever happens, if there is one. Only this user can open it."""
        if self._shares and self._files is None:
            self._files = ScratchFolder("shares")
        return None if self._files is None else self._files.name

    def _file(self, process: str) -> Path:
        assert self._files is not None
        return Path(self._files.name) / f"{list(self._shares).index(process)}.json"

    def close(self) -> None:
        """Remove what was written."""
        if self._files is not None:
            self._files.cleanup()

    def note_end(self, process: str) -> None:
        """Keep what a process has left behind of how it went."""
        if process in self._shares:
            with self._lock:
                self._failed[process] = failed_in_share(self._file(process))
                self._ran_last[process] = self._running_in(process)

    def runner(self, name: str) -> str | None:
        """Return whose program runs in the process of a participant, or ran when that ended, if several share it."""
        process = self.process_of(name)
        if process not in self._shares:
            return None
        return self._running_in(process) or self._ran_last.get(process)

    def _running_in(self, process: str) -> str | None:
        place = running_in(self._file(process))
        return None if place is None else self._names[process][place]

    def is_shared(self, process: str) -> bool:
        return process in self._shares

    def process_of(self, name: str) -> str:
        return self._process_of.get(name, name)

    def of(self, process: str) -> list[str]:
        """Return whose process it is; of a shared one, those with whom it was started last."""
        return self._names.get(process, [process])

    def failed_in(self, process: str) -> list[str]:
        """Return who of a process has come to a bad end, as far as that is known: or who ran when the process ended."""
        if found := self._failed.get(process):
            return found
        runner = self._ran_last.get(process)
        return [] if runner is None else [runner]

    def named(self, name: str) -> str:
        """Name the process of a participant, in a sentence about that one."""
        others = [each for each in self.of(self.process_of(name)) if each != name]
        if not others:
            return "its process"
        more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
        return f"its process, which it shared with {', '.join(others[:_NAMED_MAX])}{more},"


# Chooses where a run's Unix socket lies: in a folder that only this user can open.

_PATH_MAX = 80  # Of the 104 to 108 bytes that a socket's path can have, what is left for the folder.
_NAME_LENGTH = 16


def socket_folder() -> ScratchFolder:
    """Return a new folder that only this user can open, with a path that is short enough for a socket."""
    return ScratchFolder(path_max=_PATH_MAX)


def socket_of(journal: Path) -> Path:
    """Return the socket of a run with a journal, the same each time that it is taken up: participants try it again."""
    usual = runtime_folder()
    folder = usual if len(str(usual).encode()) < _PATH_MAX else Path(SHORT) / usual.name
    name = sha256(str(journal.resolve()).encode()).hexdigest()[:_NAME_LENGTH]
    return opened_folder(folder) / f"{name}.socket"


# Puts what participants print in an order in which the cause of a failure comes first.
#
# When a participant fails, the run is broken off, and all others end with a line about it. These often are quicker than
# the traceback of the one that has failed; so they wait until that one has said all.


class CauseFirst:
    """Passes lines on. `culprit` says which participant has broken the run off, once one has."""

    def __init__(self, hear: Hear, culprit: Callable[[], str | None]) -> None:
        self._hear = hear
        self._culprit = culprit
        self._silent: set[str] = set()
        self._waiting: list[tuple[str, int | None, str]] = []
        self._lock = threading.RLock()

    def hear(self, name: str, now: int | None, text: str) -> None:
        """Pass a line on, or keep it until the culprit has said all."""
        with self._lock:
            culprit = self._culprit()
            if culprit in (None, name) or culprit in self._silent:
                self._hear(name, now, text)
            else:
                self._waiting.append((name, now, text))

    def fell_silent(self, name: str) -> None:
        """This one will print no more."""
        with self._lock:
            self._silent.add(name)
            if name == self._culprit():
                self.release()

    def release(self) -> None:
        """Pass on what has waited."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            for line in waiting:
                self._hear(*line)


_WATCH_S = 0.1
_GRACE_S = 2.0  # For processes of a run that was broken off.
_LINGER_S = 10.0  # For those of one that ended well: to leave Python may take seconds where twenty do so at once.
_DELAY_S_MAX = 0.05
_UNLUCKY_MAX = 3
_UNCONNECTED_S = 5.0  # After so long, something is said of a process that runs and hasn't connected.
_BY_HAND = (Interrupted.exit_code, -signal.SIGINT)  # How a process ends when a person ends it with Ctrl-C.


def federation_of(setup: Setup, played: Mapping[str, Callable[[Participant], object]] | None = None) -> Federation:
    """Return the federation as programs for this process; all of it must be Python entry points.

    Those that are `played` have the programs given here, and declare what they declare otherwise.
    """
    programs: dict[str, Program] = {}
    for name, part in setup.parts.items():
        if played and name in played:
            found = Program(played[name], guest=part.guest, **stated_by(part))
            if part.entry is not None:
                found = replace(load_program(part.entry, part.directory, stated_by(part)), run=played[name])
            programs[name] = found
            continue
        if part.entry is None:
            raise UsageError(
                f"{name} has no Python entry point", advice="only those can be run in one process; use processes"
            )
        programs[name] = load_program(part.entry, part.directory, stated_by(part), guest=part.guest)
    return Federation(
        programs,
        network=setup.plan.network,
        seed=setup.plan.seed,
        until=setup.plan.end,
        payload_max=setup.limits.payload_max,
        faults=setup.faults,
    )


@dataclass(kw_only=True)
class LaunchOptions:
    """How a federation is run in processes of its own.

    `hear` is told what participants print. With `workers`, those that can share so many processes. With `shake`, a
    number, processes are started in a random order, with random delays between them and between their frames: nothing
    of that may show in the outcome. Without an `address`, they connect by a Unix socket in a folder that only this user
    can open; `opened` is told where. `roles` says which participants aren't started like the rest, and `terminal` is
    for the one that is debugged. `keeping` is a keeper that was made ahead of time. `witness` hears all that the
    arbiter is told. With a `journal`, a launch that was killed can be taken up by another one; `say` is told if this is
    one.
    """

    hear: Hear = lambda _who, _at, _line: None
    address: str | None = None
    observer: Observer | None = None
    pace: float | None = None
    shake: int | None = None
    workers: int | None = None
    opened: Callable[[Address, Sequence[str]], None] = lambda _, __: None
    roles: SpecialRoles = field(default_factory=SpecialRoles)
    terminal: Terminal | None = None
    keeping: KeeperClient | None = None
    witness: Witness | None = None
    journal: Path | None = None
    say: Callable[[str], None] = lambda _: None


class Launch:
    """One run of a federation in processes of its own."""

    def __init__(self, setup: Setup, options: LaunchOptions) -> None:
        roles, address, journal = options.roles, options.address, options.journal
        roles.check(setup)
        check_startable(setup, roles.starts)
        self._setup = setup
        self._options = options
        self._interrupted = False
        self._shake = None if options.shake is None else Stream(options.shake, "launch")
        self._tokens = roles.tokens(setup)
        self._folder = None
        if address is None and journal is not None:
            address = f"unix://{socket_of(journal)}"
        elif address is None:
            self._folder = socket_folder()
            address = f"unix://{self._folder.name}/run"
        on_loss = roles.on_loss(setup)
        self._twins = RunTwins(roles.twinned, setup.parts)
        try:
            self.server = Server(
                setup.plan,
                address,
                federation=setup.name,
                token=self._tokens,
                declared=roles.declared(setup),
                observer=options.observer,
                on_loss=on_loss,
                journal=journal or self._twins.journal(),
                pace=options.pace,
                limits=roles.limits(setup),
            )
        except WorldlineError:
            self._tidy()
            raise
        host = self.server.host
        host.arbiter.witness = options.witness
        host.owner.keeps_journal = bool(roles.twinned)
        if journal is None and host.rejoining is not None:
            host.rejoining.returns_s = 0.0  # What is written for twins isn't for another server.
        self._shares = ProcessShares(
            roles.started(setup),
            options.workers,
            tokens=self._tokens,
            has_left=host.has_left,
            apart=roles.apart,
        )
        host.owner.runner = self._shares.runner
        self._found: dict[str, TwinVerdict] = {}
        self._order = CauseFirst(options.hear, self._culprit)
        self._processes = ParticipantProcesses(self._hear, self._fell_silent, options.keeping)
        host.owner.doubts = lambda name, doubt: self._order.hear(name, None, f"worldline: {doubt}")
        self._revives = on_loss == "rejoin"
        self._unlucky: Counter[str] = Counter()  # How often each process has been killed before it had joined.
        if resumed := host.resumed():
            options.say(resumed)

    def run(self, watch: Watch | None = None) -> FederationOutcome:
        """Start all processes, serve until the end, and see that nothing is left running."""
        failed = True
        began = time.monotonic()
        try:
            try:
                self._start()
            except WorldlineError as error:
                self.server.host.end(error)  # Those who have been started are told.
            self.server.serve(lambda status: self._watch(status, watch), watch_every_s=_WATCH_S)
            failed = self.server.host.failure is not None
        finally:
            self._twins.end()
            if self._options.roles.debugged is not None:
                self._processes.wait_for(self._options.roles.debugged, unless=lambda: self._interrupted)
            if not failed:
                self._wait_for_twins(began)
            self._look_at_twins()  # Before the keeper ends, which takes their folders with it.
            if failed:
                self._processes.finish(_GRACE_S, 0)
            else:
                self._processes.finish(_LINGER_S, given_up=self._twins.process_names())
            self._order.release()
            self._shares.close()
            if self.server.host.owner.keeps_journal:
                self.server.host.let_go()
            self._twins.close()
            self._tidy()
        if self.server.host.failure is not None:
            raise self._explained(self.server.host.failure)
        return self.server.outcome()

    def check_ends(self, outcome: Outcome) -> None:
        """Raise if something is wrong though the run is whole: a process has failed afterwards, or a twin differs."""
        for name, verdict in self._found.items():
            raise verdict.error(name)
        for process, how in self._processes.failed(killed=not self._revives).items():
            there = self._there(process, outcome)
            for name in (*filter(there.__contains__, self._shares.failed_in(process)), *there):
                problem = f"{self._shares.named(name)} {how} after it had left"
                raise ModelError(problem, participant=name, advice=self._said(name))
        self._check_twins()
        for process in self._processes.ended():
            for name in self._there(process, outcome):
                raise ModelError(
                    f"{self._shares.named(name)} was still running {_LINGER_S:g} seconds after the run, and was ended",
                    participant=name,
                    advice="something keeps it going after it has left: a thread that isn't a daemon, perhaps",
                )

    def _check_twins(self) -> None:
        """Raise if a twin has come to nothing."""
        for process in self._twins.process_names():
            name, how = self._twins.first_of(process), self._processes.failed().get(process)
            if process in self._processes.ended():
                how = "was still behind long after the run, and was ended"
            if how is not None:
                raise LossError(f"its twin {how}", participant=name, advice=self._last_line(process))

    def _wait_for_twins(self, began: float) -> None:
        """Let the twins catch up. They have the same to do as their first copies; longer than twice is too long."""
        deadline = 2 * time.monotonic() - began + _LINGER_S
        for process in self._twins.process_names():
            self._processes.wait_for(process, unless=lambda: self._interrupted or time.monotonic() > deadline)

    def _look_at_twins(self) -> None:
        """Say what twins have found, as soon as they have."""
        for name, verdict in self._twins.verdicts().items():
            if name not in self._found:
                self._found[name] = verdict
                self._order.hear(name, verdict.at, f"worldline: {verdict.text}")

    def _participants_of(self, process: str) -> list[str]:
        """Return who takes part by a process: none by that of a twin."""
        return [] if self._twins.is_twin(process) else self._shares.of(process)

    def _there(self, process: str, outcome: Outcome) -> list[str]:
        """Return who of a process has taken part, and wasn't a guest that wasn't invited."""
        return [name for name in self._shares.of(process) if name in outcome.times]

    def interrupt(self, error: WorldlineError) -> None:
        """Break the run off, for a user who wants it to end."""
        self._interrupted = True
        self.server.end(error)

    def hurry(self) -> None:
        """End all processes here and now."""
        self._processes.kill()

    def _tidy(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _start(self) -> None:
        if self._folder is not None:
            self._processes.remove(self._folder.name)
        if (folder := self._shares.folder()) is not None:
            self._processes.remove(folder)
        opened = self.server.open()
        self._options.opened(
            opened, [name for name in self._options.roles.awaited if not self.server.host.has_left(name)]
        )
        address = str(opened)
        for folder in self._twins.folders():
            self._processes.remove(folder)
        parts = self._shares.processes()
        # Of each this process has the connection, and the pipe with what it prints.
        wanted = counted(len(parts), "process", "processes")
        if problem := too_few_files(2 * len(parts) + len(self._options.roles.awaited), wanted):
            raise UsageError(problem)
        if self._shake is not None:
            self._shake.shuffle(parts)
        functions = functions_in(self._setup.plan.draws)
        for part in parts:
            is_own = not self._shares.is_shared(part.name)
            surroundings = LaunchEnvironment(
                address=address,
                name=part.name if is_own else None,
                federation=self._setup.name,
                token=self._tokens[part.name] if is_own else None,
                shake=None if self._shake is None else self._shake.getrandbits(32),
                functions=functions,
            )
            if self._shake is not None:
                time.sleep(self._shake.uniform(0, _DELAY_S_MAX))
            if part.name == self._options.roles.debugged and self._options.terminal is not None:
                self._processes.start_at(self._options.terminal, part, surroundings)
            else:
                self._processes.start(part, surroundings)
        for twin, around in self._twins.processes(self.server.host):
            self._processes.start(twin, around)

    def _watch(self, status: Status, watch: Watch | None) -> None:
        """See whether a process has ended without ever having been there, or without having left."""
        if self._revives:
            self._revive()
        host = self.server.host
        self._look_at_twins()
        for process in self._processes.exited():
            absent = [name for name in self._participants_of(process) if self._is_absent(name)]
            for name in (*filter(absent.__contains__, self._shares.failed_in(process)), *absent):
                how = self._processes.failed().get(process, "ended")
                kind = UsageError if how == describe_exit(UsageError.exit_code) else LossError
                problem = f"{self._shares.named(name)} {how} before it had joined"
                host.end(kind(problem, participant=name, advice=self._said(name)))
                return
        self._look_for_unconnected()
        if watch is not None:
            watch(status)

    def _revive(self) -> None:
        """Start processes again that have died, once the server has noticed it, so that their participants rejoin.

        A participant that has left needn't come back. One that hadn't joined and ended by itself would do so again:
        `_watch` ends the run for that. But one that was killed before it had joined may have been unlucky; not time and
        again, though.
        """
        host = self.server.host
        for process, code in self._processes.exits().items():
            missed = [name for name in self._participants_of(process) if not host.has_left(name)]
            if host.over or not missed or any(name in host.sessions for name in missed):
                continue
            members = [host.arbiter.members.get(name) for name in missed]
            if all(member is None or member.state is State.EXPECTED for member in members):
                self._unlucky[process] += 1
                if code >= 0 or self._unlucky[process] > _UNLUCKY_MAX:
                    continue
            for name in missed:
                self._order.hear(name, None, f"worldline: its process {describe_exit(code)}, and is started again")
            self._shares.prepare(process)
            try:
                self._processes.restart(process)
            except WorldlineError as error:
                host.end(error)

    def _look_for_unconnected(self) -> None:
        """Say of processes that run and haven't connected for long that they do, and what may be missing."""
        host = self.server.host
        running = {} if host.over else self._processes.running()
        found = {
            name: self._unconnected(name, number, lasted_s)
            for process, (number, lasted_s) in running.items()
            if lasted_s > _UNCONNECTED_S
            for name in self._participants_of(process)
            if self._is_absent(name)
        }
        for name, doubt in found.items():
            if name not in host.owner.unconnected:
                self._order.hear(name, None, f"worldline: {doubt}")
        host.owner.unconnected = found

    def _unconnected(self, name: str, number: int, lasted_s: float) -> str:
        runs = f"its process {number} has been running for {lasted_s:.0f} s, and hasn't connected"
        part = self._setup.parts[name]
        if is_stopped(number):
            return f"{runs}: it is stopped, and kill -CONT {number} lets it go on"
        if part.entry is not None:
            machine = read_machine(part.entry)
            entry = part.entry if machine is None else machine.command
            return f"{runs}: {entry} is still being loaded (what a module does at its top is done first)"
        return (
            f"{runs}: its program has to call worldline.connect(), or connect to {ADDRESS} as {NAME} by itself; a "
            "Python function that is given a participant is an `entry`, not a `command`"
        )

    def _is_absent(self, name: str) -> bool:
        """Whether a participant isn't connected, and hasn't left."""
        return name not in self.server.host.sessions and not self.server.host.has_left(name)

    def _explained(self, failure: WorldlineError) -> WorldlineError:
        """Add what is known of the process to what is known of its connection, if that is all that is known."""
        name = failure.participant or ""
        if name == self._options.roles.debugged and self._processes.exit_code(name) in _BY_HAND:
            return Interrupted("it was ended at its terminal", participant=name, at=failure.at)
        if not isinstance(failure, LossError):
            return failure
        process = self._shares.process_of(name)
        how = self._processes.failed().get(process)
        if process in self._processes.ended():
            how = "was still running, and was ended"
        if how and failure.advice is None:
            failure.advice = f"{self._shares.named(name)} {how}"
            failure.args = (failure.text(),)
        return failure

    def _hear(self, name: str, now: int | None, text: str) -> None:
        """Pass on what a process prints; what a twin prints, its first copy has printed."""
        if not self._twins.is_twin(name):
            self._order.hear(name, now, text)

    def _fell_silent(self, process: str) -> None:
        self._shares.note_end(process)
        for name in self._shares.of(process):
            self._order.fell_silent(name)
        if process == self._options.roles.debugged and self._options.terminal is not None:
            self._options.terminal.give_back()

    def _culprit(self) -> str | None:
        failure = self.server.host.failure
        return None if failure is None else failure.participant

    def _said(self, name: str) -> str | None:
        """Return what is known of a process that came to nothing: its last line, and which command it really was."""
        known = [self._last_line(name)]
        part = self._setup.parts[name]
        if part.command is not None and "/" not in part.command[0]:
            found = shutil.which(part.command[0], path=search_path(part.environment))
            known.append(f"{part.command[0]} is {found}")
        return "; ".join(filter(None, known)) or None

    def _last_line(self, process: str) -> str | None:
        lines = [line.strip() for line in self._processes.last_words(process) if line.strip()]
        return f"its last line was: {shortened(lines[-1])}" if lines else None
