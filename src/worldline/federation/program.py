"""A federation as its author writes it: programs by name, and the network between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from inspect import isasyncgenfunction, iscoroutine, iscoroutinefunction, isgenerator, isgeneratorfunction

from worldline.federation.declaration import Declaration, check_durable
from worldline.federation.participant import Participant
from worldline.model import Network, Plan, plan
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.faults import ParticipantFault, as_faults, check_boots, check_events
from worldline.model.latency import as_delay
from worldline.model.links import check_estop_latency, with_estop_latency
from worldline.model.message import exact
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.reading import as_time
from worldline.model.time import TimeLike


@dataclass(frozen=True)
class Program(Declaration):
    """What one participant does, along with what it declares. A `guest` joins when somebody invites it."""

    run: Callable[[Participant], object]
    _: KW_ONLY
    guest: bool = False

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise ConfigurationError(f"{shown(self.run)} isn't a function of a participant")
        if isgeneratorfunction(self.run) or iscoroutinefunction(self.run) or isasyncgenfunction(self.run):
            raise ConfigurationError(
                f"{getattr(self.run, '__name__', 'the program')} is a generator or a coroutine, which would never run",
                advice="write an ordinary function; advance() and next() wait by themselves",
            )
        super().__post_init__()


def check_played(result: object) -> None:
    """Refuse what a program has returned if it is the program itself, still to be run."""
    if isgenerator(result) or iscoroutine(result):
        raise UsageError("its program is a generator or a coroutine, which never ran")


@dataclass(frozen=True)
class Federation:
    """Programs by name, the network between them, the seed, and until when the run goes if that is fixed.

    `payload_max` is the largest payload of a message, as `limits.payload` of a file. `faults` are what befalls
    participants, as structs or as texts such as ``"2s crash planner"``. `estop` is the time within which everybody is
    told of an emergency stop; None: there is none.
    """

    programs: Mapping[str, Program]
    network: Network = field(default_factory=Network)
    seed: int = 0
    until: TimeLike | None = None
    payload_max: int = PAYLOAD_MAX
    faults: tuple[ParticipantFault | str, ...] = ()
    estop: TimeLike | None = None

    def __new__(cls, *_: object, **given: object) -> Federation:
        """Say what the keyword is called that every other kind of run has for this, too."""
        if "end" in given:
            raise ConfigurationError("a Federation has no `end`", advice="write until=")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "faults", as_faults(self.faults))
        if isinstance(self.programs, Mapping) and any(type(name) is not str for name in self.programs):
            object.__setattr__(self, "programs", {exact(name): program for name, program in self.programs.items()})

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
        """Look whether what befalls participants goes with what they declare."""
        faults = as_faults(self.faults)
        check_events(faults, {name: program.publishes for name, program in self.programs.items()})
        check_boots(faults, {name: as_delay(program.boot).minimum for name, program in self.programs.items()})
        for name, program in self.programs.items():
            check_durable(name, program.durable, program.subscribes)
            if (estop := self._network().estop) is not None:
                check_estop_latency(name, as_time(program.latency_least), estop)
