"""LCM types: their names, fingerprints and definitions, from the classes that lcm-gen makes.

A recording says of a topic with such messages that its encoding is `lcm`, names the type, and has its definition as the
schema, as it would stand in a .lcm file. To MCAP both are private encodings: tools that don't know them show bytes.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from worldline.model.errors import UsageError, shown

ENCODING = "lcm"
"""What a recording calls the encoding of LCM messages, and of their definitions."""


def is_lcm_type(kind: Any) -> bool:
    """Whether something is a class that lcm-gen has made."""
    return isinstance(kind, type) and all(hasattr(kind, name) for name in ("_get_packed_fingerprint", "__typenames__"))


def type_name(kind: Any) -> str:
    """Return the name of an LCM type with its package, ``drake.lcmt_robot_state``."""
    _check(kind)
    package, _, module = str(kind.__module__).rpartition(".")
    # lcm-gen makes a module for each type, in a package of the package's name; without one, it stands alone.
    path = package if module == kind.__name__ else kind.__module__
    return f"{path}.{kind.__name__}" if path and path != kind.__name__ else str(kind.__name__)


def fingerprint(kind: Any) -> bytes:
    """Return what every message of an LCM type begins with: a hash of its definition."""
    _check(kind)
    return bytes(kind._get_packed_fingerprint())


def definition(kind: Any) -> str:
    """Return the definition of an LCM type, as it could stand in a .lcm file; without its constants and comments.

    The types of its fields follow it, so that its messages can be read by that alone.
    """
    lines: list[str] = []
    last = ""
    for each in _with_parts(kind, {}).values():
        package, _, name = type_name(each).rpartition(".")
        head = [f"package {package};", ""] if package != last else []
        fields = zip(each.__slots__, each.__typenames__, each.__dimensions__, strict=True)
        members = [f"    {type_} {field}{_dimensions(sizes)};" for field, type_, sizes in fields]
        lines += [*([""] if lines else []), *head, f"struct {name}", "{", *members, "}"]
        last = package
    return "\n".join([*lines, ""])


def _with_parts(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Collect a type and those of its fields, by name, as far as the module that lcm-gen made knows them."""
    if type_name(kind) not in found:
        found[type_name(kind)] = kind
        for name in kind.__typenames__:
            part: Any = sys.modules.get(kind.__module__)
            for step in name.split("."):
                part = getattr(part, step, None)
            if isinstance(part, ModuleType):  # Without a package, a type is in a module of its own name.
                part = getattr(part, name, None)
            if is_lcm_type(part):
                _with_parts(part, found)
    return found


def _dimensions(sizes: list[int | str] | None) -> str:
    return "".join(f"[{size}]" for size in sizes or ())


def _check(kind: Any) -> None:
    if not is_lcm_type(kind):
        raise UsageError(f"{shown(kind)} isn't an LCM type", advice="name a class that lcm-gen has made")
