"""How a primary and its secondaries find each other on a network, and notice when one goes."""

from worldline.world.discovery.discovery import Discovery, PrimaryFound
from worldline.world.discovery.peers import DepartedBy, Peer, PeerConflict, PeerDeparted, PeerRole
from worldline.world.discovery.zenoh_network import MEETING_POINT, DiscoveryOptions

__all__ = [
    "MEETING_POINT",
    "DepartedBy",
    "Discovery",
    "DiscoveryOptions",
    "Peer",
    "PeerConflict",
    "PeerDeparted",
    "PeerRole",
    "PrimaryFound",
]
