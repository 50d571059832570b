"""Patterns of channel names: regular expressions, matched in a time that is bounded whatever they are. Pure.

LCM's subscriptions are regular expressions from strangers. Python's own matcher goes back over its decisions, so that
``(a|a)*b`` takes years, and it lets no other thread run meanwhile. This one follows all alternatives at once: a name
costs at most its length times the pattern's size. It knows what names of channels need: literals, ``.``, sets such as
``[^a-z]``, ``\\d \\w \\s``, ``* + ? {2,5}``, ``|``, groups, and ``^`` and ``$``, which mean nothing, since a pattern
matches whole names. Whatever else regular expressions have is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from worldline.model.errors import UsageError, shown

SIZE_MAX = 500
_CHOICES_MAX = 16
_DEPTH_MAX = 20

_Accepts = Callable[[str], bool]

_CLASSES: dict[str, _Accepts] = {
    "d": str.isdecimal,
    "w": lambda character: character.isalnum() or character == "_",
    "s": str.isspace,
}
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(eq=False)
class _State:
    """A place in a pattern: with `accepts`, a character leads on to all of `ahead`; without, nothing is needed."""

    accepts: _Accepts | None = None
    ahead: list[_State] = field(default_factory=list)


# A piece of a pattern, from where it is entered to where it is left; and what makes one, anew for each repetition.
_Part = tuple[_State, _State]
_Maker = Callable[[], _Part]


class ChannelPattern:
    """A regular expression of a subscription, which must match a whole name. `size` is about what a character costs."""

    def __init__(self, text: str) -> None:
        self.text = text
        reader = _Reader(text)
        self._first, self._last = reader.read()()
        self.size = reader.size

    def matches(self, name: str) -> bool:
        """Whether it is the pattern of a name."""
        places = _reached([self._first])
        for character in name:
            places = _reached(_after(places, character))
            if not places:
                return False
        return self._last in places


def _after(places: Iterable[_State], character: str) -> list[_State]:
    """Return the places to which a character leads. Repetitions of a piece share what they accept: it is asked once."""
    answers: dict[_Accepts, bool] = {}
    found: list[_State] = []
    for place in places:
        accepts = place.accepts
        if accepts is None:
            continue
        is_accepted = answers.get(accepts)
        if is_accepted is None:
            is_accepted = answers[accepts] = accepts(character)
        if is_accepted:
            found += place.ahead
    return found


def _reached(places: list[_State]) -> dict[_State, None]:
    """Return the places, and those to which one gets from them without a character."""
    found: dict[_State, None] = {}
    while places:
        place = places.pop()
        if place not in found:
            found[place] = None
            if place.accepts is None:
                places += place.ahead
    return found


class _Reader:
    """Reads a pattern, from left to right, and limits what is made of it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self.size = 0

    def read(self) -> _Maker:
        whole = self._alternatives()
        if self._at < len(self._text):
            raise self._refusal("a bracket is closed that was never opened")
        return whole

    # --- The text ---

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise self._refusal("it ends too early")
        self._at += 1
        return character

    def _skip(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        if found:
            self._at += len(text)
        return found

    def _refusal(self, problem: str) -> UsageError:
        return UsageError(f"{shown(self._text)} can't be subscribed to: {problem}")

    # --- What it says ---

    def _alternatives(self) -> _Maker:
        choices = [self._sequence()]
        while self._skip("|"):
            choices.append(self._sequence())
        return choices[0] if len(choices) == 1 else lambda: self._either([choice() for choice in choices])

    def _sequence(self) -> _Maker:
        pieces: list[_Maker] = []
        while self._peek() not in ("", "|", ")"):
            pieces.append(self._repeated())
        return lambda: self._joined([piece() for piece in pieces])

    def _repeated(self) -> _Maker:
        piece = self._atom()
        if not self._repeats():
            return piece
        least, most = self._counts()
        self._skip("?")  # Lazy or not, whole names are the same.
        if self._repeats():  # Only groups nest, since their depth is limited.
            raise self._refusal("it repeats a repetition")
        return self._several(piece, least, most)

    def _repeats(self) -> bool:
        return self._peek() != "" and self._peek() in "*+?{"

    def _counts(self) -> tuple[int, int | None]:
        """Read how often something may come; None is any number of times."""
        character = self._take()
        if character != "{":
            return _COUNTS[character]
        begin = self._at
        while self._take() != "}":
            pass
        least, comma, most = self._text[begin : self._at - 1].partition(",")
        if not _is_number(least or "0") or not _is_number(most or "0") or not (least or most):
            raise self._refusal("braces need numbers")
        low = int(least or 0)
        high = low if not comma else int(most) if most else None
        if high is not None and high < low:
            raise self._refusal("braces need the smaller number first")
        return low, high

    def _atom(self) -> _Maker:
        character = self._take()
        if character == "(":
            return self._group()
        if character in "^$":
            return lambda: self._joined([])
        if character in "*+?{":
            raise self._refusal(f"{character} repeats nothing")
        accepts = self._accepts(character)
        return lambda: self._one(accepts)

    def _group(self) -> _Maker:
        if self._peek() == "?" and not self._skip("?:"):
            raise self._refusal("only plain groups are understood")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._refusal("it is nested too deeply")
        whole = self._alternatives()
        if not self._skip(")"):
            raise self._refusal("a bracket isn't closed")
        self._depth -= 1
        return whole

    def _accepts(self, character: str) -> _Accepts:
        if character == ".":
            return lambda _: True
        if character == "[":
            return self._set()
        return self._escape(self._take()) if character == "\\" else _is(character)

    def _escape(self, character: str) -> _Accepts:
        if character.lower() in _CLASSES:
            accepts = _CLASSES[character.lower()]
            return accepts if character.islower() else lambda other: not accepts(other)
        if character.isascii() and character.isalnum():
            raise self._refusal(f"\\{character} isn't understood")
        return _is(character)

    def _set(self) -> _Accepts:
        negated = self._skip("^")
        choices: list[_Accepts] = []
        while not choices or self._peek() != "]":
            low, accepts = self._member()
            following = self._text[self._at : self._at + 2]
            if following.startswith("-") and following[1:] not in ("", "]"):
                self._take()
                high, _ = self._member()
                if low is None or high is None or high < low:
                    raise self._refusal("a range needs two characters, the lower one first")
                accepts = _between(low, high)
            choices.append(accepts)
            if len(choices) > _CHOICES_MAX:
                raise self._refusal(f"a set has more than {_CHOICES_MAX} parts")
        self._take()
        return lambda character: any(choice(character) for choice in choices) is not negated

    def _member(self) -> tuple[str | None, _Accepts]:
        """Read a part of a set, and say which character it is; None, if it is a class of them."""
        character = self._take()
        if character != "\\":
            return character, _is(character)
        character = self._take()
        return None if character.lower() in _CLASSES else character, self._escape(character)

    # --- What is made of it ---

    def _state(self, accepts: _Accepts | None = None) -> _State:
        self.size += 1
        if self.size > SIZE_MAX:
            raise self._refusal("it is too large")
        return _State(accepts)

    def _one(self, accepts: _Accepts) -> _Part:
        first, last = self._state(accepts), self._state()
        first.ahead.append(last)
        return first, last

    def _joined(self, parts: list[_Part]) -> _Part:
        first = last = self._state()
        for entry, end in parts:
            last.ahead.append(entry)
            last = end
        return first, last

    def _either(self, parts: list[_Part]) -> _Part:
        first, last = self._state(), self._state()
        for entry, end in parts:
            first.ahead.append(entry)
            end.ahead.append(last)
        return first, last

    def _several(self, piece: _Maker, least: int, most: int | None) -> _Maker:
        def made() -> _Part:
            parts = [piece() for _ in range(least)]
            if most is None:
                entry, end = again = piece()
                end.ahead.append(entry)
                parts.append(self._either([again, self._joined([])]))
            else:
                parts += [self._either([piece(), self._joined([])]) for _ in range(least, most)]
            return self._joined(parts)

        return made


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3


def _is(wanted: str) -> _Accepts:
    return lambda character: character == wanted


def _between(low: str, high: str) -> _Accepts:
    return lambda character: low <= character <= high
