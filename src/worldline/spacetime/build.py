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
        from worldline.spacetime._core import (
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
        from worldline.spacetime._geometry import (
            COORDINATE_MAX,
            LambdaField,
            Trajectory,
            Vector,
            as_vector,
            as_velocity,
            from_speeds,
            product,
        )

        build = "compiled"
    except ImportError as reason:
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
