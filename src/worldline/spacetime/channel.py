"""Channels between agents, and the references that introduce agents to each other.

A channel comes into being in three steps. It is *created*, at a point; its target's end is *attached* there, which
happens at once if both agents are at that point, and otherwise when the end has reached the target, along the channel
that the reference was taken from; and its source's end is *held* by whoever the reference was sent to. In between, the
target can't get past what might still be sent from there.
"""

from __future__ import annotations

from typing import Any

from worldline.kernel.parcel import teach
from worldline.model.errors import ModelError, UsageError, shown
from worldline.spacetime.agent import Agent
from worldline.spacetime.build import Body, Core, Lane, Outlet, Vector, current_core


class _Moving:
    """Says that agents are being moved, from or to a core: then their channels go along, which else nobody copies."""

    core: Core | None = None


moving = _Moving()


class Channel(Outlet):
    """A way from one agent to another: ``Channel(alice, bob).send(Ping.ping)``.

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
            self.lane = target._lane_for(body, self)
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
        """Whether something can be sent: it hasn't been closed, and the target isn't known to be dead."""
        return bool(self.lane.open)

    def target(self) -> RemoteReference:
        """Return a reference to the agent at the other end, to be sent to a third one."""
        self.core.check_sender(self.lane)
        return RemoteReference(self.core, self.lane, self.lane.target, channel=self)

    def close(self) -> None:
        """Let nothing more be sent. What is under way arrives."""
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
        if moving.core is None:
            raise _not_copied()
        return _moved_channel, (self.lane.name,) if self.lane.open else _lane_told(self.lane)


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


class RemoteReference:
    """Stands for an agent elsewhere. It can be sent on, as often as you like, and a channel can be made from it."""

    __slots__ = ("_body", "_channel", "_core", "_is_end", "_lane")

    def __init__(
        self, core: Core, lane: Lane | None, body: Body, *, is_end: bool = False, channel: Channel | None = None
    ) -> None:
        self._core = core
        self._channel = channel  # While there is a reference, the channel that it leads along isn't given up.
        self._lane = lane  # One that leads there; None if it's who acts.
        self._body = body
        self._is_end = is_end  # Whether it is the end of a channel that nobody has made a Channel of yet.
        if is_end and lane is not None:
            lane.handle = id(self)

    @property
    def name(self) -> str:
        """The name of the agent that it stands for."""
        return str(self._body.name)

    def _lane_for(self, holder: Body, channel: Channel) -> Lane:
        """Return a lane to the agent for a channel of somebody who is here."""
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
        """Refuse an agent's reference to itself in somebody else's hands: it hasn't been sent there."""
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
        if moving.core is not None:
            told = None if self._lane is None else _lane_told(self._lane)
            return _moved_reference, (self._body.name, self._body.home, told, self._is_end, self._channel)
        core = self._core
        if core.carrier is None:
            raise ModelError("a reference can't be copied", advice="send it over a channel")
        if self._lane is None:
            self._check_here()
            lane = core.derive_own(self._body, core.carrier)
        else:
            lane = core.derive(self._lane, core.carrier)
        core.captured.append((lane.name, lane.target.name, lane.target.home))
        return _arrived, (lane.name, lane.target.name, lane.target.home)


def _arrived(name: str, target: str, home: int) -> RemoteReference:
    """Take in a reference with the lambda that it came with."""
    core = current_core()
    assert core is not None  # A lambda is opened by who absorbs it.
    lane = core.take_end(name, target, home)
    return RemoteReference(core, lane, lane.target, is_end=True)


def _lane_told(lane: Lane) -> tuple[Any, ...]:
    return lane.name, lane.source.name, lane.target.name, lane.target.home, lane.open, lane.told


def _moved_channel(*told: Any) -> Channel:
    channel = Channel.__new__(Channel)
    assert moving.core is not None
    channel.core, channel.lane = moving.core, _lane_found(*told)
    channel.lane.handle = id(channel)  # One that stayed behind means nothing any more.
    return channel


def _moved_reference(
    body: str, home: int, told: tuple[Any, ...] | None, is_end: bool, channel: Channel | None
) -> RemoteReference:
    assert moving.core is not None
    lane = None if told is None else _lane_found(*told)
    return RemoteReference(moving.core, lane, moving.core.body(body, home), is_end=is_end, channel=channel)


def _lane_found(
    name: str, source: str = "", target: str = "", home: int = 0, is_open: bool = True, told: bool = False
) -> Lane:
    """Return the lane of a channel that has moved here with its agent; one that is closed is nobody else's."""
    core = moving.core
    assert core is not None
    if is_open and name in core.lanes:
        return core.lanes[name]
    lane = Lane(name, 0, core.body(source, core.me), core.body(target, home))
    lane.open, lane.told = False, told
    return lane


def _refuse_agent(agent: Agent) -> Any:
    return agent.__reduce_ex__(5)


def _refuse_channel(_: Channel) -> Any:
    raise _not_copied()


teach(Vector, tuple, constant=True)
teach(RemoteReference, lambda reference: reference.name, constant=False)
teach(Agent, _refuse_agent, constant=False)
teach(Channel, _refuse_channel, constant=False)
