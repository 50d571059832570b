"""How the participants of a run are started: those with a special role, and those that share a process.

A special role: others start one, one is debugged, one has a twin.

Which ones share a process depends on the file and on the number of processes, and on nothing else. Those that can't
tell the difference take part in it: they are Python entries, in the directory that most are in, without an environment
of their own. All others have a process for themselves.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Protocol

from worldline.federation.participant.declaration import Plain
from worldline.federation.server.limits import Limits, LossPolicy
from worldline.files.saving import ScratchFolder
from worldline.launch.file.setup import ParticipantSetup, Setup, check_names, stated_by, unused_name
from worldline.launch.worker import failed_in_share, forget_running, running_in, write_share
from worldline.model import UsageError

WITHOUT, DEBUG, TWIN = "--without", "--debug", "--twin"


class Terminal(Protocol):
    """What a debugged participant is given; it is given back when the participant's process ends."""

    def make_way(self) -> Sequence[int]:
        """Show nothing on it from now on; return the standard input, output and error of it."""

    def lend(self, group: int) -> None:
        """It belongs to this group of processes from now on."""

    def give_back(self) -> None:
        """It isn't needed any more. From any thread, and more than once."""


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
