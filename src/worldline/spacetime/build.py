"""Chooses the build of the core: compiled where there is one, unless WORLDLINE_UNCOMPILED is set.

All of its modules are of one build: a compiled one knows the C types of the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from worldline.kernel.build import compiled

if TYPE_CHECKING:
    from worldline.spacetime.core import Core
    from worldline.spacetime.geometry import (
        COORDINATE_MAX,
        LambdaField,
        Trajectory,
        Vector,
        as_vector,
        as_velocity,
        from_speeds,
        product,
    )
    from worldline.spacetime.lanes import Body, Lambda, Lane, new_lambda
    from worldline.spacetime.stepping import current_core, make_current
    from worldline.spacetime.traffic import ChannelEnd, ClosedError

    build = ""
else:
    _NAMES = {
        "geometry": (
            *("COORDINATE_MAX", "LambdaField", "Trajectory", "Vector"),
            *("as_vector", "as_velocity", "from_speeds", "product"),
        ),
        "lanes": ("Body", "Lambda", "Lane", "new_lambda"),
        "stepping": ("current_core", "make_current"),
        "traffic": ("ClosedError", "ChannelEnd"),
        "core": ("Core",),
    }
    try:
        _modules = {name: compiled(f"worldline.spacetime._{name}", needed) for name, needed in _NAMES.items()}
        build = "compiled"
    except ImportError as reason:
        _modules = {name: import_module(f"worldline.spacetime.{name}") for name in _NAMES}
        build = f"plain Python ({reason})"
    for _name, _needed in _NAMES.items():
        globals().update({each: getattr(_modules[_name], each) for each in _needed})

__all__ = [
    "COORDINATE_MAX",
    "Body",
    "ChannelEnd",
    "ClosedError",
    "Core",
    "Lambda",
    "LambdaField",
    "Lane",
    "Trajectory",
    "Vector",
    "as_vector",
    "as_velocity",
    "build",
    "current_core",
    "from_speeds",
    "make_current",
    "new_lambda",
    "product",
]
