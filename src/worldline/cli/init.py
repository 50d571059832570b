"""`worldline init`: write a small federation to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

from worldline.cli.console import PlainConsole
from worldline.cli.options import takes
from worldline.model import UsageError

FEDERATION_TOML = """\
# A room, its heater and a display. Try: worldline run federation.toml

name = "room"
seed = 7                                  # another seed, other noise and other losses
until = "10s"

[link]                                    # what holds for every message, unless a rule below says otherwise
latency = "1ms"

[[links]]                                 # the thermometer's radio is slow and loses one message in ten
topic = "temperature"
latency = "uniform(4ms, 9ms)"
loss = 0.1

[[participants]]
name = "room"
entry = "federation:room"                 # the function `room` in federation.py
publishes = ["temperature"]
subscribes = ["power"]
period = "100ms"                          # it publishes at multiples of this only, so others needn't wait in between

[[participants]]
name = "heater"
entry = "federation:heater"
publishes = ["power"]
subscribes = ["temperature"]

[[participants]]
name = "display"
entry = "federation:display"
publishes = []
subscribes = { temperature = "mailbox", power = "mailbox" }
"""

FEDERATION_PY = '''\
"""The participants of federation.toml: each is a function that lives through the run in its own simulated time."""

from __future__ import annotations

from worldline import Participant


def room(self: Participant) -> None:
    """Cools down, or warms up while the heater is on; its thermometer is noisy."""
    noise = self.stream("noise")
    temperature, heated = 19.0, False
    while not self.ended:
        self.publish("temperature", f"{temperature + noise.gauss(0, 0.1):.2f}".encode())
        for message in self.advance(by="100ms"):
            heated = message.payload == b"on"
        temperature += 0.08 if heated else -0.05


def heater(self: Participant) -> None:
    """Keeps the room at 20 degrees, with some slack so that it doesn't switch all the time."""
    heating = False
    for reading in self.messages():
        wanted = float(reading.payload) < (20.3 if heating else 19.7)
        if wanted != heating:
            heating = wanted
            self.publish("power", b"on" if heating else b"off")


def display(self: Participant) -> None:
    """Shows once a second what has come in last."""
    while not self.ended:
        for message in self.advance(by="1s"):
            print(f"{message.topic}: {message.payload.decode()}")
'''

FILES = {"federation.toml": FEDERATION_TOML, "federation.py": FEDERATION_PY}


@takes("directory: FOLDER  Where to write it; created if missing.")
def init(directory: Path = Path()) -> None:
    """Write a small federation to start from: federation.toml and federation.py."""
    write_files(directory, FILES)
    console = PlainConsole()
    console.print(f"wrote {' and '.join(str(directory / name) for name in FILES)}")
    console.print("run it:")
    console.print(f"  worldline run {shlex.quote(str(directory / 'federation.toml'))}")


def write_files(directory: Path, files: dict[str, str]) -> None:
    """Write new files into a directory, all or none; what is there already is never overwritten."""
    made: list[Path] = []
    try:
        _check_free([directory / name for name in files])
        for folder in reversed([directory, *directory.parents]):
            if not folder.is_dir():
                folder.mkdir()
                made.append(folder)
        for name, text in files.items():
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
