"""References: what stands for an agent elsewhere, and introduces agents to each other."""

from __future__ import annotations

from typing import Any

from worldline.kernel.packing import teach
from worldline.model.errors import ModelError, UsageError
from worldline.spacetime.core import ChannelEnd, Core, current_core
from worldline.spacetime.lanes import Body, Lane


class _Moving:
    """Says that agents are being moved, from or to a core: then their channels go along, which else nobody copies."""

    core: Core | None = None


moving = _Moving()


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
        self._is_end = is_end  # Whether it is the end of a channel that nobody has made a Channel of yet.
        if is_end and lane is not None:
            lane.handle = id(self)

    @property
    def name(self) -> str:
        """The name of the agent that it stands for."""
        return str(self._body.name)

    def lane_for(self, holder: Body, channel: ChannelEnd) -> Lane:
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
            told = None if self._lane is None else lane_told(self._lane)
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


def lane_told(lane: Lane) -> tuple[Any, ...]:
    return lane.name, lane.source.name, lane.target.name, lane.target.home, lane.open, lane.told


def _moved_reference(
    body: str, home: int, told: tuple[Any, ...] | None, is_end: bool, channel: ChannelEnd | None
) -> RemoteReference:
    assert moving.core is not None
    lane = None if told is None else lane_found(*told)
    return RemoteReference(moving.core, lane, moving.core.body(body, home), is_end=is_end, channel=channel)


def lane_found(
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


teach(RemoteReference, lambda reference: reference.name, constant=False)
