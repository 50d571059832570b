"""Agents, which are objects with a trajectory through spacetime; references to them, and channels between them.

A channel comes into being in three steps. It is *created*, at a point; its target's end is *attached* there, which
happens at once if both agents are at that point, and otherwise when the end has reached the target, along the channel
that the reference was taken from; and its source's end is *held* by the agent that the reference was sent to. In
between, the target can't get past what might still be sent from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from worldline.history.monitor import checked_measure
from worldline.kernel.packing import teach
from worldline.kernel.trouble import check_class
from worldline.model.errors import ModelError, UsageError, shown
from worldline.model.message import SEPARATOR, check_name, is_short
from worldline.spacetime.core import ChannelEnd, Core, current_core
from worldline.spacetime.functions import METHODS
from worldline.spacetime.geometry import Vector, as_vector
from worldline.spacetime.lanes import CLOSED, Body, Lane
from worldline.spacetime.space import Minkowski, Point

if TYPE_CHECKING:
    from random import Random

    from worldline.model.randomness import Stream


# -- References: what stands for an agent elsewhere, and introduces agents to each other


_moving: Core | None = None


@contextmanager
def moving(core: Core) -> Iterator[None]:
    """Let agents be moved meanwhile, from or to a core: then their channels go along, and are copied only then."""
    global _moving
    before, _moving = _moving, core
    try:
        yield
    finally:
        _moving = before


class RemoteReference:
    """Stands for an agent elsewhere. It can be sent on, as often as you like, and a channel can be made from it."""

    __slots__ = ("_body", "_channel", "_core", "_is_end", "_lane")

    def __init__(
        self, core: Core, lane: Lane | None, body: Body, *, is_end: bool = False, channel: ChannelEnd | None = None
    ) -> None:
        self._core = core
        self._channel = channel  # While there is a reference, the channel that it leads along isn't given up.
        self._lane = lane  # One that leads there; None if it's who acts.
        self._body = body
        self._is_end = is_end  # Whether it is the end of a channel that no Channel has been made of yet.
        if is_end and lane is not None:
            lane.handle = id(self)

    @property
    def name(self) -> str:
        """The name of the agent that it stands for."""
        return str(self._body.name)

    def lane_for(self, holder: Body, channel: ChannelEnd) -> Lane:
        """Return a lane to the agent for a channel of an agent that is here."""
        core = self._core
        if self._lane is None:
            self._check_here()
            return core.open_lane(holder, self._body, True)
        if self._is_end and self._lane.source is holder:
            self._is_end = False
            self._channel = channel
            return self._lane
        lane = core.derive(self._lane, holder)
        holder.outs.append(lane)
        return lane

    def _check_here(self) -> None:
        """Refuse an agent's reference to itself in another's hands: it hasn't been sent there."""
        if not self._core.acts(self._body):
            raise UsageError(
                f"this reference is {self.name}'s own, and {self.name} isn't here",
                advice="send it over a channel; or keep a channel, and use its target()",
            )

    def __repr__(self) -> str:
        return f"<reference to {self.name}>"

    def __del__(self) -> None:
        lane = self._lane
        if self._is_end and lane is not None and lane.handle == id(self) and lane.source.is_here:
            self._core.dropped.append(lane)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if _moving is not None:
            told = None if self._lane is None else lane_told(self._lane)
            return _moved_reference, (self._body.name, self._body.home, told, self._is_end, self._channel)
        core, holder = self._core, self._core.sealer.target
        if holder is None:
            raise ModelError("a reference can't be copied", advice="send it over a channel")
        if self._lane is None:
            self._check_here()
            lane = core.derive_own(self._body, holder)
        else:
            lane = core.derive(self._lane, holder)
        core.sealer.captured.append((lane.name, lane.target.name, lane.target.home))
        return _arrived, (lane.name, lane.target.name, lane.target.home)


def _arrived(name: str, target: str, home: int) -> RemoteReference:
    """Take in a reference with the lambda that it came with."""
    core = current_core()
    assert core is not None  # A lambda is opened by who absorbs it.
    lane = core.take_end(name, target, home)
    return RemoteReference(core, lane, lane.target, is_end=True)


def lane_told(lane: Lane) -> tuple[Any, ...]:
    return lane.name, lane.source.name, lane.target.name, lane.target.home, lane.ended


def _moved_reference(
    body: str, home: int, told: tuple[Any, ...] | None, is_end: bool, channel: ChannelEnd | None
) -> RemoteReference:
    assert _moving is not None
    lane = None if told is None else lane_found(*told)
    return RemoteReference(_moving, lane, _moving.register.body(body, home), is_end=is_end, channel=channel)


def lane_found(name: str, source: str = "", target: str = "", home: int = 0, ended: str | None = None) -> Lane:
    """Return the lane of a channel that has moved here with its agent; one that is closed is no other's."""
    core = _moving
    assert core is not None
    if ended is None and name in core.lanes:
        return core.lanes[name]
    lane = Lane(name, 0, core.register.body(source, core.me), core.register.body(target, home))
    lane.ended = ended or CLOSED
    return lane


