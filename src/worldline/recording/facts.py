"""The header and the outcome of a recording, as typed values and as the texts that MCAP metadata can carry.

Pure. Texts stay as they are, so that any MCAP tool shows them readably; everything else is JSON with sorted keys.
"""

from __future__ import annotations

import math
import platform
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Struct

from worldline.model.draws.table import DrawRow
from worldline.model.errors import UsageError, WorldlineError, shortened, shown
from worldline.model.faults import as_faults
from worldline.model.links import Network
from worldline.model.plan import Plan

FORMAT = 1
HEADER_NAME = "worldline"
OUTCOME_NAME = "worldline.outcome"

LOST_TOPIC = "worldline/lost"
LOST_SCHEMA_NAME = "worldline.Lost"
# A user's topic may well have the same name as ours: channels are told apart by this entry of their metadata.
LOST_CHANNEL = {"worldline": "lost"}


class Provenance(Struct, frozen=True, kw_only=True):
    """What was run, and the code that it is made of.

    `target` is what the command was given, without its folder, with the `settings` of its parameters. `code` has the
    hashes of the files by their names, and `libraries` the versions of what they import.
    """

    target: str = ""
    settings: tuple[str, ...] = ()
    code: dict[str, str] = {}
    libraries: dict[str, str] = {}


class Header(Provenance, frozen=True, kw_only=True):
    """What was known before the run began."""

    called: ClassVar[str] = "header"  # In what is said of it.

    format: int = FORMAT
    version: str
    python: str
    platform: str
    byte_order: str
    float_fingerprint: str
    federation: str
    seed: int
    roster: tuple[str, ...]
    guests: tuple[str, ...]
    end: int | None
    network: Network
    draws: tuple[DrawRow, ...] = ()  # The table that replaced some, if there was one.
    faults: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """Return the plan of the run."""
        return Plan(
            roster=self.roster,
            guests=self.guests,
            network=self.network,
            seed=self.seed,
            end=self.end,
            draws=self.draws,
            faults=as_faults(self.faults),
        )


class MemberFacts(Struct, frozen=True, kw_only=True):
    """One participant's part in the run. A run that was broken off may lack its leaving.

    The digest is empty if it is part of another's: then that of the run isn't made of it once more.
    """

    started: int
    left: int | None = None
    digest: str | None = None


class Count(Struct, frozen=True, kw_only=True):
    """How much there was on one topic; `bytes` are those of what was published, once each."""

    published: int = 0
    arrivals: int = 0
    bytes: int = 0


class LossCount(Struct, frozen=True, array_like=True, order=True):
    """How many messages on a topic didn't reach a receiver, or weren't kept by its buffer, for one reason."""

    receiver: str
    topic: str
    reason: str
    count: int


def counted_losses(losses: Mapping[tuple[str, str, str], int]) -> tuple[LossCount, ...]:
    """Return in order how many messages were lost, by receiver, topic and reason."""
    return tuple(sorted(LossCount(*key, count) for key, count in losses.items() if count))


class RunFacts(Struct, frozen=True, kw_only=True):
    """How the run ended. `cause`, `participant` and `at` say why a run was broken off, or which property one that is
    complete doesn't have.
    """

    called: ClassVar[str] = "outcome"

    status: Literal["complete", "broken off"]
    cause: str = ""
    participant: str = ""
    at: int | None = None
    until: int | None = None  # All that was sent before is in the file.
    digest: str = ""
    participants: dict[str, MemberFacts]
    topics: dict[str, Count]
    losses: tuple[LossCount, ...]
    certificate: str = ""


class LostMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a message on the topic of losses."""

    topic: str
    sender: str
    receiver: str
    sequence: int
    reason: str
    copy: int = 0


# Written out by hand: what msgspec generates may change with its version, and the file's bytes with it.
LOST_SCHEMA = (
    b'{"type":"object","properties":{"topic":{"type":"string"},"sender":{"type":"string"},'
    b'"receiver":{"type":"string"},"sequence":{"type":"integer"},"reason":{"type":"string"},'
    b'"copy":{"type":"integer"}},'
    b'"required":["topic","sender","receiver","sequence","reason"]}'
)

_NUMBER_MAX = 2**64
# One that records by hand may know nothing of its provenance; and most runs replace no draws and have no faults.
_OFTEN_EMPTY = (*Provenance.__struct_fields__, "draws", "faults")
_LATER = {"corruption": 0.0, "estop": None}
_Facts = TypeVar("_Facts", Header, RunFacts)


def to_metadata(facts: Header | RunFacts) -> dict[str, str]:
    """Return the texts of a header or an outcome."""
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(facts):
        value: Any = getattr(facts, field.name)
        if not value and field.name in _OFTEN_EMPTY:
            continue
        if isinstance(value, Network):
            # In the order of its fields, as structs are encoded: sorted, it would be another text.
            found[field.name] = msgspec.json.encode(_without_later(msgspec.to_builtins(value))).decode()
        else:
            text = value if field.type is str else msgspec.json.encode(value, order="deterministic").decode()
            found[field.name] = text
    return found


def _without_later(value: Any) -> Any:
    """Leave out what networks didn't always have, where it says nothing: files stay the same, byte for byte."""
    if isinstance(value, dict):
        said = {key: each for key, each in value.items() if key not in _LATER or each != _LATER[key]}
        return {key: _without_later(each) for key, each in said.items()}
    return [_without_later(each) for each in value] if isinstance(value, list | tuple) else value


