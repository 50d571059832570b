"""What a participant declares at joining: the same for a program in this process and for a client far away.

A federation's file may declare it too. Then the file is what counts: a participant that says nothing of a key takes the
file's word for it, and one that says something else is refused (`agreed`), wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypedDict

from msgspec import msgpack
from msgspec.structs import replace

from worldline.federation.environment import FUNCTIONS
from worldline.lock import Join, Ledger, Subscription, ledger_of
from worldline.model import UsageError
from worldline.model.clock import ClockLike, LocalClock, as_clock, clock_as_plain
from worldline.model.draws.distributions import Distribution
from worldline.model.draws.names import BOOT, CLOCK_DRIFT, CLOCK_OFFSET, CLOCK_WALK
from worldline.model.draws.table import DrawFunction, DrawInputs, clock_distributions, functions_in
from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.latency import Fixed, Latency, as_delay, delay_text
from worldline.model.lifecycle import UNEVENTFUL, Lifecycle
from worldline.model.links import Buffer, as_buffer
from worldline.model.message import check_name
from worldline.model.plan import OwnDraws
from worldline.model.reading import as_time
from worldline.model.text import printable
from worldline.model.time import TimeLike, format_time
from worldline.wire.handshake import HELLO_MAX

# Finds the functions that a table of draws names, as ``module:function``.


def with_functions(given: DrawInputs) -> DrawInputs:
    """Return a table of draws with all functions that its rows name: one that isn't there is refused before a run."""
    missing = [name for name in functions_in(given.rows) if name not in given.functions]
    return DrawInputs(given.rows, {**given.functions, **{name: load_draw_function(name) for name in missing}})


def loader_of(named: Collection[str]) -> Callable[[str], DrawFunction]:
    """Return what imports these functions and no others: a server may not choose what runs in a client's process."""

    def load(text: str) -> DrawFunction:
        if text not in named:
            raise UsageError(
                f"the server names the function {shown(text)}, and the caller that started this participant didn't",
                advice=f"if you trust it, set {FUNCTIONS} to {text}",
            )
        return load_draw_function(text)

    return load


