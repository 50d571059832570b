"""What a definition has made, ready to run: a simulation that a function, or a file, has set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from worldline.files.loading import Definition
from worldline.history.outcome import Outcome
from worldline.processes.executor import Executor
from worldline.targets.ready import Ready

if TYPE_CHECKING:  # Who makes one of them doesn't need the other, and both take long to load.
    from worldline.kernel.simulation import Simulation
    from worldline.spacetime.simulation import ForwardSimulation

Made = TypeVar("Made", bound="Simulation | ForwardSimulation")


class ReadyMade(Ready, Generic[Made]):
    """A simulation that can be run, and whose definition says what must come of it."""

    def __init__(self, found: Definition, simulation: Made, chosen: Executor) -> None:
        self._found = found
        self.simulation = simulation
        self.name = found.name
        self.seed = simulation.seed
        self.chosen = chosen

    def told(self, outcome: Outcome) -> list[str]:
        return self._found.judged(self.simulation, outcome).splitlines()
