"""What a twin leaves behind when it says something else than the first copy: who, when, which message, which field."""

from __future__ import annotations

from pathlib import Path

import msgspec

from worldline.history.retelling import RetoldDifference
from worldline.model import NonDeterminism

_FILE = "verdict.json"
_ADVICE = (
    "something besides its messages decides what it does: the order of a set, a clock, unseeded random numbers, id()"
)


class TwinVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference: when, and in words; `message` counts the sender's, and `field` is part of that one."""

    at: int
    text: str
    message: int | None = None
    field: str | None = None

    @classmethod
    def of(cls, error: NonDeterminism) -> TwinVerdict:
        """Return what a rehearsal has found."""
        difference: RetoldDifference = error.facts["difference"]
        found = difference.field
        return cls(
            at=difference.first.at,
            text=f"its twin says something else: {_told(difference)}",
            message=difference.first.number,
            field=None if found is None else found.path,
        )

    def write(self, folder: Path) -> None:
        """Leave it for the launcher, whole or not at all."""
        made = folder / f"{_FILE}.new"
        made.write_bytes(msgspec.json.encode(self))
        made.rename(folder / _FILE)

    @classmethod
    def read(cls, folder: Path) -> TwinVerdict | None:
        """Return what the twin has left, if it has found anything."""
        try:
            return msgspec.json.decode((folder / _FILE).read_bytes(), type=cls)
        except FileNotFoundError:
            return None

    def error(self, name: str) -> NonDeterminism:
        """Return it as an error of whoever wrote the participant."""
        return NonDeterminism(
            self.text, participant=name, at=self.at, advice=_ADVICE, message=self.message, field=self.field
        )


def _told(difference: RetoldDifference) -> str:
    if difference.field is not None:
        return str(difference)
    first, twin = (str(said or "says nothing more") for said in (difference.then, difference.now))
    return f"it {first}, and the twin {twin}"
