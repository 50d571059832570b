"""How to install an extra, one of the sets of packages that only some features need."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def installing(extra: str) -> str:
    """Say how to get an extra. What runs from a clone stays what it is: pip would compile it, and install a copy."""
    if (_PACKAGE.parents[1] / "Makefile").is_file():
        return f"make extras WITH={extra} in the clone of Worldline"
    return f"pip install 'worldline[{extra}]'"
