"""What several algorithms demand of their topology and their parameters, and count in their runs."""

from __future__ import annotations

from worldline.model.errors import ConfigurationError, shown
from worldline.model.reading import as_time
from worldline.model.time import TimeLike
from worldline.nodes.node import Node
from worldline.nodes.scheduler import Scheduler


def demand_clique(node: Node) -> None:
    """Refuse a topology in which a node isn't a neighbor of every other."""
    if node.num_neighbors != node.num_nodes - 1:
        raise ConfigurationError("every node needs a link to every other", advice=f"use clique:{node.num_nodes}")


def demand_node(node: Node, number: int, what: str) -> int:
    """Take the number of a node that is to do something; without it nothing would happen at all."""
    if type(number) is not int or not 0 <= number < node.num_nodes:
        raise ConfigurationError(
            f"there is no node {shown(number)} to {what}", advice=f"the nodes are 0 to {node.num_nodes - 1}"
        )
    return number


def demand_duration(given: TimeLike, what: str) -> int:
    """Take a time that has to pass."""
    time = as_time(given, what)
    if time < 1:
        raise ConfigurationError(f"{what} of {shown(given)} is none", advice="use at least 1ns")
    return time


def demand_messages(run: Scheduler, least: int, most: float, others: int = 0) -> bool:
    """Compare how many messages have arrived with how many should, besides some others, where there are no timers."""
    sent = run.events_of_nodes - others
    bounds = f"at most {most:.0f}" if least == 0 else f"{least} to {most}"
    should = f" instead of {least}" if least == most else f", and should take {bounds}"
    assert least <= sent <= most, f"it took {sent} messages{should}"
    return True