def from_metadata(kind: type[_Facts], metadata: Mapping[str, str]) -> _Facts:
    """Read a header or an outcome back; entries that this version doesn't know are left out."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        text = metadata.get(field.name)
        if text is None:
            if field.required:
                raise UsageError(f"its {kind.called} doesn't say {field.name}")
            continue
        try:
            values[field.name] = text if field.type is str else _decoded(text, field.type)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            # A ValueError: the text isn't one at all, or Python won't make a number of so many digits.
            raise _unreadable(kind, field.name) from error
    try:
        return msgspec.convert(values, kind)  # Literals and the like are checked here.
    except msgspec.ValidationError as error:
        raise UsageError(f"its {kind.called} isn't what a recorder writes") from error
    except WorldlineError as error:
        raise UsageError(f"its {kind.called} can't be read: {shortened(str(error))}") from error


def _decoded(text: str, kind: Any) -> Any:
    value = msgspec.json.decode(text, type=kind)
    _check_numbers(msgspec.to_builtins(value))
    return value


def _check_numbers(value: Any) -> None:
    """Refuse numbers that no recorder writes: what computes with them needn't be ready for any."""
    if isinstance(value, int) and not -_NUMBER_MAX <= value <= _NUMBER_MAX:
        raise ValueError(f"{shown(value)} is out of range")
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        _check_numbers(each)


def _unreadable(kind: type[Header | RunFacts], field: str) -> UsageError:
    return UsageError(f"its {kind.called} can't be read: {field} isn't what a recorder writes")


# What of the machine and its Python a result may depend on.
#
# Two machines that give different fingerprints compute some floats differently, in the last bit at least. Equal ones
# prove nothing for other arguments, but a difference explains why two digests differ.

_SIZE = 8
# No special ones: simple fractions, ordinary values, large and small ones, all of which any C library accepts.
_ARGUMENTS = (0.1, 0.3, 0.7, 1.1, 2.0 / 3.0, 3.3, 10.7, 123.456, 1e-5, 7.7e5)
_FUNCTIONS: tuple[Callable[[float], float], ...] = (
    *(math.sqrt, math.sin, math.cos, math.tan, math.atan, math.asinh, math.tanh, math.exp, math.expm1),
    *(math.log, math.log1p, math.log2, math.log10, math.erf, math.gamma, math.lgamma),
)


@cache
def float_fingerprint() -> str:
    """Return a hash, in hex, over the results of a fixed list of float operations."""
    results = list(_results())
    return blake2b(struct.pack(f"<{len(results)}d", *results), digest_size=_SIZE).hexdigest()


def _results() -> Iterator[float]:
    for function in _FUNCTIONS:
        for argument in _ARGUMENTS:
            try:
                yield function(argument)
            except OverflowError:  # Such as exp of a large one: that it overflows is a result too.
                yield math.inf
    for left in _ARGUMENTS:
        for right in _ARGUMENTS:
            yield left * right - right  # Another bit if the two are fused into one operation.
            yield left / right
            yield math.atan2(left, right)
            yield math.hypot(left, right)
            yield math.fmod(left, right)
            yield math.pow(left, min(right, 30.0))
    yield sum([0.1] * 10)  # Compensated since Python 3.12, plain before.
    yield math.fsum(_ARGUMENTS)
    total = 0.0
    for argument in _ARGUMENTS:
        total += argument
    yield total


def python_name() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def platform_name() -> str:
    """Return system, processor and C library, which has the math functions; not the kernel, which hasn't."""
    return " ".join(part for part in (platform.system(), platform.machine(), *platform.libc_ver()) if part)
