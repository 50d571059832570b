"""A federation as its author writes it: programs by name, the network between them, and how a program's run ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from inspect import isasyncgenfunction, iscoroutine, iscoroutinefunction, isgenerator, isgeneratorfunction
from typing import TypeVar

from worldline.federation.participant.declaration import Declaration, check_durable
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.sometimes import draw_for
from worldline.lock import Crashed, EmergencyStop, RunEnded
from worldline.model import Network, Plan, plan
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, ModelError, UsageError, WorldlineError, shortened, shown
from worldline.model.faults import ParticipantFault, as_faults, check_boots, check_events, check_machines
from worldline.model.latency import as_delay
from worldline.model.links import check_estop_latency, check_kinds, with_estop_latency
from worldline.model.message import exact
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

# How a participant's program has ended, and what the others are told of it, in a line.

NO_TERMINAL = "debug it with `worldline run --debug NAME`, or start it with `worldline join`"
"""What to do where a debugger has no terminal."""


def blame(error: BaseException) -> str:
    """Return what was raised, and the line of the program that led to it, as short as it is told elsewhere."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    text = shortened(f"its program raised {said_of(error)}")
    return f"{text} ({NO_TERMINAL})" if is_debugger_quit(error) else text


def failed_at(error: BaseException, name: str) -> int | None:
    """Return when a participant's program failed, if the error says so: a simulator may be before its participant."""
    if isinstance(error, WorldlineError) and error.participant == name and error.at is not None and error.at >= 0:
        return error.at
    return None


def is_debugger_quit(error: BaseException) -> bool:
    """Whether a debugger has ended the program: its user has quit it, or it had no terminal."""
    return type(error).__name__ == "BdbQuit"  # By name: to load the debugger takes longer than all the rest here.