def load_draw_function(text: str) -> DrawFunction:
    """Import a function, from wherever this process finds its modules: the folder of the participant comes first."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise UsageError(f"{shown(text)} isn't a function", advice="write module:function")
    try:
        found: Any = import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # Whatever a module raises when it is imported is its author's to know.
        raise UsageError(f"the function {text} can't be imported here: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UsageError(f"{text} is {shown(found)}, and not a function")
    function: DrawFunction = found
    return function


Subscribes = Iterable[str] | Mapping[str, Buffer | str]

Plain = Mapping[str, Any]
"""What was declared as plain data, by keys of a `Declaration`; a key that is missing says nothing."""


class Declared(TypedDict, total=False):
    """The keywords of a `Declaration`."""

    publishes: Iterable[str] | None
    subscribes: Subscribes
    period: TimeLike
    latency_least: TimeLike
    controls: bool
    boot: Latency | TimeLike
    durable: Iterable[str]
    clock: ClockLike | None


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a participant may send, what it listens to, and what it promises once and for all.

    `publishes` of None means any topic; naming the topics lets others go ahead of this participant where it can't reach
    them. `subscribes` is a list of topics, or a mapping from topics to buffers. With a `period` it publishes only at
    multiples of that time, and promises by itself what follows from it. `latency_least` holds for all of its sends.
    `controls` is needed to invite or stop. `boot` is how long it takes to boot, fixed or drawn; meanwhile, and after a
    crash, messages get lost except on `durable` topics, where its buffers say what is kept. With a local `clock`, the
    period is one of its time; it is for the participant alone, and the arbiter knows nothing of it.
    """

    publishes: Iterable[str] | None = None
    subscribes: Subscribes = ()
    period: TimeLike = 0
    latency_least: TimeLike = 0
    controls: bool = False
    boot: Latency | TimeLike = 0
    durable: Iterable[str] = ()
    clock: ClockLike | None = None

    def __post_init__(self) -> None:
        if any(isinstance(topics, str) for topics in (self.publishes, self.subscribes, self.durable)):
            raise ConfigurationError("topics must be a list, not a single text")
        # Kept as they are now: an iterator would be used up by the first of several runs.
        if self.publishes is not None:
            object.__setattr__(self, "publishes", tuple(self.publishes))
        topics = self.subscribes
        buffers = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "unbounded")
        object.__setattr__(self, "subscribes", buffers)
        object.__setattr__(self, "durable", tuple(self.durable))
        if self.clock is not None:
            object.__setattr__(self, "clock", as_clock(self.clock))

    def join(self) -> Join:
        """Return what is said at joining, checked."""
        assert isinstance(self.subscribes, dict)
        topics = None if self.publishes is None else tuple(check_name(topic, "a topic") for topic in self.publishes)
        return Join(
            publishes=topics,
            subscribes=tuple(
                Subscription(check_name(topic, "a topic"), as_buffer(buffer))
                for topic, buffer in self.subscribes.items()
            ),
            latency_least=as_time(self.latency_least, "the least latency of a participant's sends"),
            controls=self.controls,
        )

    def ledger(self, name: str, life: Lifecycle = UNEVENTFUL, *, keep_journal: bool = False) -> Ledger:
        """Return the ledger of a participant of this name that declares this. `life` is what its run's plan says."""
        period = as_time(self.period, "a period")
        life = self.completing(name, life)
        clock = self.local_clock()
        made = ledger_of(name, self.join(), life, period=period, keep_journal=keep_journal, clock=clock)
        made.draws.load = load_draw_function
        return made

    def completing(self, name: str, life: Lifecycle) -> Lifecycle:
        """Return a lifecycle with what is declared of it here; refuse it if it says something else."""
        said = self.lifecycle()
        for key, usual in (("boot", None), ("durable", ())):
            here, there = getattr(said, key), getattr(life, key)
            if usual not in (here, there) and here != there:
                raise ConfigurationError(
                    f"{name} declares another {key} than the federation's file",
                    advice="leave it out where the participant connects, or change the file",
                )
        boot = life.boot if said.boot is None else said.boot
        return replace(life, boot=boot, durable=said.durable or life.durable)

    def lifecycle(self) -> Lifecycle:
        """Return what is declared of a lifecycle, checked."""
        boot = None if self.boot == 0 else as_delay(self.boot, "a boot time")
        return Lifecycle(boot=boot, durable=tuple(check_name(topic, "a topic") for topic in self.durable))

    def local_clock(self) -> LocalClock | None:
        """Return the participant's clock, if it has one of its own."""
        return None if self.clock is None else as_clock(self.clock)

    def own_draws(self, name: str) -> dict[tuple[str, ...], Distribution | None]:
        """Return what a participant of this name draws besides its streams, or doesn't: see `check_own_draws`."""
        boot, clock = self.lifecycle().boot, self.local_clock()
        drawn: dict[str, Distribution | None] = dict.fromkeys((BOOT, CLOCK_OFFSET, CLOCK_DRIFT, CLOCK_WALK))
        drawn.update({} if clock is None else clock_distributions(clock))
        if boot is not None and not isinstance(boot, Fixed):
            drawn[BOOT] = boot
        return {(purpose, name): distribution for purpose, distribution in drawn.items()}

    def completed(self, stated: Join | None, period: int, clock: LocalClock | None) -> Declaration:
        """Return it with what the server's file states of a participant, where it says nothing itself.

        The server compares what is said at joining; it never hears of the rest, so that is compared here.
        """
        if stated is None:
            return self
        own_affair = Declaration(period=period, clock=clock).said()
        said = self.said()
        agreed(own_affair, said)
        return Declaration(**{**said_at_joining(stated), **own_affair, **said})

    def said(self) -> dict[str, Any]:
        """Return as plain data what it really says: whatever isn't as it would be if nothing had been said."""
        return {key: value for key, value in self.as_plain().items() if value != _SILENT[key]}

    def as_plain(self) -> dict[str, Any]:
        """Return it as data from which `Declaration(**data)` makes an equal one, and that JSON can hold."""
        assert isinstance(self.subscribes, dict)
        return {
            "publishes": self.publishes,
            "subscribes": {topic: str(as_buffer(buffer)) for topic, buffer in self.subscribes.items()},
            "period": as_time(self.period, "a period"),
            "latency_least": as_time(self.latency_least, "the least latency of a participant's sends"),
            "controls": self.controls,
            "boot": 0 if self.boot == 0 else delay_text(as_delay(self.boot, "a boot time")),
            "durable": self.durable,
            "clock": None if (clock := self.local_clock()) is None else clock_as_plain(clock),
        }


_SILENT = Declaration().as_plain()


def said_at_joining(join: Join) -> dict[str, Any]:
    """Return what a participant says at joining as plain data. Its period and its clock are its own affair."""
    return Declaration(
        publishes=join.publishes,
        subscribes={subscription.topic: subscription.buffer for subscription in join.subscribes},
        latency_least=join.latency_least,
        controls=join.controls,
    ).said()


