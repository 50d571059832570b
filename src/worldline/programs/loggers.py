"""Python's loggers: what a program says of one, its level, handlers and filters, holds on its own computer.

A logger is one object in a process, since libraries keep theirs from when they are loaded. So each computer has its own
state of it. That of the root begins as in a new process, and others' as their libraries have left them.
"""

from __future__ import annotations

import logging
from typing import Any

from worldline.programs.reals import here
from worldline.programs.standins import swaps

State = dict[str, Any]
"""What a computer has of a logger, by attribute."""


def _state(logger: Any, given: State) -> State:
    """Return where what is said of a logger is kept now; `given` is what holds if nothing was said."""
    computer = here.computer
    if computer is None or computer.draws.importing:
        shared: State = vars(logger)
        return shared
    states: dict[Any, State] = computer.workspace.loggers
    if (found := states.get(logger)) is None:
        there = given if logger is logging.root else given | vars(logger)
        found = states[logger] = {name: _copied(there[name]) for name in given}
        found["_cache"] = {}  # What the process's root lets through, the program's may not.
        if logger is logging.root:
            found["level"] = logging.WARNING
    return found


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict) else value


class _Given:
    """An attribute that a logger has from the first time it is asked for it: a program may have made the logger."""

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._given = given

    def __get__(self, logger: Any, owner: Any = None) -> Any:
        if logger is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        return vars(logger).setdefault(self._name, _copied(self._given))


class _Own:
    """An attribute of loggers of which each computer has its own."""

    def __init__(self, name: str, given: State) -> None:
        self._name = name
        self._given = given

    def __get__(self, logger: Any, owner: Any = None) -> Any:
        if logger is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        state = _state(logger, self._given)
        try:
            return state[self._name]
        except KeyError:  # A program has made it, and now something outside of one uses it.
            return state.setdefault(self._name, _copied(self._given[self._name]))

    def __set__(self, logger: Any, value: Any) -> None:
        _state(logger, self._given)[self._name] = value


_GIVEN: dict[Any, State] = {
    logging.Logger: {
        "level": logging.NOTSET,
        "propagate": True,
        "disabled": False,
        "handlers": [],
        "filters": [],
        "_cache": {},
    },
    logging.Manager: {"_disable": 0},
}


def install() -> None:
    """State that computers have their own states of loggers."""
    for owner, given in _GIVEN.items():
        for name, value in given.items():
            setattr(owner, name, _Given(name, value))
            swaps.state(owner, name, _Own(name, given), everywhere=False)


__all__ = ["State", "install"]
