"""Names of channels on the public LCM: who sent a message, and whom it was delivered to.

A message that `plant` sends on `STATE` appears on ``STATE/plant``. Each of its deliveries appears on
``STATE/plant>controller``. Both begin with the sender, so that a list of channels that is sorted by name, such as that
of lcm-spy, has the deliveries right below the send: what a link loses is the difference between two neighboring rates.
Subscriptions are regular expressions that match the whole name: ``STATE/[^>]*`` are the sends on a channel,
``.*>controller`` all that arrives at one participant.

A channel may hold slashes; participants' names may hold neither `/` nor `>`. So a name has one reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from worldline.model.errors import ConfigurationError, shown

CHANNEL_BYTES_MAX = 63
"""LCM's own limit, over UDP; other transports have others, but a name must be good for all of them."""

TIME_CHANNEL = "WORLDLINE_TIME"
"""The channel that says at which time what follows was sent. Without a slash, it is no mirrored channel's name."""

_SEPARATORS = "/>"


class PublicName(NamedTuple):
    """What a channel of the public LCM stands for; without a receiver, it is a send."""

    channel: str
    sender: str
    receiver: str | None = None

    def __str__(self) -> str:
        name = f"{self.channel}/{self.sender}"
        return name if self.receiver is None else f"{name}>{self.receiver}"


def parse_public_name(text: str) -> PublicName:
    """Read the name of a mirrored channel."""
    channel, slash, path = text.rpartition("/")
    sender, arrow, receiver = path.partition(">")
    if not (channel and slash and sender) or (arrow and not receiver):
        raise ConfigurationError(f"{shown(text)} isn't a channel of the public LCM", advice="write CHANNEL/participant")
    return PublicName(channel, sender, receiver if arrow else None)


def check_channel(name: str) -> str:
    """Return the name of a channel if LCM can carry it."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ConfigurationError(f"{shown(name)} can't name an LCM channel", advice="it isn't valid Unicode") from None
    if not name or "\0" in name:
        raise ConfigurationError(
            f"{shown(name)} can't name an LCM channel", advice="a name has at least one character, and none is NUL"
        )
    if size > CHANNEL_BYTES_MAX:
        raise ConfigurationError(
            f"{shown(name)} can't name an LCM channel: it has {size} bytes",
            advice=f"LCM has room for {CHANNEL_BYTES_MAX}",
        )
    return name


def check_participant(name: str) -> str:
    """Return the name of a participant if it can be a part of a public channel's name."""
    if found := next((character for character in _SEPARATORS if character in name), None):
        raise ConfigurationError(
            f"{shown(name)} can't name a participant on a public LCM",
            advice=f"there, {shown(found)} separates names: leave it out",
        )
    check_channel(str(PublicName("C", name)))
    return name


def check_public_names(publishes: Mapping[str, Iterable[str]], subscribes: Mapping[str, Iterable[str]]) -> None:
    """Refuse names that can't appear on a public LCM: of participants, each with the channels that it declares."""
    for name in sorted({*publishes, *subscribes}):
        check_participant(name)
    receivers: dict[str, list[str]] = {}
    for receiver, channels in sorted(subscribes.items()):
        for channel in channels:
            receivers.setdefault(channel, []).append(receiver)
    for sender, channels in sorted(publishes.items()):
        for channel in channels:
            others = [receiver for receiver in receivers.get(channel, []) if receiver != sender]
            for public in (PublicName(channel, sender), *(PublicName(channel, sender, other) for other in others)):
                _check_public(public)


def _check_public(public: PublicName) -> None:
    try:
        check_channel(str(public))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"on the public LCM, {shown(public.channel)} of {public.sender} is {error.problem}",
            participant=public.sender,
            advice="shorten the names of the channel or the participants, or do without a public LCM",
        ) from None