def is_normal_end(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended well: by returning, or by ``sys.exit()``."""
    return error is None or (
        isinstance(error, SystemExit) and (error.code is None or (isinstance(error.code, int) and error.code == 0))
    )


# Runs a participant's program: once, or again after each crash from which it recovers.
#
# A program may catch its own crash, and end in another way. That changes nothing: the crash has ended it.

P = TypeVar("P", bound=Participant)


def run_program(program: Callable[[P], object], participant: P) -> None:
    """Run the program of a participant that has joined.

    A run that ends, and an emergency stop that the program doesn't catch, are ordinary ends of it.
    """
    draw_for(participant)
    with suppress(RunEnded, EmergencyStop):
        while True:
            with suppress(Crashed):  # It may crash again before it is back.
                if not participant.revive():
                    return
                try:
                    check_played(program(participant))
                except (SystemExit, RunEnded, EmergencyStop) as error:
                    # If it has crashed, an ordinary end that it makes of that is no end.
                    if not participant.is_crashed or (isinstance(error, SystemExit) and not is_normal_end(error)):
                        raise
                if not participant.is_crashed:
                    return


def run_program_out(program: Callable[[P], object], participant: P) -> None:
    """Do as `run_program`, where leaving Python by ``sys.exit()`` ends the program alone, and not the process."""
    try:
        run_program(program, participant)
    except SystemExit as error:
        if not is_normal_end(error):
            raise


# Programs whose errors are all their author's, in this process as in processes of their own.
#
# A caller that runs a federation in Python catches errors of Worldline as they are. A run of a file ends with a line
# and an exit code, and these mustn't depend on the executor: elsewhere, all that is left of an error is its text.


def with_blamed_programs(federation: Federation) -> Federation:
    """Return the federation with programs whose errors are their author's to act on, whatever they are."""
    return replace(
        federation,
        programs={name: replace(program, run=_blamed(program)) for name, program in federation.programs.items()},
    )


def _blamed(program: Program) -> Callable[[Participant], object]:
    def play(participant: Participant) -> None:
        try:
            check_played(program.run(participant))
        except WorldlineError as error:  # All others are made one already.
            raise ModelError(blame(error)) from error

    return play


@dataclass(frozen=True)
class Program(Declaration):
    """What one participant does, along with what it declares. A `guest` joins when a participant invites it.

    `is_machine` says that it is a computer's whole program, which faults can end while the computer goes on.
    """

    run: Callable[[Participant], object]
    _: KW_ONLY
    guest: bool = False
    is_machine: bool = False

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise ConfigurationError(f"{shown(self.run)} isn't a function of a participant")
        if isgeneratorfunction(self.run) or iscoroutinefunction(self.run) or isasyncgenfunction(self.run):
            raise ConfigurationError(
                f"{getattr(self.run, '__name__', 'the program')} is a generator or a coroutine, which would never run",
                advice="write an ordinary function; advance() and next() wait by themselves",
            )
        super().__post_init__()

    def among(self, name: str, names: Sequence[str]) -> Program:
        """Return the program as that of a participant of this name, in a run with participants of these names."""
        return self


def check_played(result: object) -> None:
    """Refuse what a program has returned if it is the program itself, still to be run."""
    if isgenerator(result) or iscoroutine(result):
        raise UsageError("its program is a generator or a coroutine, which never ran")


@dataclass(frozen=True)
class Federation:
    """Programs by name, the network between them, the seed, and until when the run goes if that is fixed.

    `payload_max` is the largest payload of a message, as `limits.payload` of a file. `faults` are what happens to
    participants, as structs or as texts such as ``"2s crash planner"``. `estop` is the time within which all of them
    are told of an emergency stop; None: there is none.
    """

    programs: Mapping[str, Program]
    network: Network = field(default_factory=Network)
    seed: int = 0
    until: TimeLike | None = None
    payload_max: int = PAYLOAD_MAX
    faults: tuple[ParticipantFault | str, ...] = ()
    estop: TimeLike | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", as_faults(self.faults))
        if isinstance(self.programs, Mapping) and any(type(name) is not str for name in self.programs):
            object.__setattr__(self, "programs", {exact(name): program for name, program in self.programs.items()})
        if isinstance(self.programs, Mapping) and any(
            type(program) is not Program for program in self.programs.values()
        ):
            object.__setattr__(self, "programs", _placed(self.programs))

    def plan(self) -> Plan:
        """Return the plan of the run, after checking it."""
        if not isinstance(self.programs, Mapping):
            raise ConfigurationError(f"{shown(self.programs)} isn't a mapping from names to programs")
        for name, program in self.programs.items():
            if not isinstance(program, Program):
                function = getattr(program, "__name__", "function") if callable(program) else "function"
                raise ConfigurationError(
                    f"{name}: {shown(program)} isn't a Program", advice=f"write Program({function}, ...)"
                )
        check_kinds(self.network)
        self._check_faults()
        guests = [name for name, program in self.programs.items() if program.guest]
        roster = [name for name, program in self.programs.items() if not program.guest]
        return plan(
            roster,
            guests=guests,
            network=self._network(),
            seed=self.seed,
            until=self.until,
            faults=self.faults,
        )

    def _network(self) -> Network:
        return self.network if self.estop is None else with_estop_latency(self.network, self.estop)

    def _check_faults(self) -> None:
        """Look whether the faults go with what their participants declare."""
        faults = as_faults(self.faults)
        check_events(faults, {name: program.publishes for name, program in self.programs.items()})
        check_boots(faults, {name: as_delay(program.boot).minimum for name, program in self.programs.items()})
        check_machines(faults, [name for name, program in self.programs.items() if program.is_machine])
        for name, program in self.programs.items():
            check_durable(name, program.durable, program.subscribes)
            if (estop := self._network().estop) is not None:
                check_estop_latency(name, as_time(program.latency_least), estop)


def _placed(programs: Mapping[str, Program]) -> dict[str, Program]:
    """Let programs know of one another's names, if they want to."""
    names = tuple(programs)
    return {
        name: program.among(name, names) if isinstance(program, Program) else program
        for name, program in programs.items()
    }


def _refusing_end(init: Callable[..., None]) -> Callable[..., None]:
    """Say what the keyword is called that every other kind of run has for `end`, too; the signature stays."""

    @wraps(init)
    def made(federation: Federation, *given: object, **named: object) -> None:
        if "end" in named:
            raise ConfigurationError("a Federation has no `end`", advice="write until=")
        init(federation, *given, **named)

    return made


Federation.__init__ = _refusing_end(Federation.__init__)  # type: ignore[method-assign]
