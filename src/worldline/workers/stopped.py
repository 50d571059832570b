"""Says who holds a run up because somebody has stopped it: such a process neither goes on nor ends, and may yet do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from worldline.workers.forking import WorkerProcess

STOPPED_EVERY_S = 1.0
"""How often somebody looks whether workers are stopped."""


class StoppedWorkers:
    """Looks at workers from time to time, and says on stderr which of them are stopped, once for each time.

    A worker isn't ended for it: whoever has stopped it may let it go on. `describe(number)` says which one it is.
    """

    def __init__(self, describe: Callable[[int], str]) -> None:
        self._describe = describe
        self._looked = time.monotonic()
        self._looks: list[int] = []  # How often in a row each was found stopped.

    def look(self, processes: Sequence[WorkerProcess]) -> None:
        clock = time.monotonic()
        if clock - self._looked < STOPPED_EVERY_S:
            return
        self._looked = clock
        self._looks += [0] * (len(processes) - len(self._looks))
        for number, process in enumerate(processes):
            self._looks[number] = self._looks[number] + 1 if process.is_stopped() else 0
            if self._looks[number] == 2:  # Not the first time: all may have been stopped, and this one goes on last.
                print(
                    f"worldline: {self._describe(number)}, is stopped, and the run waits for it"
                    f" (kill -CONT {process.pid} lets it go on)",
                    file=sys.stderr,
                    flush=True,
                )
