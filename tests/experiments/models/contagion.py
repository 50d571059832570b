"""An epidemic in one population, whose final size has a closed form: meetings at random, of which the ill take part."""

from __future__ import annotations

from typing import Any

from worldline.kernel import Entity, Simulation

PEOPLE, ILL, CONTACTS = 500, 10, 2.0


class Population(Entity):
    def __init__(self) -> None:
        self.untouched = PEOPLE - ILL

    def start(self) -> Any:
        ill = ILL
        while ill:
            catches = CONTACTS * ill * self.untouched / PEOPLE
            yield self.random.exponential(1_000_000 / (catches + ill))
            if self.random.random() * (catches + ill) < catches:
                self.untouched -= 1
                ill += 1
            else:
                ill -= 1
            self.record("ill", ill)


def model(*, seed: int = 0) -> Simulation:
    simulation = Simulation(seed=seed)
    simulation.add("people", Population())
    return simulation


def measures(simulation: Simulation, result: Any) -> dict[str, float]:
    return {"spared": simulation["people"].untouched / PEOPLE}
