"""Starts participants' processes again that have died, so that they rejoin.

Whoever has left needn't come back. Who hadn't joined and ended by itself would do so again: that is for the launcher to
tell. But one that was killed before it had joined may have been unlucky; not time and again, though.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from worldline.federation.host import Host
from worldline.launch.processes import Hear, ParticipantProcesses, describe_exit
from worldline.lock import State
from worldline.model import WorldlineError

_UNLUCKY_MAX = 3


class Revival:
    """Looks after the processes of one run. `names_of` says whose a process is, and `hear` is told what is done.

    `prepare` is called before a process is started again.
    """

    def __init__(
        self,
        host: Host,
        processes: ParticipantProcesses,
        names_of: Callable[[str], list[str]],
        prepare: Callable[[str], None],
        hear: Hear,
    ) -> None:
        self._host = host
        self._processes = processes
        self._names_of = names_of
        self._prepare = prepare
        self._hear = hear
        self._unlucky: Counter[str] = Counter()  # How often each has been killed before it had joined.

    def look(self) -> None:
        """Start those again that have died, once the server has noticed it."""
        for process, code in self._processes.exits().items():
            missed = [name for name in self._names_of(process) if not self._host.has_left(name)]
            if self._host.over or not missed or any(name in self._host.sessions for name in missed):
                continue
            if not any(map(self._was_there, missed)):
                self._unlucky[process] += 1
                if code >= 0 or self._unlucky[process] > _UNLUCKY_MAX:
                    continue
            for name in missed:
                self._hear(name, None, f"worldline: its process {describe_exit(code)}, and is started again")
            self._prepare(process)
            try:
                self._processes.restart(process)
            except WorldlineError as error:
                self._host.end(error)

    def _was_there(self, name: str) -> bool:
        member = self._host.arbiter.members.get(name)
        return member is not None and member.state is not State.EXPECTED
