"""What the engine refuses, and how a run fails: kept out of the way of what is hot."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType, GeneratorType
from typing import Any, NoReturn

from worldline.model.blame import said_of
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError, shown
from worldline.model.time import TIME_MAX, format_time
from worldline.processes.failures import is_from_outside


def refuse_to_set(what: str) -> None:
    advice = "call your own attribute something else"
    if what == "name":
        advice = f"add(name, entity) or create(entity, name) gives it one; {advice}"
    raise UsageError(f"an entity's {what} can't be set", advice=advice)


def refuse_to_act(entity: Any, engine: Any) -> None:
    if engine is None:
        raise UsageError("the entity isn't part of a simulation yet", advice="add it first, and act in start()")
    if engine.actor is None:
        raise UsageError(f"{entity.name} can't act while nothing happens", advice="use the simulation's own send()")
    if entity.has_ended:
        raise ModelError("it has ended, and can't act any more", participant=entity.name, at=engine.now)
    raise ModelError(
        f"{engine.actor.name} acted for {entity.name}",
        participant=engine.actor.name,
        at=engine.now,
        advice="entities may be on different workers: they affect each other by messages only",
    )


def check_delay(sender: Any, receiver: Any, delay: int) -> None:
    """Refuse a delay that is shorter than the link between the two allows, or longer than time."""
    least = 1 if receiver._wl_place == sender._wl_place else sender._wl_roster.least(sender, receiver)
    if delay < least:
        raise ModelError(
            f"a message to {receiver.name} can't arrive after {format_time(delay)}: "
            f"the link between them takes at least {format_time(least)}",
            advice="send it with a longer delay, or declare a shorter minimum",
            receiver=receiver.name,
        )
    if delay > TIME_MAX:
        refuse_arrival(receiver)


def refuse_arrival(receiver: Any) -> None:
    raise ModelError(
        f"a message to {receiver.name} would arrive after the last time, {format_time(TIME_MAX)}",
        receiver=receiver.name,
    )


def refuse_late_event() -> None:
    raise ModelError(f"an event would happen after the last time, {format_time(TIME_MAX)}")


def refuse_past(time: int) -> None:
    raise ModelError(
        f"an event can't be scheduled for {format_time(time)}, which is past", advice="use a delay of at least 0"
    )


def refuse_burst(times: int) -> None:
    raise Stuck(
        f"it has gone on {times:,} times without a delay, and time doesn't pass",
        advice="does a process yield 0, or a signal that has fired, in a loop?",
    )


def refuse_sharing(what: str, user: str, owner: str) -> NoReturn:
    raise ModelError(
        f"{user} uses {what} that belongs to {owner}",
        advice="entities share nothing: make it an entity of its own, which the others ask by messages, or make those "
        "that share it processes of one entity",
    )


def refuse_wait(yielded: object, is_limited: bool = False) -> NoReturn:
    """Say why a process can't wait for this, or can't by `wait`."""
    advice = 'yield a time such as 5 * MS or "5ms", receive(), a signal or a process'
    if isinstance(yielded, float):
        advice = "times are whole nanoseconds: yield 5 * MS, or round(seconds * SECOND)"
    if is_limited:
        advice = "wait() is for signals, processes, turns and combinations; receive() has a limit of its own"
    raise ModelError(f"a process can't wait for {shown(yielded)}", advice=advice)


def refuse_combination() -> NoReturn:
    """Say what to write instead of a limit inside of a condition."""
    raise ModelError(
        "a limit is a part of its own where several things are combined by | or &",
        advice='write signal | "5s", or receive() | signal | "5s"',
    )


# -- Numbers without a unit
#
# Times are whole nanoseconds, and `yield 5` waits for 5 of them, which hardly an author means. A number that is
# computed may be any, so that only one that is written out is refused. The bytecode tells the two apart: it is looked
# at once for each function, and again only where a function yields such a number, or has another generator yield.

LITERAL_MAX = 1_000_000  # An author who writes more than that means nanoseconds.
_Yields = tuple[CodeType, dict[int, int], bool]
_yields_of: dict[int, _Yields] = {}  # By the id of a code, which is kept for that.


def is_suspect(code: CodeType) -> bool:
    """Whether a process with this code may yield a number that is written out."""
    _, literals, delegates = _yields(code)
    return delegates or bool(literals)


def check_literal(generator: Any, yielded: int) -> None:
    """Refuse a number that is written out where it is yielded."""
    while type(generator.gi_yieldfrom) is GeneratorType:
        generator = generator.gi_yieldfrom
    if generator.gi_yieldfrom is None and _yields(generator.gi_code)[1].get(generator.gi_frame.f_lasti) == yielded:
        raise ModelError(
            f"yield {yielded} would wait for {format_time(yielded)}",
            advice=f'say the unit: yield "{yielded}s", or {yielded} * SECOND, or {yielded} * NS if that is meant',
        )


def _yields(code: CodeType) -> _Yields:
    """Return the numbers that a function yields written out, by place, and whether it has other generators yield."""
    found = _yields_of.get(id(code))
    if found is None:
        import dis

        literals: dict[int, int] = {}
        delegates = False
        before: Any = None
        for each in dis.get_instructions(code):
            delegates |= each.opname == "SEND"
            is_literal = before is not None and before.opname in ("LOAD_CONST", "LOAD_SMALL_INT")
            if each.opname == "YIELD_VALUE" and is_literal:
                number = before.argval
                if type(number) is int and 0 < number < LITERAL_MAX:
                    literals[each.offset] = literals[each.offset + 2] = number  # Which it is depends on the Python.
            before = each
        found = _yields_of[id(code)] = code, literals, delegates
    return found


def check_idle(engine: Any) -> None:
    if engine.actor is not None:
        raise UsageError("the simulation is running already", advice="don't run it from inside a handler")


def check_happened(stop: Any, now: int) -> None:
    """Refuse the end of a run that was to go on until something happens, if that hasn't happened, or has failed."""
    if not stop.fired:
        raise Stuck(
            f"nothing is left to happen, and {stop!r}, until which it runs, hasn't fired",
            at=now,
            advice="does a process wait for what never comes?",
        )
    if stop.error is not None:
        raise ModelError(f"what it runs until has failed: {said_of(stop.error)}", at=now) from stop.error


