"""Chooses the build of the core: compiled where there is one, unless WORLDLINE_UNCOMPILED is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldline.kernel.build import check_wanted

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
    try:
        check_wanted()
        from worldline.spacetime import _core as _chosen_core
        from worldline.spacetime import _geometry as _chosen_geometry

        build = "compiled"
    except ImportError as reason:
        from worldline.spacetime import core as _chosen_core
        from worldline.spacetime import geometry as _chosen_geometry

        build = f"plain Python ({reason})"

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

if not TYPE_CHECKING:
    for _chosen in (_chosen_geometry, _chosen_core):
        globals().update({name: getattr(_chosen, name) for name in __all__ if hasattr(_chosen, name)})
