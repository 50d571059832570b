"""The launcher: a federation's file becomes a server and a process for every participant, and one outcome."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from worldline.federation.declaration import Declaration, Plain
from worldline.federation.environment import Surroundings
from worldline.federation.outcome import Outcome
from worldline.federation.program import Federation, Program
from worldline.federation.server import Server
from worldline.launch.entry import load_program
from worldline.launch.processes import Hear, Processes, describe_exit
from worldline.launch.setup import Part, Setup
from worldline.lock import State
from worldline.lock.witness import Witness
from worldline.model import LossError, ModelError, Stream, UsageError, WorldlineError

_WATCH_S = 0.1
_GRACE_AFTER_FAILURE_S = 2.0
_DELAY_S_MAX = 0.05


def stated_by(part: Part) -> Plain:
    """Return what a participant's part of the file declares for it."""
    return Declaration(
        publishes=part.publishes,
        subscribes=part.subscribes,
        period=part.period,
        latency_least=part.latency_least,
        controls=part.controls,
    ).said()


def federation_of(setup: Setup) -> Federation:
    """Return the federation as programs for this process; all of it must be Python entry points."""
    programs: dict[str, Program] = {}
    for name, part in setup.parts.items():
        if part.entry is None:
            raise UsageError(
                f"{name} has no Python entry point", advice="only those can be run in one process; use processes"
            )
        programs[name] = load_program(part.entry, part.directory, stated_by(part), guest=part.guest)
    return Federation(programs, network=setup.plan.network, seed=setup.plan.seed, end=setup.plan.end)


def check_startable(setup: Setup) -> None:
    """Refuse a federation that leaves it to others to start somebody."""
    for name, part in setup.parts.items():
        if part.entry is None and part.command is None:
            raise UsageError(
                f"{setup.file} doesn't say how to start {name}",
                advice="give it an entry or a command, or use `worldline serve`",
            )


class Launch:
    """One run of a federation in processes of its own.

    `hear` is told what participants print. With `shake`, a number, processes are started in a random order, with
    random delays between them and between their frames: nothing of that may show in the outcome.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        address: str = "tcp://127.0.0.1:0",
        witness: Witness | None = None,
        pace: float | None = None,
        shake: int | None = None,
        hear: Hear,
    ) -> None:
        check_startable(setup)
        self._setup = setup
        self._shake = None if shake is None else Stream(shake, "launch")
        # Nobody else is expected, and nobody can take another's name.
        self._tokens = {name: secrets.token_hex(16) for name in setup.parts}
        self.server = Server(
            setup.plan,
            address,
            federation=setup.name,
            token=self._tokens,
            declared={name: stated_by(part) for name, part in setup.parts.items()},
            witness=witness,
            pace=pace,
            limits=setup.limits,
        )
        self._processes = Processes(hear)

    def run(self, watch: Callable[[], None] | None = None) -> Outcome:
        """Start everybody, serve until the end, and see that nothing is left running."""
        failed = True
        try:
            try:
                self._start()
            except WorldlineError as error:
                self.server.host.end(error)  # Those who have been started are told.
            self.server.serve(lambda: self._watch(watch), watch_every_s=_WATCH_S)
            failed = self.server.host.failure is not None
        finally:
            self._processes.finish(_GRACE_AFTER_FAILURE_S if failed else _GRACE_AFTER_FAILURE_S * 2)
        if self.server.host.failure is not None:
            raise self._explained(self.server.host.failure)
        return self.server.outcome()

    def check_ends(self, outcome: Outcome) -> None:
        """Raise if a process has failed after its participant had left: the run is whole, but something is wrong."""
        for name, how in self._processes.failed().items():
            if name in outcome.times:  # And not a guest that nobody has invited.
                raise ModelError(f"its process {how} after it had left", participant=name, advice=self._said(name))

    def hurry(self) -> None:
        """End all processes here and now."""
        self._processes.kill()

    def _start(self) -> None:
        address = str(self.server.open())
        parts = list(self._setup.parts.values())
        if self._shake is not None:
            self._shake.shuffle(parts)
        for part in parts:
            surroundings = Surroundings(
                address=address,
                name=part.name,
                federation=self._setup.name,
                token=self._tokens[part.name],
                shake=None if self._shake is None else self._shake.getrandbits(32),
            )
            if self._shake is not None:
                time.sleep(self._shake.uniform(0, _DELAY_S_MAX))
            self._processes.start(part, surroundings)
        self._processes.listen()

    def _watch(self, watch: Callable[[], None] | None) -> None:
        """See whether a process has ended without ever having been there, or without having left."""
        host = self.server.host
        for name in self._processes.exited():
            member = host.arbiter.members.get(name)
            if name not in host.sessions and (member is None or member.state is not State.LEFT):
                how = self._processes.failed().get(name, "ended")
                kind = UsageError if how == describe_exit(UsageError.exit_code) else LossError
                host.end(kind(f"its process {how} before it had joined", participant=name, advice=self._said(name)))
                return
        if watch is not None:
            watch()

    def _explained(self, failure: WorldlineError) -> WorldlineError:
        """Add what is known of the process to what is known of its connection."""
        how = self._processes.failed().get(failure.participant or "")
        if how and failure.advice is None:
            failure.advice = f"its process {how}"
            failure.args = (failure.text(),)
        return failure

    def _said(self, name: str) -> str | None:
        lines = [line for line in self._processes.last_words(name) if line.strip()]
        return f"it said last: {lines[-1].strip()}" if lines else None
