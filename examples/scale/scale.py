"""A federation over many machines: how fast it is with ten, a thousand or ten thousand participants, and why.

Participants step and publish. After `lookahead` steps, a participant sends its server a frame with what it has
published, and waits until all those it hears have sent theirs; the server's answer has their messages. With `groups`,
each group has a relay, a server of its own, which answers the group by itself, and exchanges one frame with the root
after every `far` exchanges of its group.

What is simulated here is the wall clock of such a run: processor time on cores, and the time that frames take between
machines. The costs are those that `benchmarks/scale.py` measures. Every participant and every server has a machine of
its own, unless all share one that has so many `cores`.

    worldline run examples/scale/scale.py --set participants=10000 --set groups=100
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

from worldline.kernel import Entity, KernelOutcome, Simulation, as_executor
from worldline.model import SECOND, US, Network, link, parse_time

ROOT = "root"
LAB = "lab"  # The machine that all share, if they share one.


@dataclass(frozen=True)
class Costs:
    """Processor time of the parts of an exchange."""

    server_in: int = 8 * US  # to read a frame, and to decide which participants may go on
    server_out: int = 8 * US  # to write an answer
    server_message: int = 3300  # to pass on a message to one receiver
    client_exchange: int = 17 * US
    client_step: int = 2 * US
    client_message: int = 9 * US


@dataclass(frozen=True)
class Setup:
    """What is modelled."""

    participants: int
    groups: int  # 0: all exchange with the root
    lookahead: int  # steps of an exchange
    far: int  # exchanges of a group for each one of its relay with the root
    fan: int  # participants that hear a message: the next ones in a ring
    exchanges: int
    compute: int  # a participant's own work in each step, in the mean
    jitter: float  # the share of that work which is random, with an exponential distribution
    wire: int  # between two machines
    costs: Costs = Costs()

    @property
    def size(self) -> int:
        """The participants of a group."""
        return self.participants // self.groups

    def relay_of(self, place: int) -> str:
        return f"relay{place // self.size}" if self.groups else ROOT

    def crossing(self) -> int:
        """How often a step's messages of one group are passed on to another group; all its members publish one."""
        return sum(min(self.groups - 1, (place + self.fan) // self.size) for place in range(self.size))


Sent = tuple[str, str]  # Receiver and sender of a frame.


@dataclass
class Process:
    """One process: what it answers to a frame, piece by piece, with the processor time that each piece takes."""

    name: str
    setup: Setup
    free: int = 0  # From when on it can take the next frame.
    busy: int = 0
    ended: int = 0

    def take(self, machine: Machine, sender: str) -> Iterator[tuple[int, str | None]]:
        raise NotImplementedError


@dataclass
class Participant(Process):
    place: int = 0
    left: int = 0

    def take(self, machine: Machine, sender: str) -> Iterator[tuple[int, str | None]]:
        """Go on to the end of the lookahead, and send a frame."""
        setup, costs = self.setup, self.setup.costs
        steps = setup.lookahead
        if self.left == 0:
            yield costs.client_exchange, None
            return
        self.left -= 1
        work = costs.client_exchange + steps * (costs.client_step + setup.fan * costs.client_message)
        if setup.compute:
            random = round(setup.compute * setup.jitter)
            draws = machine.stream(self.name)
            work += steps * (setup.compute - random)
            work += sum(draws.exponential(random) for _ in range(steps)) if random else 0
        yield work, setup.relay_of(self.place)


@dataclass
class Server(Process):
    """The root without groups: it answers a participant when all those that it hears have sent their frames."""

    heard: list[int] = field(default_factory=list)  # How many frames each has sent.
    missing: dict[tuple[int, int], int] = field(default_factory=dict)  # By participant and exchange: frames to come.

    def take(self, machine: Machine, sender: str) -> Iterator[tuple[int, str | None]]:
        setup, costs = self.setup, self.setup.costs
        yield costs.server_in, None
        place = int(sender)
        self.heard[place] += 1
        exchange = self.heard[place]
        for way in range(setup.fan + 1):  # Itself, and those that hear it.
            receiver = (place + way) % setup.participants
            left = self.missing.pop((receiver, exchange), setup.fan + 1) - 1
            if left:
                self.missing[receiver, exchange] = left
            else:
                yield costs.server_out + setup.fan * setup.lookahead * costs.server_message, str(receiver)


@dataclass
class Collector(Process):
    """A relay, the root above relays, or one where all hear all: it answers all when all have sent their frames."""

    below: list[str] = field(default_factory=list)
    messages: int = 0  # passed on to each of those below in an exchange
    above: str | None = None
    missing: int = 0
    exchange: int = 0

    def take(self, machine: Machine, sender: str) -> Iterator[tuple[int, str | None]]:
        costs = self.setup.costs
        yield costs.server_in, None
        if sender != self.above:
            self.missing -= 1
            if self.missing:
                return
            self.exchange += 1
            if self.above and self.exchange % self.setup.far == 0:
                yield costs.server_out, self.above
                return
        self.missing = len(self.below)
        for receiver in self.below:
            yield costs.server_out + self.messages * costs.server_message, receiver


class Machine(Entity):
    """Some cores, and the processes on them: a frame is taken when its process and a core are free."""

    def __init__(self, setup: Setup, cores: int, processes: list[Process], *, alone: bool) -> None:
        self.setup = setup
        self.free = [0] * cores
        self.alone = alone
        self.processes = {process.name: process for process in processes}

    def start(self) -> None:
        for process in self.processes.values():
            if isinstance(process, Participant):
                self.on_frame((process.name, ROOT))

    def on_frame(self, frame: Sent) -> None:
        name, sender = frame
        process = self.processes[name]
        core = min(range(len(self.free)), key=self.free.__getitem__)
        at = max(self.now, process.free, self.free[core])
        for cost, receiver in process.take(self, sender):
            at += cost
            process.busy += cost
            if receiver is not None:
                home = LAB if self.alone else receiver
                self.send(home, "frame", (receiver, name), delay=at - self.now + self.setup.wire)
        process.free = process.ended = self.free[core] = at


def model(
    *,
    participants: int = 1000,
    groups: int = 0,
    lookahead: int = 1,
    far: int = 1,
    fan: int = 1,
    exchanges: int = 20,
    compute: str = "0s",
    jitter: float = 0.5,
    wire: str = "50us",
    cores: int = 0,
    seed: int = 0,
) -> Simulation:
    """Set it up."""
    if groups and participants % groups:
        raise ValueError(f"{participants} participants can't be parted into {groups} groups of one size")
    if not 0 < fan < participants:
        raise ValueError(f"a message is heard by 1 to {participants - 1} participants, not {fan}")
    setup = Setup(participants, groups, lookahead, far, fan, exchanges, parse_time(compute), jitter, parse_time(wire))
    return simulation_of(setup, cores, seed)


def simulation_of(setup: Setup, cores: int = 0, seed: int = 0) -> Simulation:
    simulation = Simulation(network=Network(default=link(setup.wire)), seed=seed)
    clients = (Participant(str(n), setup, place=n, left=setup.exchanges) for n in range(setup.participants))
    processes = [*servers(setup), *clients]
    if cores:
        simulation.add(LAB, Machine(setup, cores, processes, alone=True))
    else:
        for process in processes:
            simulation.add(process.name, Machine(setup, 1, [process], alone=False))
    return simulation


def servers(setup: Setup) -> list[Process]:
    n, messages = setup.participants, setup.fan * setup.lookahead
    if not setup.groups and setup.fan == n - 1:
        return [Collector(ROOT, setup, below=[str(place) for place in range(n)], messages=messages, missing=n)]
    if not setup.groups:
        return [Server(ROOT, setup, heard=[0] * n)]
    groups = {f"relay{group}": range(group * setup.size, (group + 1) * setup.size) for group in range(setup.groups)}
    relays = [
        Collector(
            name, setup, below=[str(place) for place in members], messages=messages, above=ROOT, missing=setup.size
        )
        for name, members in groups.items()
    ]
    crossing = setup.crossing() * setup.lookahead * setup.far
    return [Collector(ROOT, setup, below=list(groups), messages=crossing, missing=setup.groups), *relays]


def processes_of(simulation: Simulation) -> list[Process]:
    if LAB in simulation:
        return list(simulation[LAB].processes.values())
    setup = simulation[ROOT].setup
    names = [ROOT, *(f"relay{group}" for group in range(setup.groups)), *map(str, range(setup.participants))]
    return [process for name in names for process in simulation[name].processes.values()]


def steps_per_s(processes: list[Process]) -> float:
    setup = processes[0].setup
    return setup.exchanges * setup.lookahead * SECOND / max(process.ended for process in processes)


def outcome(simulation: Simulation, result: KernelOutcome) -> str:
    processes = processes_of(simulation)
    rate = steps_per_s(processes)
    kinds = {
        "root": [process for process in processes if process.name == ROOT],
        "relays": [process for process in processes if isinstance(process, Collector) and process.above],
        "participants": [process for process in processes if isinstance(process, Participant)],
    }
    busy = ", ".join(
        f"{kind} {sum(process.busy for process in members) / len(members) / result.now:.0%}"
        for kind, members in kinds.items()
        if members
    )
    return f"{rate:,.0f} steps/s each, {rate * len(kinds['participants']):,.0f} in all\nbusy: {busy}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--participants", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=0, help="each with a relay; 0: no relays")
    options = parser.parse_args()
    simulation = model(participants=options.participants, groups=options.groups)
    result = simulation.run(executor=options.executor)
    if options.executor.is_main:
        print(outcome(simulation, result))
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
