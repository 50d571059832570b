"""The twins of a run, as its launcher sees them: what they are started with, and what they have found."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from worldline.federation.environment import LaunchEnvironment
from worldline.launch.script_files import end_script
from worldline.launch.setup import ParticipantSetup
from worldline.launch.starting import OUTPUT
from worldline.launch.twin_verdict import TwinVerdict
from worldline.scratch_folder import ScratchFolder

_HASH_SEED = "PYTHONHASHSEED"
_HASH_SEEDS = 2**32


class RunTwins:
    """The twins of these participants. Each is in a process of its own, with a name that is nobody's."""

    def __init__(self, names: Sequence[str], parts: Mapping[str, ParticipantSetup]) -> None:
        self._parts = {name: parts[name] for name in names}
        self._processes = {name: _unused(f"twin of {name}", parts) for name in names}
        self._folders = {name: ScratchFolder("twin") for name in names}

    def folders(self) -> list[str]:
        """Return what has to be removed whatever happens. Only this user can open them."""
        return [folder.name for folder in self._folders.values()]

    def script_of(self, name: str) -> str | None:
        """Return where the first copy is to write down what it says and hears, if it has a twin."""
        return self._folders[name].name if name in self._folders else None

    def processes(self, federation: str) -> list[tuple[ParticipantSetup, LaunchEnvironment]]:
        """Return what to start: the same program in the same place, under another hash seed.

        The files that it leaves are of no use to anybody.
        """
        return [
            (
                ParticipantSetup(
                    name=self._processes[name],
                    directory=part.directory,
                    entry=part.entry,
                    environment={
                        **part.environment,
                        _HASH_SEED: _another(part.environment.get(_HASH_SEED, os.environ.get(_HASH_SEED, ""))),
                        OUTPUT: self._folders[name].name,
                    },
                ),
                LaunchEnvironment(name=name, federation=federation, twin=self._folders[name].name),
            )
            for name, part in self._parts.items()
        ]

    def process_names(self) -> list[str]:
        return list(self._processes.values())

    def is_twin(self, process: str) -> bool:
        return process in self._processes.values()

    def end_of(self, process: str) -> None:
        """Note that a process has ended: if it was a first copy, its twin learns that nothing more comes."""
        if process in self._folders:
            end_script(Path(self._folders[process].name))

    def verdicts(self) -> dict[str, TwinVerdict]:
        """Return what was found, by participant."""
        found = {name: TwinVerdict.read(Path(folder.name)) for name, folder in self._folders.items()}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def first_of(self, process: str) -> str:
        """Return whose twin a process is."""
        return next(name for name, each in self._processes.items() if each == process)

    def close(self) -> None:
        for folder in self._folders.values():
            folder.cleanup()


def _unused(name: str, parts: Mapping[str, ParticipantSetup]) -> str:
    while name in parts:
        name += "'"
    return name


def _another(seed: str) -> str:
    """Return another hash seed than this one; one that is drawn is another one in any case."""
    return str((int(seed) + 1) % _HASH_SEEDS) if seed.isdecimal() else "1"
