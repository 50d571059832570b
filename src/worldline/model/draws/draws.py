"""The draws of a run, by name: each with the value that its seed gives, unless a row of a table replaces it.

If several rows match a draw, the last one counts: a table goes from the general to the particular, as names do.

Without rows and without anybody who listens there is no table at all, so that a draw costs what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

from worldline.model.draws.distributions import Distribution, DrawnValue, RandomBits, UnitInterval, checked_value
from worldline.model.draws.names import RANDOM, STREAM, NamePattern, is_exact, part_text
from worldline.model.draws.rows import DrawFunction, DrawRow
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError, shortened
from worldline.model.randomness import BITS_MAX, Stream, draw_bits, key_of

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
        self._prefix = (STREAM if names else RANDOM, participant, *names)
        self._source_key = ("stream", participant, *names)

    def random(self) -> float:
        value: float = self._next(_UNIT)
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
