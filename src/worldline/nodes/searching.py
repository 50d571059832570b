"""The search of a distributed algorithm: on many seeds, for the first one on which a property fails."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from worldline.model.errors import UsageError, shown
from worldline.nodes.loading import load_file
from worldline.nodes.trial import Trial
from worldline.search.deadline import SECONDS_MAX
from worldline.search.searching import Recipe, Report, search_seeds


def search(
    trial: Trial,
    seeds: Sequence[int],
    *,
    workers: int = 1,
    file: Path | None = None,
    seconds_max: float | None = SECONDS_MAX,
    keeps_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Try seeds in order until one fails; `file` is the file that the algorithm was loaded from, if any.

    With `keeps_going`, the other seeds are tried too, and failures are counted.

    A seed that takes more than `seconds_max` seconds of real time counts as a failure: it probably never ends.
    """
    if not isinstance(trial, Trial):
        raise UsageError(f"{shown(trial)} isn't a trial", advice="search Trial(algorithm=...)")
    return search_seeds(
        trial,
        seeds,
        workers=workers,
        recipe=lambda: _recipe(trial, file),
        seconds_max=seconds_max,
        keeps_going=keeps_going,
        progress=progress,
    )


def _recipe(trial: Trial, file: Path | None) -> Recipe:
    fields = [name for name in trial.__struct_fields__ if file is None or name != "algorithm"]
    try:
        packed = pickle.dumps({name: getattr(trial, name) for name in fields})
    except Exception as error:  # Whatever the algorithm's own objects raise.
        raise UsageError(
            f"the algorithm can't be sent to other processes: {error}", advice="put it into a file of its own"
        ) from error
    return Recipe(_made, (file, packed, bool(trial.algorithm.properties)))


def _made(file: Path | None, packed: bytes, is_judged: bool) -> Trial:
    """Make the trial in another process, which loads the algorithm itself if it is a file's, and is given the rest.

    There may be no properties: a file's own may have been left out.
    """
    facts = pickle.loads(packed)
    if file is not None:
        loaded = load_file(file)
        facts["algorithm"] = loaded if is_judged else structs.replace(loaded, properties=())
    return Trial(**facts)
