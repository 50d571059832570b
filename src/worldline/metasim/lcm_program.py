"""An LCM program as a process: started with the LCM to use in its environment, ended together with its bridge."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from worldline.launch.processes import describe_exit
from worldline.launch.startable import check_command
from worldline.lifeline import Lifeline
from worldline.model.errors import UsageError, shortened

_GRACE_S = 2.0


class LcmProgram:
    """A process that runs a command, with LCM_DEFAULT_URL set."""

    def __init__(self, command: Sequence[str], url: str) -> None:
        self._name = shortened(shlex.join(command))
        check_command(command[0], Path.cwd(), os.environ.get("PATH"))
        self._lifeline = Lifeline()
        try:
            self._process = subprocess.Popen(
                self._lifeline.tied(command),
                env={**os.environ, "LCM_DEFAULT_URL": url},
                stdin=subprocess.DEVNULL,
                pass_fds=[self._lifeline.end],
            )
        except (OSError, ValueError) as error:
            self._lifeline.let_go()
            raise UsageError(f"{self._name} can't be started: {error}") from error
        finally:
            self._lifeline.hand_over()

    def has_ended(self) -> str | None:
        """Say how it has ended, if it has."""
        code = self._process.poll()
        return None if code is None else f"{self._name} {describe_exit(code)}"

    def end(self) -> None:
        """Ask it to end, and don't wait for long."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lifeline.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
