"""The table of draws: its rows, which say what replaces which draws, and the draws of a run made by them.

A row replaces a draw by a value, by its antithetic draw (each bit inverted, so that u becomes 1 - u), by the draw that
another seed gives, or by what a function makes of it. A function must depend on its arguments only: it may be called
several times for one draw, and in several processes. If several rows match a draw, the last one counts: a table goes
from the general to the particular, as names do.

Without rows and without a listener there is no table at all, so that a draw costs what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from worldline.model.clock import LocalClock, RunningClock
from worldline.model.draws.distributions import (
    Chance,
    ClockOffset,
    ClockRate,
    Distribution,
    DrawnValue,
    RandomBits,
    Turn,
    UnitInterval,
    checked_value,
)
from worldline.model.draws.names import (
    ANY,
    CLOCK_DRIFT,
    CLOCK_OFFSET,
    CLOCK_WALK,
    RANDOM,
    STREAM,
    NamePattern,
    check_pattern,
    is_exact,
    part_text,
)
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError, nearest, shortened, shown
from worldline.model.latency import Uniform
from worldline.model.randomness import BITS_MAX, Stream, draw_bits, key_of

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


# -- The draws of a run

_UNIT = UnitInterval()


class DrawSource(NamedTuple):
    """Where a draw comes from: its name in parts, its distribution, and the key by which a seed gives it.

    `key` is what `key_of` takes besides the seed; `sequence` and `number` are what `draw_bits` takes besides the key.
    """

    name: tuple[str, ...]
    distribution: Distribution
    key: tuple[str, ...]
    sequence: int
    number: int = 0


class Drawn(NamedTuple):
    """A draw that was made, when, and with which value; `natural` is the value that the seed gives."""

    name: str
    distribution: Distribution
    at: int
    value: DrawnValue
    natural: DrawnValue


class DrawTable:
    """The draws of one run, or of one participant in it.

    `load` finds the functions that rows name. `heard` is told every draw, replaced or not; draws that are worked
    out twice are told twice.
    """

    def __init__(
        self,
        seed: int,
        rows: Sequence[DrawRow] = (),
        *,
        load: Callable[[str], DrawFunction] | None = None,
        heard: Callable[[Drawn], None] | None = None,
    ) -> None:
        self._seed = seed
        self._rows = tuple(rows)
        self.load = load
        self._heard = heard
        # A learner replaces thousands of draws, each by its name: these are looked up rather than tried.
        self._exact: dict[str, list[int]] = {}
        self._patterns: list[tuple[int, NamePattern]] = []
        for place, row in enumerate(self._rows):
            if is_exact(row.name):
                self._exact.setdefault(row.name, []).append(place)
            else:
                self._patterns.append((place, NamePattern(row.name)))
        self._functions: dict[int, DrawFunction] = {}
        self._keys: dict[tuple[int, tuple[str, ...]], int] = {}
        self._matched = bytearray(len(self._rows))

    @property
    def matched(self) -> list[int]:
        """The places of the rows that have matched a draw."""
        return [place for place, matched in enumerate(self._matched) if matched]

    def note_matched(self, places: Sequence[int]) -> None:
        """Take in which rows matched draws that were made before: by one that is restored from a snapshot."""
        for place in places:
            self._matched[place] = 1

    def draw(self, source: DrawSource, at: int) -> Any:
        """Return the value of a draw that is made at this time."""
        parts = [part_text(part) for part in source.name]
        name = "/".join(parts)
        natural = value = source.distribution.draw(self._bits(self._seed, source))
        last = self._last_match(name, parts)
        if last >= 0:
            try:
                value = self._replaced(last, name, source, natural)
            except WorldlineError as error:
                row = self._rows[last].name
                which = f"draw {name}" if row == name else f"draw {name}, by the row {row}"
                raise ConfigurationError(f"{which}: {error.problem}", at=at, advice=error.advice) from error
        if self._heard is not None:
            self._heard(Drawn(name, source.distribution, at, value, natural))
        return value

    def _last_match(self, name: str, parts: list[str]) -> int:
        """Return the place of the last row that matches a draw, or -1."""
        last = -1
        for place in self._exact.get(name, ()):
            self._matched[place] = 1
            last = place
        for place, pattern in self._patterns:
            if pattern.matches(parts):
                self._matched[place] = 1
                last = max(last, place)
        return last

    def _replaced(self, place: int, name: str, source: DrawSource, natural: DrawnValue) -> DrawnValue:
        row, distribution = self._rows[place], source.distribution
        if row.function is not None:
            return checked_value(distribution, self._called(place, name, distribution, natural))
        if row.value is not None:
            return checked_value(distribution, row.value)
        bits = self._bits(self._seed if row.seed is None else row.seed, source)
        return distribution.draw(bits ^ BITS_MAX if row.antithetic else bits)

    def _called(self, place: int, name: str, distribution: Distribution, natural: DrawnValue) -> object:
        function = self._functions.get(place)
        if function is None:
            named = self._rows[place].function
            assert named is not None
            if self.load is None:
                raise ConfigurationError(f"the function {named} can't be loaded here")
            function = self._functions[place] = self.load(named)
        try:
            return function(name, distribution, natural)
        except WorldlineError:
            raise
        except Exception as error:
            raised = shortened(f"{type(error).__name__}: {error}")
            raise ConfigurationError(f"its function raised {raised}") from error

    def _bits(self, seed: int, source: DrawSource) -> int:
        key = self._keys.get((seed, source.key))
        if key is None:
            key = self._keys[seed, source.key] = key_of(seed, *source.key)
        return draw_bits(key, source.sequence, source.number)


class NamedStream(Stream):
    """A participant's stream whose draws go through a table. `time` says when they are made."""

    def __init__(self, table: DrawTable, seed: int, participant: str, *names: str, time: Callable[[], int]) -> None:
        super().__init__(seed, participant, *names)
        self._table = table
        self._time = time
        self._names = (participant, *names)
        # What isn't a stream of the program has two names: `SOMETIMES` and the branch, or `TURN` and nothing.
        self._prefix = (
            (names[0], participant, *filter(None, names[1:]))
            if len(names) == 2
            else (STREAM if names else RANDOM, participant, *names)
        )
        self._source_key = ("stream", participant, *names)

    def random(self) -> float:
        value: float = self._next(_UNIT)
        return value

    def happens(self, chance: float) -> bool:
        value: bool = self._next(Chance(float(chance)))
        return value

    def turn(self, ready: tuple[str, ...]) -> int:
        """Draw which of the callbacks that are ready runs next."""
        value: int = self._next(Turn(ready))
        return value

    def getrandbits(self, k: int, /) -> int:
        if 0 < k <= 64:
            value: int = self._next(RandomBits(k))
            return value
        return super().getrandbits(k)

    def __copy__(self) -> NamedStream:
        copied = NamedStream(self._table, 0, *self._names, time=self._time)
        copied.setstate(self.getstate())
        return copied

    def __deepcopy__(self, _: object) -> NamedStream:
        return copy(self)

    def __reduce__(self) -> Any:
        raise UsageError("a stream can't be pickled while its draws are replaced", advice="pickle what was drawn")

    def _bits64(self) -> int:
        value: int = self._next(RandomBits(64))
        return value

    def _next(self, distribution: Distribution) -> Any:
        number = self._drawn
        self._drawn += 1
        source = DrawSource((*self._prefix, str(number)), distribution, self._source_key, self._drawn)
        return self._table.draw(source, self._time())


