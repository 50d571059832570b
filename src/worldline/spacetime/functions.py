"""Functions on their way to another agent.

A function that can be imported, or the name of a method, travels by reference. Any other, a lambda or one with
variables of its surroundings, takes copies of what it has captured along, so that what its sender does to them
afterwards never shows; its code is sent as it is, which only workers of the same run can take in.
"""

from __future__ import annotations

import marshal
import sys
from importlib import import_module
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from worldline.kernel.packing import PackedCopy, fingerprint, seal
from worldline.kernel.trouble import advice_on
from worldline.model.blame import described, models, own_line
from worldline.model.errors import ModelError, Stuck, UsageError, WorldlineError, shown
from worldline.spacetime.space import time_of_failure

METHODS = ("after", "die", "jump_to", "log", "measure", "reference")
"""Those of every agent."""


def name_of(function: Any) -> str:
    """Return what a function is called; the module isn't part of it, since a script's has another name in workers."""
    if isinstance(function, str):
        return function
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def is_importable(function: Any) -> bool:
    """Whether another process finds the same function by its name."""
    if isinstance(function, str):
        return True
    if not isinstance(function, FunctionType | BuiltinFunctionType | type) and type(function).__name__ not in (
        "method_descriptor",
        "wrapper_descriptor",
        "cython_function_or_method",
    ):
        return False
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in name_of(function).split("."):
        found = getattr(found, part, None)
    return found is function


def sealed(function: Any) -> tuple[Closure, int, int]:
    """Return a function that can't be imported with what it has captured, and hashes of what it is and of that."""
    if isinstance(function, MethodType):
        raise UsageError(
            f"{shown(function)} belongs to an agent here, and would act on it",
            advice=f"send {function.__qualname__}, which is called with the agent at the other end",
        )
    if not isinstance(function, FunctionType):
        raise UsageError(
            f"{shown(function)} can't be sent", advice="send a method's name, a function, or a lambda, and arguments"
        )
    try:
        captured = tuple(_as_value(cell.cell_contents) for cell in function.__closure__ or ())
    except ValueError:
        raise UsageError(f"{name_of(function)} uses a variable that has no value yet") from None
    values = (captured, function.__defaults__, function.__kwdefaults__)
    try:
        content, carried = seal(values)
    except ModelError as error:
        raise ModelError(f"{name_of(function)} captures what can't be sent: {error.problem}") from error
    closure = Closure(function.__code__, function.__module__ or "builtins", name_of(function), carried)
    return closure, _print_of_code(function.__code__), content


_prints: dict[int, tuple[CodeType, int]] = {}  # By the code's identity, which is its own as long as it is kept here.


def _print_of_code(code: CodeType) -> int:
    """Return a hash of what a function says: its names and constants. Its bytes change with every version of Python."""
    known = _prints.get(id(code))
    if known is None:
        known = _prints[id(code)] = code, fingerprint(_text_of(code).encode())
    return known[1]


def _text_of(constant: Any) -> str:
    if isinstance(constant, CodeType):
        return f"{constant.co_qualname} {constant.co_names} {list(map(_text_of, constant.co_consts))}"
    if isinstance(constant, tuple):
        return f"({', '.join(map(_text_of, constant))})"
    return f"{{{sorted(map(repr, constant))}}}" if isinstance(constant, frozenset) else repr(constant)


class Named(NamedTuple):
    """A function or class among the variables of another, by its name."""

    module: str
    name: str

    def found(self) -> Any:
        found: Any = sys.modules.get(self.module) or import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def _as_value(captured: Any) -> Any:
    """Return what stands for a captured variable: functions and classes can't be sent as they are."""
    if isinstance(captured, FunctionType | BuiltinFunctionType | type):
        if not is_importable(captured):
            raise UsageError(
                f"{name_of(captured)}, which is used in a function that is sent, can't be imported",
                advice="define it at the top level of a module",
            )
        return Named(captured.__module__, name_of(captured))
    return captured


class Closure:
    """A function without a place to import it from: its code, the module that it looks names up in, its variables."""

    __slots__ = ("code", "module", "name", "values")

    def __init__(self, code: Any, module: str, name: str, values: Any) -> None:
        self.code = code
        self.module = module
        self.name = name
        self.values = values

    def open(self) -> FunctionType:
        """Return the function, with variables of its own."""
        captured, defaults, keyword_defaults = (
            self.values.open() if isinstance(self.values, PackedCopy) else self.values
        )
        module = sys.modules.get(self.module) or import_module(self.module)
        cells = tuple(CellType(each.found() if isinstance(each, Named) else each) for each in captured)
        made = FunctionType(self.code, vars(module), self.code.co_name, defaults, cells)
        made.__kwdefaults__ = keyword_defaults
        made.__qualname__ = self.name
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _closure, (marshal.dumps(self.code), self.module, self.name, self.values)


def _closure(code: bytes, module: str, name: str, values: Any) -> Closure:
    return Closure(marshal.loads(code), module, name, values)


def look_of(receiver: Any) -> str:
    """Return what an agent, or what it wraps, wants to be shown as in pictures; nothing if it doesn't say."""
    named = getattr(receiver, "shown_as", "")
    said = named() if callable(named) else named
    if not isinstance(said, str):
        raise ModelError(f"it wants to be shown as {shown(said)}", advice='say it in a word or two: "ill"')
    return said


def blamed(error: BaseException, name: str, point: Any, function: Any, agent: Any = None) -> WorldlineError:
    """Return the error that ends a run because an agent raised one."""
    line = own_line(error)
    if isinstance(error, WorldlineError):
        said = models(error)
        if not isinstance(said, Stuck) and said.participant in (None, name):
            said.participant = name
            said.problem = f"{said.problem}, in {name_of(function)} at {point}"
            if line is not None:
                said.advice = f"{line}: {said.advice}" if said.advice else str(line)
        if said.at is None:
            said.at = time_of_failure(point[0])
        said.args = (said.text(),)
        return said
    made = ModelError(
        f"{described(error)}, in {name_of(function)} at {point}",
        participant=name,
        at=time_of_failure(point[0]),
        advice=advice_on(error, agent, METHODS) or (None if line is None else str(line)),
        function=name_of(function),
    )
    made.__cause__ = error
    return made
