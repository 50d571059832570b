"""Who shares a process with whom, if participants are to share some.

It depends on the file and on the number of processes, and on nothing else. Those that can't tell the difference take
part in it: they are Python entries, in the directory that most are in, without an environment of their own. All others
have a process for themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from worldline.launch.setup import ParticipantSetup


def shares(parts: Mapping[str, ParticipantSetup], workers: int) -> dict[str, list[ParticipantSetup]]:
    """Return who shares which process, by the name of the process, which isn't that of any participant."""
    able = [part for _, part in sorted(parts.items()) if part.entry is not None and not part.environment]
    if not able:
        return {}
    places = Counter(part.directory for part in able)
    here = min(places, key=lambda place: (-places[place], place))
    sharing = [part for part in able if part.directory == here]
    dealt = [sharing[first::workers] for first in range(min(workers, len(sharing)))]
    return {_unused(f"worker {number}", parts): share for number, share in enumerate(dealt, 1)}


def _unused(name: str, parts: Mapping[str, ParticipantSetup]) -> str:
    while name in parts:
        name += "'"
    return name
