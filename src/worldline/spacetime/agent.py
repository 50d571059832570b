"""Agents: ordinary objects with a trajectory through spacetime."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from worldline.kernel.taken import check_class
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.message import SEPARATOR, check_name, is_short
from worldline.spacetime.build import Body, Core, Vector, as_vector, current_core
from worldline.spacetime.functions import METHODS
from worldline.spacetime.reference import RemoteReference
from worldline.spacetime.space import Minkowski, Point

if TYPE_CHECKING:
    from random import Random

    from worldline.model.randomness import Stream


class Agent:
    """An object that has a position, moves, and executes the functions that reach it. Derive your own from it.

    An agent made by another starts where that one is; one made before the run starts at the origin, and may jump
    anywhere. Its attributes are its own: others only send it functions, over channels. What follows is for its own
    code, in events.

    Pictures show it by its class, unless it has a `shown_as`: a text that describes its present state, such as
    ``"ill"``, or a method that returns one. It is evaluated after each of its events, if the run is traced, and is in
    no digest.
    """

    _wl_body: Body
    _wl_core: Core

    def __new__(cls, *_: Any, **__: Any) -> Agent:
        core = current_core()
        if core is None:
            raise UsageError(
                f"a {cls.__name__} is made outside of a simulation", advice="make it under: with simulation:"
            )
        agent = super().__new__(cls)
        object.__setattr__(agent, "_wl_core", core)
        object.__setattr__(agent, "_wl_body", core.add(cls.__name__, agent))
        return agent

    @property
    def name(self) -> str:
        """Its name in errors, traces and digests; it can be set right after the agent was made.

        An agent made by another has that one's name before its own: ``queen/bee``; or, after many generations, what
        stands for it: see `model.lineage`.
        """
        return self._wl_body.name

    @name.setter
    def name(self, name: str) -> None:
        check_name(name, "an agent")
        if SEPARATOR in name or is_short(name):
            advice = "~ and a hash stand for a maker's name" if is_short(name) else "what is before a / is its maker's"
            raise UsageError(f"{shown(name)} can't be an agent's name", advice=advice)
        self._wl_acting("be named").rename(self._wl_body, name)

    @property
    def space(self) -> Minkowski:
        return self._wl_core.space

    @space.setter
    def space(self, _: Any) -> None:
        _refuse_to_set("space")

    @property
    def position(self) -> Vector:
        """Where the last event was; during an event, where that one is."""
        return self._wl_seen().point

    @position.setter
    def position(self, _: Any) -> None:
        _refuse_to_set("position", "jump_to(point) takes it elsewhere; ")

    @property
    def velocity(self) -> Vector:
        """The 4-velocity V: V·V = 1. Set it to change course."""
        return self._wl_seen().trajectory.velocity

    @velocity.setter
    def velocity(self, velocity: Point) -> None:
        core = self._wl_acting("turn")
        core.turn(self._wl_body, self.space.as_velocity(velocity))

    @property
    def local_time(self) -> float:
        """How much time has passed for the agent itself."""
        return self._wl_seen().local_time

    @local_time.setter
    def local_time(self, _: Any) -> None:
        _refuse_to_set("local_time")

    @property
    def random(self) -> Random:
        """Its own random draws: what others draw, and when, doesn't matter."""
        return cast("Random", self._wl_core.draws(self._wl_seen()))

    @random.setter
    def random(self, _: Any) -> None:
        _refuse_to_set("random")

    def stream(self, name: str) -> Stream:
        """Return a named stream of draws, independent of `random`: drawing from one doesn't affect the other."""
        return cast("Stream", self._wl_core.draws(self._wl_seen(), name))

    def jump_to(self, point: Point) -> None:
        """Move at once to another point, which must be in this one's future light cone, or on it."""
        core = self._wl_acting("jump")
        goal = as_vector(point, self.space.n, "where to jump")
        is_bound = not core.setting_up or any(lane.sent for lane in self._wl_body.outs)
        if is_bound and not self.space.can_reach(goal, self.position):
            raise ModelError(
                f"{goal} isn't in the future of {self.position}, so nobody can jump there",
                participant=self.name,
                advice="a jump may not be faster than light",
            )
        core.jump(self._wl_body, goal)

    def after(self, local_time: float, function: Any, *arguments: Any) -> None:
        """Call one of its own functions (a method's name, say) after this much of its local time."""
        core = self._wl_acting("wait")
        is_number = isinstance(local_time, int | float) and not isinstance(local_time, bool)
        if not is_number or not isfinite(local_time) or local_time <= 0:
            raise UsageError(f"{self.name} can't wait for {shown(local_time)}", advice="use a positive number")
        if isinstance(function, str) and not callable(getattr(self._wl_body.receiver, function, None)):
            raise UsageError(f"{self.name} has no method {shown(function)}", advice="name one of its own")
        core.carrier = self._wl_body
        try:
            sealed, carried, content, _ = core.seal(function, arguments)
        finally:
            core.carrier = None
        core.set_timer(self._wl_body, float(local_time), sealed, carried, content)

    def reference(self) -> RemoteReference:
        """Return a reference that can be sent to others, so that they can make a channel to this agent."""
        self._wl_acting("give references to itself")
        return RemoteReference(self._wl_core, None, self._wl_body)

    def log(self, text: str) -> None:
        """Log a text, with place and time: it is in the records of a traced run, and in every digest."""
        self._wl_acting("log").log(self._wl_body, str(text))

    def die(self) -> None:
        """Die: its channels are closed, and what is under way to it vanishes. Senders are told when they can know."""
        self._wl_acting("die").end(self._wl_body, False)

    def _wl_seen(self) -> Body:
        """Return the body, unless another agent acts: what that sees of this one would be luck."""
        core, body = self._wl_core, self._wl_body
        if core.acting is not None and core.acting is not body and not core.acts(body):
            raise UsageError(
                f"{core.acting.name} acts now, and can't see {self.name}",
                advice=f"send {self.name} a function that answers, over a channel",
            )
        return body

    def _wl_acting(self, what: str) -> Core:
        """Return the core, if this agent's code runs now."""
        core, body = self._wl_core, self._wl_body
        if not core.acts(body):
            if body.done and core.acting in (None, body):  # Otherwise it is luck whether it is so already.
                why = "it is dead" if body.death is not None else "the run is over"
                raise ModelError(f"{self.name} can't {what}: {why}")
            who = "nobody acts now" if core.acting is None else f"{core.acting.name} acts now"
            raise UsageError(
                f"{self.name} can't {what}: {who}",
                advice=f"send it a function that does it, over a channel to {self.name}",
            )
        return core

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_class(cls, Agent, _PROPERTIES, METHODS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} at {self._wl_body.point}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ModelError(
            f"{self.name} is an agent, and can't be copied or sent",
            advice="send a reference: channel.target(), or self.reference()",
        )


def _refuse_to_set(what: str, advice: str = "") -> None:
    raise UsageError(f"an agent's {what} can't be set", advice=f"{advice}call your own attribute something else")


_PROPERTIES = ("local_time", "name", "position", "random", "space", "velocity")


class AgentWrapper(Agent):
    """Makes an agent from any object: functions that are sent to it are called with the object."""

    def __init__(self, wrapped: Any) -> None:
        self.object = wrapped
        self._wl_body.receiver = wrapped


def kind_of(agent: Agent) -> str:
    """Return the name of an agent's class; if it only wraps an object, that of the object's class."""
    wrapped = getattr(agent, "object", agent) if type(agent) is AgentWrapper else agent
    return type(wrapped).__name__


def current() -> Agent:
    """Return the agent whose event this is: for code that isn't its own, such as that of an object that it wraps."""
    core = current_core()
    if core is None or core.acting is None:
        raise UsageError("no agent acts now", advice="this is for functions that are executed on agents")
    return core.acting.agent
