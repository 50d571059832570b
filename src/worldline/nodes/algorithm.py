"""What the laboratory knows of an algorithm: its node, where it runs, what must hold, which faults it stands."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, getdoc, signature
from typing import Any

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.nodes.faults import parse_kinds
from worldline.nodes.node import Node
from worldline.nodes.properties import Property

LATENCY = "uniform(1ns, 1s)"
"""How long messages take where nobody says anything else."""


class Algorithm(Struct, frozen=True, kw_only=True):
    """A distributed algorithm, ready to be tried.

    `until` ends a run that wouldn't end by itself. `latency` is what the algorithm needs messages to take, and `fifo`
    whether they must not overtake each other. `faults` are those that it claims to stand.
    """

    name: str
    node: type[Node]
    topology: str
    properties: tuple[Property, ...] = ()
    until: str | None = None
    latency: str = LATENCY
    fifo: bool = False
    faults: str = ""

    def __post_init__(self) -> None:
        parse_kinds(self.faults)
        if not isinstance(self.properties, tuple | list) or not all(isinstance(p, Property) for p in self.properties):
            raise ConfigurationError(
                f"{self.name}: {shown(self.properties)} aren't properties", advice="write properties=(one, another)"
            )

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
        known = self.parameters()
        found: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in known:
                there = ", ".join(f"{key}={value}" for key, value in known.items()) or "it has none"
                raise ConfigurationError(f"{self.name} has no parameter {shown(name)}", advice=f"parameters: {there}")
            kind = str if known[name] is None else type(known[name])
            try:
                found[name] = _BOOLS[text.lower()] if kind is bool else kind(text)
            except (ValueError, KeyError):
                raise ConfigurationError(
                    f"{self.name}: {name} can't be {shown(text)}", advice=f"it is like {known[name]!r}"
                ) from None
        return found


_BOOLS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
