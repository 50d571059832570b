"""Channels between agents.

A channel comes into being in three steps. It is *created*, at a point; its target's end is *attached* there, which
happens at once if both agents are at that point, and otherwise when the end has reached the target, along the channel
that the reference was taken from; and its source's end is *held* by whoever the reference was sent to. In between, the
target can't get past what might still be sent from there.
"""

from __future__ import annotations

from typing import Any

from worldline.kernel.packing import teach
from worldline.model.errors import ModelError, UsageError, shown
from worldline.spacetime.agent import Agent
from worldline.spacetime.core import ChannelEnd, Core, current_core
from worldline.spacetime.geometry import Vector
from worldline.spacetime.lanes import Body, Lane
from worldline.spacetime.reference import RemoteReference, lane_found, lane_told, moving


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
        return bool(self.lane.open)

    def target(self) -> RemoteReference:
        """Return a reference to the agent at the other end, which can be sent to a third one."""
        self.core.check_sender(self.lane)
        return RemoteReference(self.core, self.lane, self.lane.target, channel=self)

    def close(self) -> None:
        """Send nothing more. What is under way still arrives."""
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
        return _moved_channel, (self.lane.name,) if self.lane.open else lane_told(self.lane)


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
    assert moving.core is not None
    channel.core, channel.lane = moving.core, lane_found(*told)
    channel.lane.handle = id(channel)  # One that stayed behind means nothing any more.
    return channel


def _refuse_agent(agent: Agent) -> Any:
    return agent.__reduce_ex__(5)


def _refuse_channel(_: Channel) -> Any:
    raise _not_copied()


teach(Vector, tuple, constant=True)
teach(Agent, _refuse_agent, constant=False)
teach(Channel, _refuse_channel, constant=False)
