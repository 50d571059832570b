from typing import Any

from worldline.kernel.build import Draws
from worldline.spacetime.agent import Agent
from worldline.spacetime.geometry import Trajectory, Vector

class Lambda:
    at: Vector
    order: int
    kind: int
    function: Any
    arguments: Any
    content: int
    ends: tuple[tuple[str, str, int], ...] | None

class Body:
    name: str
    agent: Agent
    receiver: Any
    random: Draws | None
    trajectory: Trajectory
    point: Vector
    lanes: list[Lane]
    outs: list[Lane]
    timer: Lane | None
    blocked_by: Lane | None
    done: bool
    frozen: bool
    parked: bool
    home: int
    is_here: bool
    death: Vector | None
    partners: dict[int, bool]
    chain: int
    events: int
    @property
    def local_time(self) -> float: ...
    def position(self, n: int) -> tuple[float, ...]: ...
    def state(self) -> tuple[Any, ...]: ...
    def restore(self, state: tuple[Any, ...]) -> None: ...

class Lane:
    name: str
    key: int
    source: Body
    target: Body
    floor: Vector | None
    sent: int
    attached: bool
    open: bool
    gone: bool
    is_news: bool
    asked: bool
    told: bool
    handle: int
    timers: list[Any] | None
    def __init__(self, name: str, key: int, source: Body, target: Body) -> None: ...
    def under_way(self) -> list[Lambda]: ...

def new_lambda(at: Vector, order: int, kind: int, function: Any, arguments: Any, content: int, ends: Any) -> Lambda: ...
