from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from worldline.model.errors import WorldlineError
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.core import Core
from worldline.spacetime.geometry import LambdaField, Vector
from worldline.spacetime.lanes import Body, Lambda, Lane
from worldline.spacetime.space import Minkowski
from worldline.spacetime.worker_messages import Letter

def current_core() -> Core | None: ...
def make_current(core: Core | None) -> Core | None: ...

class Stepping:
    space: Minkowski
    n: int
    field: LambdaField
    seed: int
    me: int
    boundaries: list[Boundary]
    bodies: dict[str, Body]
    elsewhere: WeakValueDictionary[str, Body]
    graves: dict[str, tuple[Vector, int, int]]
    lanes: dict[str, Lane]
    homes: dict[str, int]
    shuffle: Callable[[list[Any]], None] | None
    acting: Body | None
    beginning: Body
    setting_up: bool
    stamp: int
    carrier: Body | None
    captured: list[tuple[str, str, int]]
    dropped: list[Lane]
    trace: list[tuple[Any, ...]] | None
    failures: list[tuple[float, str, WorldlineError]]
    cap: float
    outbox: list[tuple[Body, Letter]]
    moved: dict[str, Body]
    live: int
    steps: int
    events: int
    lab: float
    def __init__(
        self, space: Minkowski, field: LambdaField, boundaries: list[Boundary], seed: int, me: int = 0
    ) -> None: ...
    def run(self, limit: int) -> bool: ...
    def deliver(self, lane: Lane, item: Lambda) -> None: ...
    def note(self, kind: str, body: Body, name: str, facts: Any) -> None: ...
