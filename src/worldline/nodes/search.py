"""The search: the same algorithm on many seeds, on several processes, for the first one on which a property fails.

The first is the one with the smallest seed, whichever process was faster: seeds are handed out in blocks, and a failure
counts when all blocks before its own are done. So the report depends on the seeds alone.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct, structs

from worldline.model.errors import LossError, UsageError
from worldline.nodes.deadline import deadline
from worldline.nodes.loading import load_file
from worldline.nodes.trial import Outcome, Trial

_BLOCK_MAX = 32
_BLOCKS_PER_WORKER = 8  # So many at least, lest one worker has nothing left to do for long.
_AHEAD = 3  # Blocks handed out per worker before the first has come back.

PATIENCE_S = 60.0


class Report(Struct, frozen=True, kw_only=True):
    """What a search has found. `digest` is over the histories of all seeds that were tried."""

    tried: int
    events: int
    failure: Outcome | None
    digest: str


class _Block(Struct):
    """What came of some seeds: those before the first failure, and it."""

    seeds: int
    events: int
    digests: bytes
    failure: Outcome | None


def search(
    trial: Trial,
    seeds: Sequence[int],
    *,
    workers: int = 1,
    files: Sequence[Path] = (),
    patience_s: float | None = PATIENCE_S,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Try seeds in their order, until one fails; `files` are those that the algorithm was loaded from.

    A seed that takes more than `patience_s` seconds of real time counts as a failure: it will hardly end at all.
    """
    if workers < 1:
        raise UsageError(f"{workers} workers can't do anything", advice="use at least 1")
    size = max(1, min(_BLOCK_MAX, len(seeds) // (workers * _BLOCKS_PER_WORKER)))
    blocks = [list(seeds[start : start + size]) for start in range(0, len(seeds), size)]
    tried = events = 0
    hashed = blake2b(digest_size=16)
    failure: Outcome | None = None
    results = _here(trial, blocks, patience_s) if workers == 1 else _apart(trial, blocks, workers, files, patience_s)
    for block in results:
        tried += block.seeds
        events += block.events
        hashed.update(block.digests)
        if progress is not None:
            progress(tried)
        if block.failure is not None:
            failure = block.failure
            break
    return Report(tried=tried, events=events, failure=failure, digest=hashed.hexdigest())


def _try_block(trial: Trial, seeds: Sequence[int], patience_s: float | None) -> _Block:
    block = _Block(0, 0, b"", None)
    for seed in seeds:
        with deadline(patience_s):
            outcome = structs.replace(trial, seed=seed).run()
        block.seeds += 1
        block.events += outcome.events
        block.digests += bytes.fromhex(outcome.digest)
        if outcome.failure is not None:
            block.failure = outcome
            break
    return block


def _here(trial: Trial, blocks: Sequence[Sequence[int]], patience_s: float | None) -> Iterator[_Block]:
    for block in blocks:
        yield _try_block(trial, block, patience_s)


# -- In other processes

_given: tuple[Trial, float | None]


def _begin(files: Sequence[Path], packed: bytes, patience_s: float | None) -> None:
    """Make a worker ready: it loads the algorithm itself, and is given the rest."""
    global _given
    for file in files:
        load_file(file)
    _given = pickle.loads(packed), patience_s


def _try_there(seeds: Sequence[int]) -> _Block:
    trial, patience_s = _given
    return _try_block(trial, seeds, patience_s)


def _apart(
    trial: Trial,
    blocks: Sequence[Sequence[int]],
    workers: int,
    files: Sequence[Path],
    patience_s: float | None,
) -> Iterator[_Block]:
    try:
        packed = pickle.dumps(trial)
    except Exception as error:  # Whatever the algorithm's own objects raise.
        raise UsageError(
            f"the algorithm can't be sent to other processes: {error}", advice="put it into a file of its own"
        ) from error
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
    )
    pool = ProcessPoolExecutor(workers, context, _begin, (tuple(files), packed, patience_s))
    waiting: deque[Future[_Block]] = deque()
    rest = iter(blocks)
    try:
        for block in rest:
            waiting.append(pool.submit(_try_there, block))
            if len(waiting) >= workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise LossError("a process that tried seeds has died", advice="was it killed, or out of memory?") from error
    finally:
        pool.shutdown(cancel_futures=True)