def agreed(stated: Plain, said: Plain, who: str = "it") -> Declaration:
    """Return what the file states and the participant says, together; refuse what contradicts the file."""
    for key, value in said.items():
        if key in stated and _comparable(stated[key]) != _comparable(value):
            here, there = _written(key, value), _written(key, stated[key])
            raise ConfigurationError(
                f"{who} declares {key} = {here}, and the federation's file says {there}",
                advice="leave it out where the participant connects, or change the file",
            )
    return Declaration(**{**stated, **said})


def compare_declarations(here: Plain, there: Plain, *, who: str, where: str) -> None:
    """Refuse to start a participant for which the file here declares something else than the server's."""
    for key, silent in _SILENT.items():
        ours, theirs = here.get(key, silent), there.get(key, silent)
        if _comparable(ours) != _comparable(theirs):
            raise ConfigurationError(
                f"{who}: {where} declares {key} = {_written(key, ours)}, and the server's file {_written(key, theirs)}",
                advice="both ends need the same file, and the same --set",
            )


def _comparable(value: object) -> object:
    return sorted(value) if isinstance(value, tuple) else value


def _written(key: str, value: Any) -> str:
    """Write a value as it would stand in the file."""
    if key == "clock":
        return "none" if value is None else str(as_clock(value))
    if value is None:
        return "any topic"
    if key in ("period", "latency_least"):
        return f'"{format_time(value)}"'
    if key == "boot":
        return f'"{value}"' if value else '"0s"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict) and any(buffer != "unbounded" for buffer in value.values()):
        return f"{{{', '.join(f'{topic} = {buffer}' for topic, buffer in value.items())}}}"
    return f"[{', '.join(value)}]"


def check_durable(who: str, durable: Iterable[str], subscribes: Iterable[str]) -> None:
    """Refuse durable topics that aren't declared: other subscriptions end with a crash, and begin after a boot."""
    known = list(subscribes)
    for topic in durable:
        if topic not in known:
            advice = nearest(topic, known) or f"it declares {', '.join(known[:12]) or 'no subscriptions'}"
            raise ConfigurationError(f"{who}: {shown(topic)} is durable, and it doesn't subscribe to it", advice=advice)


def own_draws_of(declared: Mapping[str, Declaration]) -> OwnDraws:
    """Return what participants draw besides their streams."""
    return {start: drawn for name, each in declared.items() for start, drawn in each.own_draws(name).items()}


# What both ends of a connection must state identically before a participant is admitted: the world, versions, settings.
#
# A run is reproducible only if all participants mean the same by it. Where that can't be seen from what is sent, both
# ends state it, as texts by keys, and one that states something else is turned away before it can do any harm.

AGREEMENT_MAX = HELLO_MAX // 2
"""How many bytes an agreement may have: it is part of a hello, with names that take up the rest."""

_VALUE_MAX = 120


def as_agreement(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return what one end states, checked."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"an agreement is texts by keys, not {shown(given)}", advice='for example {"world": "ab12"}'
        )
    for key, value in given.items():
        if not (isinstance(key, str) and key and isinstance(value, str)):
            raise ConfigurationError(
                f"an agreement is texts by keys, not {shown(key)} = {shown(value)}", advice="write numbers as texts"
            )
    stated = dict(given)
    try:
        size = len(msgpack.encode(stated))
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"an agreement holds what isn't text: {shown(error.object)}") from error
    if size > AGREEMENT_MAX:
        raise ConfigurationError(
            f"an agreement of {size:,} bytes is too long",
            advice=f"at most {AGREEMENT_MAX:,} bytes; state a hash of what is long",
        )
    return stated


def difference(stated: Mapping[str, str], claimed: Mapping[str, str]) -> str | None:
    """Say where a participant's claim isn't what the server states, if it isn't."""
    for key, value in stated.items():
        if key not in claimed:
            return f"{_brief(key)} isn't stated, the server's is {_brief(value)}"
        if claimed[key] != value:
            return f"{_brief(key)} is {_brief(claimed[key])}, the server's is {_brief(value)}"
    for key, value in claimed.items():
        if key not in stated:
            return f"{_brief(key)} is {_brief(value)}, and the server states none"
    return None


def _brief(text: str) -> str:
    """Return a text that both texts of a reason have room beside."""
    return printable(text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 3]}...")
