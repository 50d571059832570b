"""Rows of a table of draws: which draws are replaced, and by what.

A row replaces a draw by a value, by its antithetic draw (each bit inverted, so that u becomes 1 - u), by the draw that
another seed gives, or by what a function makes of it. A function must depend on its arguments only: it may be called
several times for one draw, and in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from worldline.model.draws.distributions import Distribution, DrawnValue
from worldline.model.draws.names import ANY, check_pattern
from worldline.model.errors import ConfigurationError, nearest, shown

DrawFunction = Callable[[str, Distribution, DrawnValue], object]
"""Takes the name of a draw, its distribution and its value, and returns the value that it is to have."""

_ANTITHETIC = "antithetic"
_KEYS = ("value", "seed", "antithetic", "function")
_ADVICE = 'write a value, "antithetic", {seed = 5} or {function = "module:function"}'


class DrawRow(Struct, frozen=True, omit_defaults=True):
    """A pattern, and what the draws that it matches are replaced by.

    That is a `value`; or a `seed` to draw from instead of the run's, the `antithetic` draw, or both; or a `function`,
    by its name: a row is data, which every participant of a run is told.
    """

    name: str
    value: bool | int | float | str | None = None
    seed: int | None = None
    antithetic: bool = False
    function: str | None = None

    def replacement(self) -> object:
        """Return what it replaces draws by, as one writes it."""
        if self.value is not None:
            return self.value
        if self == DrawRow(self.name, antithetic=True):
            return _ANTITHETIC
        given = {"seed": self.seed, "antithetic": self.antithetic or None, "function": self.function}
        return {key: each for key, each in given.items() if each is not None}


class DrawInputs(NamedTuple):
    """A table of draws, ready to be used: its rows, and its functions by the names that the rows have for them."""

    rows: tuple[DrawRow, ...] = ()
    functions: Mapping[str, DrawFunction] = MappingProxyType({})


DrawsGiven = DrawInputs | Mapping[str, Any] | Sequence[DrawRow] | DrawFunction | None
"""A table of draws as people write it: a mapping from patterns to replacements, a function for all draws, or rows."""


def read_draws(given: DrawsGiven) -> DrawInputs:
    """Take a table of draws, and check it as far as that is possible without knowing the run."""
    functions: dict[str, DrawFunction] = {}
    if given is None:
        return DrawInputs()
    if isinstance(given, DrawInputs):
        return given
    if isinstance(given, Mapping):
        rows = tuple(_row(name, what, functions) for name, what in given.items())
    elif callable(given):
        rows = (DrawRow(ANY, function=_named(given, functions)),)
    elif isinstance(given, list | tuple) and all(isinstance(row, DrawRow) for row in given):
        rows = tuple(given)
    else:
        advice = 'write {"latency/image": "5ms"}, or give a function of name, distribution and value'
        raise ConfigurationError(f"{shown(given)} isn't a table of draws", advice=advice)
    for row in rows:
        _check_row(row)
    return DrawInputs(rows, functions)


def functions_in(rows: Iterable[DrawRow]) -> tuple[str, ...]:
    """Return the functions that rows name, each once."""
    return tuple(dict.fromkeys(row.function for row in rows if row.function is not None))


def _named(function: DrawFunction, functions: dict[str, DrawFunction]) -> str:
    """Note a function, and return its name; two that are called the same get different ones."""
    called = getattr(function, "__qualname__", type(function).__name__)
    name = first = f"{getattr(function, '__module__', '?')}:{called}"
    number = 1
    while functions.setdefault(name, function) is not function:
        number += 1
        name = f"{first} ({number})"
    return name


def _row(name: object, what: Any, functions: dict[str, DrawFunction]) -> DrawRow:
    if not isinstance(name, str):
        raise ConfigurationError(f"{shown(name)} isn't the name of a draw", advice="a name is text")
    if isinstance(what, str) and what == _ANTITHETIC:
        return DrawRow(name, antithetic=True)
    if callable(what):
        return DrawRow(name, function=_named(what, functions))
    if isinstance(what, str) and (meant := nearest(what, [_ANTITHETIC])):
        raise ConfigurationError(f"draw {name}: {shown(what)} isn't a value", advice=meant)
    if not isinstance(what, Mapping):
        return DrawRow(name, value=what)
    unknown = [key for key in what if key not in _KEYS]
    if unknown:
        raise ConfigurationError(f"draw {name}: there is no key {shown(unknown[0])}", advice=_ADVICE)
    return DrawRow(name, **what)


def _check_row(row: DrawRow) -> None:
    check_pattern(row.name)
    given = [row.value is not None, row.seed is not None or row.antithetic is not False, row.function is not None]
    if sum(given) != 1:
        problem = "it is replaced in two ways" if any(given) else "it isn't replaced by anything"
        raise ConfigurationError(f"draw {row.name}: {problem}", advice=_ADVICE)
    if row.value is not None and not isinstance(row.value, bool | int | float | str):
        raise ConfigurationError(f"draw {row.name}: {shown(row.value)} isn't a value", advice=_ADVICE)
    if row.seed is not None and (type(row.seed) is not int or not -(2**63) <= row.seed < 2**63):
        raise ConfigurationError(f"draw {row.name}: the seed isn't a whole number of at most 64 bits")
    if not isinstance(row.antithetic, bool):
        raise ConfigurationError(f"draw {row.name}: antithetic is true or false, not {shown(row.antithetic)}")
    if row.function is not None and not isinstance(row.function, str):
        raise ConfigurationError(f"draw {row.name}: {shown(row.function)} isn't a function")
