"""A public LCM beside a run: where whoever has only LCM can look on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from worldline.history.observer import Observer
from worldline.history.telling import SeveralObservers
from worldline.targets.federation import ReadyFederation

LcmTargets = Annotated[
    list[str] | None,
    typer.Option(
        "--lcm",
        metavar="TARGET",
        help="Show all messages on an LCM: udpm://GROUP:PORT, tcpq://HOST:PORT or a log.",
    ),
]
LcmServe = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Be a tcpq:// endpoint for LCM programs that look on; port 0 picks one."),
]


@contextmanager
def shown_on_lcm(
    ready: ReadyFederation,
    observer: Observer | None,
    targets: Sequence[str],
    serve: str | None,
    say: Callable[[str], None],
) -> Iterator[Observer | None]:
    """Have a run shown to LCM programs, if that is wanted; say where, and in the end what they were shown."""
    if not targets and serve is None:
        yield observer
        return
    from worldline.metasim.public import PublicLcm  # Here, since few runs have one.

    public = PublicLcm(targets, serve=serve)
    public.check(*ready.declared_topics())
    with public:
        if public.url is not None:
            say(f"public LCM on {public.url}")
        yield public if observer is None else SeveralObservers((observer, public))
    for line in public.report():
        say(line)
