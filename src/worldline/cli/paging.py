"""`--watch`: whether a run is shown on a page. The page itself is loaded only where it is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from worldline.cli.options import PageOptions
from worldline.targets import Ready
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.watch.live import LiveRun


@contextmanager
def page_of(
    name: str, room: str, seed: int, options: PageOptions, *, is_served: bool = False
) -> Iterator[LiveRun | None]:
    """Show a run on a page, if that is wanted."""
    if not options.watch:
        yield None
        return
    from worldline.cli.view import LivePage  # Here, since few runs have one.

    with LivePage(name, room, seed, options, is_served=is_served) as page:
        yield page


@contextmanager
def page_of_ready(ready: Ready, options: PageOptions) -> Iterator[LiveRun | None]:
    """Show what is ready to run on a page, if that is wanted; under MPI, the one process that speaks does."""
    is_served = isinstance(ready, ReadyFederation) and ready.federation is None
    with page_of(
        ready.name, ready.kind, ready.seed, options if ready.is_main else PageOptions(), is_served=is_served
    ) as page:
        yield page
