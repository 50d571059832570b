"""The search of a distributed algorithm: on many seeds, for the first one on which a property fails."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import structs

from worldline.model.errors import UsageError, shown
from worldline.nodes.algorithm import NODES, Algorithm
from worldline.nodes.loading import load_file
from worldline.nodes.trial import Trial
from worldline.search.searching import SECONDS_MAX, Recipe, Report, search_seeds

# What shrinking leaves as it was found, by name.

TOPOLOGY = "topology"
PARAMETERS = "parameters"
FAULTS = "faults"
MESSAGES = "messages"
SEED = "seed"

KEPT = {
    NODES: "how many nodes there are",
    TOPOLOGY: "the graph itself",
    PARAMETERS: "all parameters",
    FAULTS: "all faults, those too that the seed drew",
    MESSAGES: "how long every message takes",
    SEED: "what the seed draws",
}
"""What can be kept, besides single parameters."""


def as_kept(names: str | Iterable[str], algorithm: Algorithm) -> frozenset[str]:
    """Take names of what is to be kept, or a text such as ``"nodes,rounds"``."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    parameters = tuple(algorithm.parameters())
    for name in given:
        if name not in KEPT and name not in parameters:
            own = f"; and of {algorithm.name}: {', '.join(parameters)}" if parameters else ""
            raise UsageError(f"{shown(name)} can't be kept", advice=f"there are {', '.join(KEPT)}{own}")
    kept = frozenset(given)
    return kept | frozenset(parameters) if PARAMETERS in kept else kept


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
