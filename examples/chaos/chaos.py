"""Kills the members of the crowd, and their server, while they run; the crowd ends as if nothing had happened.

    python examples/chaos/chaos.py --kills 50 --stops 10

Eight processes over TCP and a server with a journal. At moments that a seed draws, one of them is killed with `kill -9`
or stopped for a while; a killed process is started again. Nothing else is done for them: participants are rehearsed
from the journal, the server resumes from it, and those who have lost their server connect again by themselves. At the
end, the digest and the recording are compared with those of a run in one process that wasn't disturbed.
"""

from __future__ import annotations

import argparse
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from worldline import MS
from worldline.launch.file.setup import Setup, read_setup

HERE = Path(__file__).resolve().parent
SERVER = "(the server)"
PATIENCE_S = 300.0
ONWARD = 10 * MS  # Longer than anything takes to arrive.


@dataclass(order=True)
class Disturbance:
    """What is done to whom, `delay_s` after it has come so far: so it isn't always doing the same then."""

    at: int
    victim: str
    is_kill: bool
    delay_s: float
    stopped_s: float = 0.0


@dataclass
class Life:
    """A process, and how far it says that it has come."""

    name: str
    process: subprocess.Popen[str]
    now: int = -1
    words: list[str] = field(default_factory=list)

    def listen(self, came: threading.Condition) -> None:
        """Take note of what it prints, until it has nothing more to say."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with came:
                if line.strip().isdecimal():
                    self.now = int(line)
                else:
                    self.words.append(line.rstrip())
                came.notify_all()
        self.process.wait()
        with came:
            came.notify_all()


class Chaos:
    """One disturbed run."""

    def __init__(self, setup: Setup, folder: Path, disturbances: list[Disturbance]) -> None:
        self._setup = setup
        self._folder = folder
        self._disturbances = disturbances
        self._lives: dict[str, Life] = {}
        self._came = threading.Condition()
        self._began = time.monotonic()
        self._killed_at: dict[str, int] = {}
        self._address = f"tcp://127.0.0.1:{free_port()}"

    def run(self) -> str:
        """Run the crowd through all disturbances; return its digest."""
        try:
            for name in (SERVER, *self._setup.parts):
                self._start(name)
            for disturbance in self._disturbances:
                self._disturb(disturbance)
            return self._digest()
        finally:
            for life in self._lives.values():
                life.process.kill()
                life.process.wait()

    def _start(self, name: str) -> None:
        if name == SERVER:
            until = f"{self._setup.plan.end}ns"
            command = ["-m", "worldline", "serve", str(self._setup.file), "--listen", self._address, "--until", until]
            command += ["--journal", "crowd.journal", "--record", "crowd.mcap"]
        else:
            program = (self._setup.parts[name].entry or "").partition(":")[2]
            command = [str(HERE / "crowd.py"), program, self._address, name]
        process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self._folder
        )
        self._lives[name] = life = Life(name, process)
        threading.Thread(target=life.listen, args=[self._came], daemon=True).start()

    def _disturb(self, disturbance: Disturbance) -> None:
        victim = disturbance.victim
        # Who is killed twice at the same message ends the run, and rightly so: it must have gone on.
        self._wait_until(victim, max(disturbance.at, self._killed_at.get(victim, 0) + ONWARD))
        time.sleep(disturbance.delay_s)
        life = self._lives[victim]
        if disturbance.is_kill:
            life.process.kill()
            life.process.wait()
            if victim != SERVER:
                self._killed_at[victim] = life.now
            self._start(victim)
            self._say(victim, f"kill -9, process {life.process.pid}; started again, process {self._pid(victim)}")
        else:
            life.process.send_signal(signal.SIGSTOP)
            time.sleep(disturbance.stopped_s)
            life.process.send_signal(signal.SIGCONT)
            self._say(victim, f"stopped for {disturbance.stopped_s * 1000:.0f} ms, process {life.process.pid}")

    def _pid(self, name: str) -> int:
        return self._lives[name].process.pid

    def _wait_until(self, victim: str, at: int) -> None:
        """Wait until the victim has come so far; for the server, until anybody has."""
        with self._came:
            if not self._came.wait_for(lambda: self._reached(victim) >= at or self._failed(), PATIENCE_S):
                raise SystemExit(f"{victim} hasn't come to {at / MS:.1f} ms in {PATIENCE_S:.0f} s")
        if failed := self._failed():
            raise SystemExit("\n".join([f"{failed.name} has failed:", *failed.words]))

    def _reached(self, victim: str) -> int:
        if victim == SERVER:
            return max(life.now for life in self._lives.values())
        return self._lives[victim].now

    def _failed(self) -> Life | None:
        """Return a process that has failed by itself."""
        return next((life for life in self._lives.values() if life.process.returncode not in (None, 0)), None)

    def _digest(self) -> str:
        server = self._lives[SERVER]
        with self._came:
            self._came.wait_for(lambda: server.process.returncode is not None or self._failed() is not None, PATIENCE_S)
        if failed := self._failed():
            raise SystemExit("\n".join([f"{failed.name} has failed:", *failed.words]))
        return server.words[-1].removeprefix("digest ")

    def _say(self, victim: str, what: str) -> None:
        now = max(life.now for life in self._lives.values())
        print(f"{time.monotonic() - self._began:8.2f} s  {now / MS:8.1f} ms  {victim:12}  {what}", flush=True)


def undisturbed(setup: Setup, folder: Path) -> str:
    """Run the crowd in one process; return its digest."""
    command = ["-m", "worldline", "run", str(setup.file), "--executor", "in-process", "--until", f"{setup.plan.end}ns"]
    command += ["--record", "undisturbed.mcap", "--quiet"]
    said = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=folder, check=True).stdout
    return said.splitlines()[-1].removeprefix("digest ")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def drawn(seed: int, kills: int, stops: int, names: list[str], end: int) -> list[Disturbance]:
    """Draw what happens, in order; to no process again soon after it."""
    draws = random.Random(seed)
    moments = sorted(draws.uniform(0.01, 0.8) * end for _ in range(kills + stops))
    kinds = [True] * kills + [False] * stops
    draws.shuffle(kinds)
    found: list[Disturbance] = []
    for at, is_kill in zip(moments, kinds, strict=True):
        lately = [each.victim for each in found if each.at > at - 2 * ONWARD]
        victim = (
            SERVER if draws.random() < 0.2 else draws.choice([name for name in names if name not in lately] or names)
        )
        found.append(Disturbance(int(at), victim, is_kill, draws.uniform(0, 0.03), draws.uniform(0.05, 0.4)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stops", type=int, default=0, help="how many are stopped for a while besides")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and victims")
    parser.add_argument("--until", default="2s", help="simulated time")
    given = parser.parse_args()
    setup = read_setup(HERE / "crowd.toml", changes=[f"until={given.until}"])
    disturbances = drawn(given.seed, given.kills, given.stops, list(setup.parts), setup.plan.end or 0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = undisturbed(setup, folder)
        digest = Chaos(setup, folder, disturbances).run()
        recordings = [(folder / f"{each}.mcap").read_bytes() for each in ("undisturbed", "crowd")]
    of_server = sum(each.victim == SERVER and each.is_kill for each in disturbances)
    elapsed_s = time.monotonic() - began
    print(f"{given.kills} kills, {of_server} of them of the server, and {given.stops} stops in {elapsed_s:.0f} s")
    print(f"undisturbed digest {expected}")
    print(f"disturbed digest   {digest}")
    print(f"the recordings are {'the same' if recordings[0] == recordings[1] else 'different'}")
    if digest != expected or recordings[0] != recordings[1]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
