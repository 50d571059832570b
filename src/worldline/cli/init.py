"""`worldline init`: write a small model to start from."""

from __future__ import annotations

import shlex
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from worldline.cli.console import PlainConsole
from worldline.cli.options import takes
from worldline.model import UsageError

TEMPLATES = {
    "federation": ("federation.toml", "federation.py"),
    "kernel": ("kernel.py",),
    "simpy": ("bank.py",),
    "nodes": ("nodes.py",),
    "spacetime": ("spacetime.py",),
    "world": ("world.sdf",),
    "metasim": ("metasim.toml", "metasim.py"),
    "drake": ("tanks.toml", "tanks.py"),
    "machines": ("machines.toml", "server.py", "client.py"),
}
"""The files of each layer, in the folder `templates`; the first is what is run."""

_NEEDED = {"world": ("mujoco", "mujoco"), "drake": ("pydrake", "drake")}
"""The module without which a layer's template doesn't run, and the extra that has it."""


class Layer(Struct, frozen=True, kw_only=True):
    """Which of them is wanted: at most one, and otherwise a federation."""

    kernel: bool = False
    simpy: bool = False
    nodes: bool = False
    spacetime: bool = False
    world: bool = False
    metasim: bool = False
    drake: bool = False
    machines: bool = False


FEDERATION = Layer()


@takes(
    """
    directory: FOLDER  Where to write it; created if missing.
    --kernel  Entities and processes in one program: a shop and its queue.
    --simpy  A SimPy model: a bank whose customers lose patience.
    --nodes  A distributed algorithm, with what must hold.
    --spacetime  Agents that call each other at the speed of light.
    --world  A world in SDF: a box falls onto a ball.
    --metasim  Two simulators in plain Python: a room and its thermostat.
    --drake  Two Drake diagrams in two processes: two tanks.
    --machines  Programs as they are: an asyncio server that crashes, and its client.
    """
)
def init(directory: Path = Path(), layer: Layer = FEDERATION) -> None:
    """Write a small model to start from, of any layer; it runs at once.

    Without a layer, it is a federation: federation.toml and federation.py.
    """
    wanted = [name for name, is_wanted in asdict(layer).items() if is_wanted]
    if len(wanted) > 1:
        raise UsageError(f"one layer at a time, not {' and '.join(f'--{name}' for name in wanted)}")
    chosen = wanted[0] if wanted else "federation"
    names = TEMPLATES[chosen]
    templates = files("worldline.cli") / "templates"
    write_files(directory, {name: (templates / name).read_text(encoding="utf-8") for name in names})
    console = PlainConsole()
    console.print(f"wrote {', '.join(str(directory / name) for name in names)}")
    module, extra = _NEEDED.get(chosen, ("", ""))
    if module and find_spec(module) is None:
        from worldline.extras import installing

        console.print(f"first install what it needs: {installing(extra)}")
    console.print("run it:")
    end = " --until 2s" if chosen == "world" else ""
    console.print(f"  worldline run {shlex.quote(str(directory / names[0]))}{end}")
    if not wanted and directory.name in asdict(layer):
        console.print(f"this is a federation; for the layer of that name: worldline init FOLDER --{directory.name}")


def write_files(directory: Path, texts: dict[str, str]) -> None:
    """Write new files into a directory, all or none; what is there already is never overwritten."""
    made: list[Path] = []
    try:
        _check_free([directory / name for name in texts])
        for folder in reversed([directory, *directory.parents]):
            if not folder.is_dir():
                folder.mkdir()
                made.append(folder)
        for name, text in texts.items():
            # "x": a file that has appeared since we looked isn't ours to overwrite, or to take away again.
            with (directory / name).open("x", encoding="utf-8") as file:
                made.append(directory / name)
                file.write(text)
    except BaseException as error:
        _take_away(made)
        if isinstance(error, OSError):
            problem = f"{error.filename or directory} can't be written: {error.strerror}"
            raise UsageError(problem, advice="nothing was written") from error
        raise


def _check_free(paths: list[Path]) -> None:
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        verb = "is there" if len(there) == 1 else "are there"
        raise UsageError(f"{' and '.join(there)} {verb} already", advice="nothing was written; name another directory")


def _take_away(made: list[Path]) -> None:
    for path in reversed(made):
        if not path.is_dir():
            path.unlink()
        elif not any(path.iterdir()):  # Otherwise another program has put something there.
            path.rmdir()
