"""MPI's library, which not everybody has."""

from __future__ import annotations

from typing import Any

from worldline.model.errors import UsageError


def load_mpi() -> Any:
    """Return the library, ready to be used; it may well be that this process is the only rank."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"MPI can't be used: {error}", advice="pip install '.[mpi]' in the clone of Worldline"
        ) from error
    return MPI
