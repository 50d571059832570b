"""Chooses the build of the core: compiled where there is one, unless WORLDLINE_UNCOMPILED is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldline.kernel.build import compiled

if TYPE_CHECKING:
    from worldline.spacetime.core import (
        Body,
        ClosedError,
        Core,
        Lambda,
        Lane,
        Outlet,
        current_core,
        make_current,
        new_lambda,
    )
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

    build = ""
else:
    _core_names = (
        "Body",
        "ClosedError",
        "Core",
        "Lambda",
        "Lane",
        "Outlet",
        "current_core",
        "make_current",
        "new_lambda",
    )
    _geometry_names = (
        "COORDINATE_MAX",
        "LambdaField",
        "Trajectory",
        "Vector",
        "as_vector",
        "as_velocity",
        "from_speeds",
        "product",
    )
    try:
        _core = compiled("worldline.spacetime._core", _core_names)
        _geometry = compiled("worldline.spacetime._geometry", _geometry_names)
        build = "compiled"
    except ImportError as reason:
        from worldline.spacetime import core as _core
        from worldline.spacetime import geometry as _geometry

        build = f"plain Python ({reason})"
    globals().update({name: getattr(_core, name) for name in _core_names})
    globals().update({name: getattr(_geometry, name) for name in _geometry_names})

__all__ = [
    "COORDINATE_MAX",
    "Body",
    "ClosedError",
    "Core",
    "Lambda",
    "LambdaField",
    "Lane",
    "Outlet",
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
