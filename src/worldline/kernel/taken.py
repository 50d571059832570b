"""Names that every entity, or every agent, has: says so when its author gives them to something else, by accident.

What a class hides is found when it is made. A method that is hidden by an object's own attribute isn't looked for until
something has gone wrong: it would cost time at each birth, or whenever an attribute is set.
"""

from __future__ import annotations

from collections.abc import Iterable

from worldline.model.errors import UsageError

PROPERTIES = ("has_ended", "name", "now", "random", "sender", "sent_at")
METHODS = ("cancel", "create", "end", "interrupt", "process", "record", "schedule", "send", "stream")
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