teach(RemoteReference, lambda reference: reference.name, constant=False)


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
                f"{goal} isn't in the future of {self.position}, so no agent can jump there",
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
        sealed, carried, content, _ = core.seal(function, arguments, self._wl_body)
        core.set_timer(self._wl_body, float(local_time), sealed, carried, content)

    def reference(self) -> RemoteReference:
        """Return a reference that can be sent to others, so that they can make a channel to this agent."""
        self._wl_acting("give references to itself")
        return RemoteReference(self._wl_core, None, self._wl_body)

    def log(self, text: str) -> None:
        """Log a text, with place and time: it is in the records of a traced run, and in every digest."""
        self._wl_acting("log").log(self._wl_body, str(text))

    def measure(self, what: str, value: float) -> None:
        """Measure a number, as of now: it is in the outcome's monitors, for sweeps and observers, and in no digest."""
        what, value = checked_measure(what, value)
        self._wl_acting("measure").measure(self._wl_body, what, value)

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
            who = "no agent acts now" if core.acting is None else f"{core.acting.name} acts now"
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
    agent: Agent = core.acting.agent
    return agent


# -- Channels


class Channel(ChannelEnd):
    """A one-way connection from one agent to another: ``Channel(alice, bob).send(Ping.ping)``.

    What is sent arrives in the order in which it was sent, as fast as light. The source must be the agent that acts, or
    one that it has just made; so must the target, unless it is a `RemoteReference`. If the target dies, the source is
    told at the first `send` after light could have told it; for that the source never gets further ahead of the target
    than light does. A `blind` channel doesn't tell, and lets its source run ahead.
    """

    core: Core
    lane: Lane

    def __init__(self, source: Agent, target: Agent | RemoteReference, *, blind: bool = False) -> None:
        core = current_core()
        if core is None:
            raise UsageError("a channel is made outside of a simulation", advice="make it under: with simulation:")
        if not isinstance(source, Agent):
            raise UsageError(f"{shown(source)} isn't an agent", advice="the source of a channel is an Agent")
        body = _present(core, source)
        self.core = core
        if isinstance(target, RemoteReference):
            self.lane = target.lane_for(body, self)
            if not blind and self.lane.target is not body:
                core.watch(self.lane)
        elif isinstance(target, Agent):
            there = _present(core, target)
            self.lane = core.open_lane(body, there, blind or there is body)
        else:
            raise UsageError(
                f"{shown(target)} isn't an agent", advice="the target of a channel is an Agent or a RemoteReference"
            )
        self.lane.handle = id(self)

    @property
    def is_open(self) -> bool:
        """Whether anything can be sent: it hasn't been closed, and the target isn't known to be dead."""
        return self.lane.ended is None

    def target(self) -> RemoteReference:
        """Return a reference to the agent at the other end, which can be sent to a third one."""
        self.core.check_sender(self.lane)
        return RemoteReference(self.core, self.lane, self.lane.target, channel=self)

    def close(self) -> None:
        """Send nothing more. What is under way still arrives. One that is closed, or whose target is dead, stays so."""
        if self.lane.ended is None:
            self.core.check_sender(self.lane)
            self.core.close(self.lane)

    def __del__(self) -> None:
        lane = getattr(self, "lane", None)
        if lane is not None and lane.handle == id(self) and lane.source.is_here:
            self.core.dropped.append(lane)

    def __repr__(self) -> str:
        return f"<channel from {self.lane.source.name} to {self.lane.target.name}>"

    def __copy__(self) -> Any:
        raise _not_copied()

    def __deepcopy__(self, _: Any) -> Any:
        raise _not_copied()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if _moving is None:
            raise _not_copied()
        return _moved_channel, (self.lane.name,) if self.lane.ended is None else lane_told(self.lane)


def _not_copied() -> ModelError:
    return ModelError(
        "a channel is between two agents, and can't be copied or sent", advice="send channel.target(), a reference"
    )


def _present(core: Core, agent: Agent) -> Body:
    body = agent._wl_body
    if agent._wl_core is not core:
        raise UsageError(f"{body.name} is in another simulation", advice="channels don't lead from one to the other")
    if not core.acts(body):
        raise UsageError(
            f"{body.name} isn't here, so no channel can be attached to it",
            advice="an agent makes channels from itself, to itself or agents that it has just made, or to a reference",
        )
    return body


def _moved_channel(*told: Any) -> Channel:
    channel = Channel.__new__(Channel)
    assert _moving is not None
    channel.core, channel.lane = _moving, lane_found(*told)
    channel.lane.handle = id(channel)  # One that stayed behind means nothing any more.
    return channel


def _refuse_agent(agent: Agent) -> Any:
    return agent.__reduce_ex__(5)


def _refuse_channel(_: Channel) -> Any:
    raise _not_copied()


teach(Vector, tuple, constant=True)
teach(Agent, _refuse_agent, constant=False)
teach(Channel, _refuse_channel, constant=False)