# -- The draws of a participant's clock: its offset and drift at the start, and the steps of its walk.
#
# A step is drawn when the clock is first asked about a time that depends on it. That may be before that time, since a
# participant may ask its clock about the future.

_CLOCK_KEYS = {CLOCK_OFFSET: "clock offset", CLOCK_DRIFT: "clock drift", CLOCK_WALK: "clock"}


def clock_distributions(described: LocalClock) -> dict[str, Distribution]:
    """Return what is drawn of a clock, by purpose."""
    found: dict[str, Distribution] = {}
    if not isinstance(described.offset, int):
        found[CLOCK_OFFSET] = ClockOffset(described.offset)
    if not isinstance(described.drift, int):
        found[CLOCK_DRIFT] = ClockRate(described.drift)
    if described.wander is not None:
        found[CLOCK_WALK] = ClockRate(Uniform(-described.wander.step, described.wander.step))
    return found


def clock_in_run(
    described: LocalClock, seed: int, participant: str, table: DrawTable | None, time: Callable[[], int]
) -> RunningClock:
    """Return a participant's clock in a run; `table` replaces its draws, and `time` says when they are made."""
    distributions = clock_distributions(described)
    drawing = DrawTable(seed) if table is None else table

    def draw(purpose: str, number: int, sequence: int) -> int:
        name = (purpose, participant, str(number))
        source = DrawSource(name, distributions[purpose], (_CLOCK_KEYS[purpose], participant), sequence)
        return int(drawing.draw(source, time()))

    def step(segment: int) -> int:
        return draw(CLOCK_WALK, segment - 1, segment)  # There is none into the first segment.

    if CLOCK_OFFSET in distributions:
        described = replace(described, offset=draw(CLOCK_OFFSET, 0, 0))
    if CLOCK_DRIFT in distributions:
        described = replace(described, drift=draw(CLOCK_DRIFT, 0, 0))
    return RunningClock(described, seed, participant, None if table is None else step)