def fail(engine: Any, error: BaseException, target: Any, what: Any) -> None:
    """End the run because of what was raised while an event was handled."""
    engine.failed = target
    if is_from_outside(error):
        raise error
    cause = error.__cause__ if isinstance(error, WorldlineError) else error
    raise engine.roster.blame(error, target, what) from cause


# -- Names that every entity, or every agent, has, and that its author gives to something else by accident
#
# What a class hides is found when it is made. A method that is hidden by an object's own attribute isn't looked for
# until something has gone wrong: it would cost time at each birth, or whenever an attribute is set.

PROPERTIES = ("has_ended", "name", "now", "random", "sender", "sent_at")
METHODS = ("cancel", "create", "end", "interrupt", "measure", "process", "record", "schedule", "send", "stream")
"""Those of entities."""

_ADVICE = "call it something else"


def check_class(kind: type, base: type, properties: Iterable[str], methods: Iterable[str]) -> None:
    """Refuse a class that hides what every object of its base class has; a method may be replaced by another one."""
    for names, is_method in ((properties, False), (methods, True)):
        for name in names:
            owner = next(each for each in kind.__mro__ if name in vars(each))
            if owner not in base.__mro__ and not (is_method and callable(vars(owner)[name])):
                every = base.__name__.lower()
                raise UsageError(
                    f"{kind.__name__} has an attribute {name} of its own, which hides that of every {every}",
                    advice=_ADVICE,
                )


def advice_on(error: BaseException, thing: object, methods: Iterable[str]) -> str | None:
    """Return what may be behind an error in the code of an entity or agent: an attribute that hides a method."""
    hidden = [name for name in methods if name in getattr(thing, "__dict__", ())]
    if not hidden or not isinstance(error, TypeError | AttributeError):
        return None
    return f"its attribute {hidden[0]} hides the method of that name: {_ADVICE}"
