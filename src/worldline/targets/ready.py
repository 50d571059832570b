"""What is said of a run before it begins, and what is ready to begin."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from worldline.history.observer import Observer
from worldline.history.outcome import Outcome
from worldline.history.status import Watch
from worldline.model.plan import Plan
from worldline.model.reading import as_time


class Options(Struct, frozen=True, kw_only=True):
    """What somebody wants of a run, as it was written; what isn't said is as the target has it.

    `settings` are of the form NAME=VALUE.
    """

    seed: int | None = None
    until: str | None = None
    executor: str | None = None
    settings: tuple[str, ...] = ()


def end_of(options: Options) -> int | None:
    """Return when somebody wants a run to end, where that is a time; None if nobody says."""
    return None if options.until is None else as_time(options.until, "a time for --until")


class Ready(Protocol):
    """A run with all that it depends on. Whatever could be refused has been."""

    @property
    def kind(self) -> str:
        """The room that runs it: federation, kernel, nodes or spacetime."""

    @property
    def name(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def executor(self) -> str:
        """What executes it, as one writes it."""

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that speaks: under MPI, one of them is."""

    @property
    def members(self) -> tuple[str, str]:
        """What one who takes part is called here, and several."""

    def plan(self) -> Plan:
        """Return what a recording says of the run before it has begun."""

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        """Run it, once. What ends it before its time is raised, or the outcome's failure."""

    def extent(self, outcome: Outcome) -> str:
        """Say how much time was simulated."""

    def told(self, outcome: Outcome) -> list[str]:
        """Say what has come of it, besides what can be said of any run; refuse what may not come of it."""
