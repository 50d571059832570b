"""What the laboratory knows of an algorithm: its node, where it runs, what must hold, which faults it stands."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, getdoc, signature
from typing import Any

from msgspec import Struct

from worldline.files.loading import parsed
from worldline.model.errors import ConfigurationError, shown
from worldline.nodes.faults import parse_kinds
from worldline.nodes.node import Node
from worldline.search.properties import Property

LATENCY = "uniform(1ns, 1s)"
"""How long messages take unless the algorithm or its user says otherwise."""

NODES = "nodes"
"""What the number of nodes is called where parameters have names."""


class Algorithm(Struct, frozen=True, kw_only=True):
    """A distributed algorithm, ready to be tried.

    `until` ends a run that wouldn't end by itself. `latency` is what the algorithm needs messages to take, and `fifo`
    whether they must not overtake each other. `faults` are those that it claims to stand. `least` is what it can't do
    with less of, of nodes and of its parameters: ``{"nodes": 3, "rounds": 1}``. Shrinking goes down to that.
    """

    name: str
    node: type[Node]
    topology: str
    properties: tuple[Property, ...] = ()
    until: str | None = None
    latency: str = LATENCY
    fifo: bool = False
    faults: str = ""
    least: dict[str, int] = {}

    def __post_init__(self) -> None:
        parse_kinds(self.faults)
        if not isinstance(self.properties, tuple | list) or not all(isinstance(p, Property) for p in self.properties):
            raise ConfigurationError(
                f"{self.name}: {shown(self.properties)} aren't properties", advice="write properties=(one, another)"
            )

        self._check_least()

    def _check_least(self) -> None:
        if not isinstance(self.least, dict):
            raise ConfigurationError(
                f"{self.name}: {shown(self.least)} isn't a dict of minimums",
                advice=f'write least={{"{NODES}": 2}}',
            )
        if not self.least:
            return
        counted = {name: value for name, value in self.parameters().items() if type(value) is int}
        kinds = [each.kind for each in signature(self.node).parameters.values()]
        passes_on = Parameter.VAR_KEYWORD in kinds  # To a class whose parameters aren't known here.
        for name, value in self.least.items():
            if name != NODES and name not in counted and not passes_on:
                there = ", ".join((NODES, *counted))
                raise ConfigurationError(
                    f"{self.name}: {shown(name)} can't have a minimum", advice=f"only of numbers: {there}"
                )
            if type(value) is not int or (name == NODES and value < 1):
                raise ConfigurationError(f"{self.name}: {shown(value)} can't be the minimum of {name}", advice="use 1")

    @property
    def summary(self) -> str:
        """The first line of what the node's class says of itself."""
        return (getdoc(self.node) or "").partition("\n")[0]

    def parameters(self) -> dict[str, Any]:
        """Return what a node takes besides what every node is given, and the values it has otherwise."""
        given = list(signature(self.node).parameters.values())
        return {
            each.name: each.default
            for each in given
            if each.kind is Parameter.KEYWORD_ONLY and each.default is not Parameter.empty
        }

    def parsed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Read parameters that are given as texts; each is of the kind of its default."""
        return parsed(self.name, self.parameters(), texts)
