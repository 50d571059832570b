"""Chooses the build of the core: compiled where there is one, unless WORLDLINE_UNCOMPILED is set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldline.kernel.build import check_wanted

if TYPE_CHECKING:
    from worldline.spacetime.core import (
        ATTACH,
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
            LambdaField,
            Trajectory,
            Vector,
            as_vector,
            as_velocity,
            from_speeds,
            product,
        )

        build = f"plain Python ({reason})"
