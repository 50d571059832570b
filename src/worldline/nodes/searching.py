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

from worldline.model.errors import LossError, Stuck, UsageError
from worldline.nodes.deadline import PATIENCE_S, deadline
from worldline.nodes.loading import load_file
from worldline.nodes.trial import Outcome, Trial

_BLOCK_MAX = 32
_BLOCKS_PER_WORKER = 8  # So many at least, lest one worker has nothing left to do for long.
_AHEAD = 3  # Blocks handed out per worker before the first has come back.


class Report(Struct, frozen=True, kw_only=True):
    """What a search has found. `digest` is over the histories of all seeds that were tried."""

    tried: int
    events: int
    faults: int
    failure: Outcome | None
    digest: str


class _Block(Struct):
    """What came of some seeds: those before the first failure, and it."""

    seeds: int
    events: int
    faults: int
    digests: bytes
    failure: Outcome | None


def search(
    trial: Trial,
    seeds: Sequence[int],
    *,
    workers: int = 1,
    file: Path | None = None,
    patience_s: float | None = PATIENCE_S,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Try seeds in their order, until one fails; `file` is where the algorithm was loaded from, if it was.

    A seed that takes more than `patience_s` seconds of real time counts as a failure: it will hardly end at all.
    """
    if workers < 1:
        raise UsageError(f"{workers} workers can't do anything", advice="use at least 1")
    size = max(1, min(_BLOCK_MAX, len(seeds) // (workers * _BLOCKS_PER_WORKER)))
    blocks = (seeds[start : start + size] for start in range(0, len(seeds), size))
    tried = events = faults = 0
    hashed = blake2b(digest_size=16)
    failure: Outcome | None = None
    results = _here(trial, blocks, patience_s) if workers == 1 else _apart(trial, blocks, workers, file, patience_s)
    for block in results:
        tried += block.seeds
        events += block.events
        faults += block.faults
        hashed.update(block.digests)
        if progress is not None:
            progress(tried)
        if block.failure is not None:
            failure = block.failure
            break
    return Report(tried=tried, events=events, faults=faults, failure=failure, digest=hashed.hexdigest())


def _try_block(trial: Trial, seeds: Sequence[int], patience_s: float | None) -> _Block:
    block = _Block(0, 0, 0, b"", None)
    for seed in seeds:
        outcome = _tried(structs.replace(trial, seed=seed), patience_s)
        block.seeds += 1
        block.events += outcome.events
        block.faults += outcome.faults
        block.digests += bytes.fromhex(outcome.digest)
        if outcome.failure is not None:
            block.failure = outcome
            break
    return block


def _tried(trial: Trial, patience_s: float | None) -> Outcome:
    try:
        with deadline(patience_s):
            return trial.run()
    except Stuck as stuck:  # It took too long already to set it up.
        return Outcome(seed=trial.seed, failure=stuck, now=0, events=0, faults=0, digest="")


def _here(trial: Trial, blocks: Iterator[Sequence[int]], patience_s: float | None) -> Iterator[_Block]:
    for block in blocks:
        yield _try_block(trial, block, patience_s)


# -- In other processes

_given: tuple[Trial, float | None]


def _begin(file: Path | None, packed: bytes, patience_s: float | None) -> None:
    """Make a worker ready: it loads the algorithm itself if it is a file's, and is given the rest."""
    global _given
    facts = pickle.loads(packed)
    if file is not None:
        facts["algorithm"] = load_file(file)
    _given = Trial(**facts), patience_s


def _try_there(seeds: Sequence[int]) -> _Block:
    trial, patience_s = _given
    return _try_block(trial, seeds, patience_s)


def _apart(
    trial: Trial,
    blocks: Iterator[Sequence[int]],
    workers: int,
    file: Path | None,
    patience_s: float | None,
) -> Iterator[_Block]:
    fields = [name for name in trial.__struct_fields__ if file is None or name != "algorithm"]
    try:
        packed = pickle.dumps({name: getattr(trial, name) for name in fields})
    except Exception as error:  # Whatever the algorithm's own objects raise.
        raise UsageError(
            f"the algorithm can't be sent to other processes: {error}", advice="put it into a file of its own"
        ) from error
    context = multiprocessing.get_context(
        "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else None
    )
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__])  # So that the imports are paid for once.
    pool = ProcessPoolExecutor(workers, context, _begin, (file, packed, patience_s))
    waiting: deque[Future[_Block]] = deque()
    is_over = False
    try:
        for block in blocks:
            waiting.append(pool.submit(_try_there, block))
            if len(waiting) >= workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        is_over = True
    except BrokenProcessPool as error:
        raise LossError("a process that tried seeds has died", advice="was it killed, or out of memory?") from error
    finally:
        if not is_over:  # Nobody waits for seeds that don't matter any more. Pools can do that from Python 3.14 on.
            for process in list((pool._processes or {}).values()):
                process.terminate()
        pool.shutdown(cancel_futures=True)
