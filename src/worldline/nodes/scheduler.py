"""The scheduler: a topology full of nodes, the events between them, and what is done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from worldline.history.guarding import check_observer
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.history.telling import RelayingObserver
from worldline.kernel.model import KernelOutcome
from worldline.kernel.simulation import EXECUTORS, Simulation
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.faults import check_listed
from worldline.model.latency import Fixed, Latency
from worldline.model.links import Link, Network, check_link
from worldline.model.links import link as as_link
from worldline.model.plan import Plan
from worldline.model.reading import as_time
from worldline.model.time import TimeLike, format_time
from worldline.nodes.algorithm import LATENCY
from worldline.nodes.faults import ENDINGS, Fault, as_fault, check_faults, time_of
from worldline.nodes.host import HostSetting, LinkEnd, NodeHost, name_of
from worldline.nodes.node import Executes
from worldline.nodes.shapes import as_topology
from worldline.nodes.topology import Edge, Topology
from worldline.nodes.trace import Deliveries, NodeRecord, text_of
from worldline.processes.executor import Executor, as_executor
from worldline.search.properties import Property, Verdicts
from worldline.search.searching import Expired

# Hears what hosts tell, and hands it on: the records to a trace, and everything to an observer, if there is one.

_COPIES_MAX = 1_000


class HostObserver(RelayingObserver):
    """An observer of hosts.

    A host that drops a message knows it by the kernel's number; that of a copy isn't the message's, and which is which
    was told by its sender.
    """

    def __init__(self, take: Callable[[NodeRecord], None] | None, observer: Observer | None) -> None:
        self._take = take
        self._observer = Observer() if observer is None else observer  # If only a trace is wanted.
        self._copies: dict[tuple[str, int], tuple[int, int, int]] = {}  # → number, which copy, until when.
        self._copies_max = _COPIES_MAX

    def relay(self, how: str, what: tuple[Any, ...]) -> None:
        if self._take is not None and how in ("sent", "noted") and isinstance(what[-1], NodeRecord):
            self._take(what[-1])
        getattr(self._observer, how)(*what)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        if copy:
            self._copies[sender, number + copy] = (number, copy, at)
        else:
            number, copy, _ = self._copies.get((sender, number), (number, 0, at))
        self._observer.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        if (sender, number) in self._copies:
            message, copy, _ = self._copies[sender, number]
            self._copies[sender, number] = (message, copy, until)
            number = message
        self._observer.lasts(sender, number, until)

    def passed(self, time: int) -> None:
        if len(self._copies) > self._copies_max:
            self._copies = {key: copy for key, copy in self._copies.items() if copy[2] >= time}
            self._copies_max = max(_COPIES_MAX, 2 * len(self._copies))
        self._observer.passed(time)


DEFAULT_LINK = as_link(LATENCY)
"""Messages arrive at a random time within a second, in any order; none gets lost."""

EVENTS_MAX = 10_000_000

_LINKS_OF = ("down", "up", "add", "remove")


class SchedulerOptions(TypedDict, total=False):
    """The keywords of a `Scheduler`."""

    seed: int
    link: Link | Latency | TimeLike
    links: Mapping[Edge, Link | Latency | TimeLike]
    on_link_down: Literal["drop", "keep"]
    parameters: Mapping[str, Any]
    faults: Iterable[Fault | str]
    properties: Iterable[Property]
    script: Deliveries | None
    trace: bool | Callable[[NodeRecord], None]


class Scheduler:
    """Runs a distributed algorithm: nodes of one class on a topology.

    `link` describes all links, or `links` those of individual edges. Every node gets `parameters` as keyword arguments.
    Messages under way on a link that goes down are dropped, or kept with ``on_link_down="keep"``. A `script` says how
    long each message takes. With `trace`, what happens is kept in `records`, or passed to a function.
    """

    def __init__(
        self,
        num_nodes: int,
        edges: Iterable[Sequence[int]] | Topology,
        node: Callable[..., Executes],
        **options: Unpack[SchedulerOptions],
    ) -> None:
        for name in options:
            if name not in SchedulerOptions.__annotations__:
                raise TypeError(f"Scheduler() got an unexpected keyword argument {name!r}")
        seed, link, trace = options.get("seed", 0), options.get("link", DEFAULT_LINK), options.get("trace", False)
        on_link_down, script = options.get("on_link_down", "drop"), options.get("script")
        topology = edges if isinstance(edges, Topology) else Topology.of_edges(num_nodes, edges)
        if topology.num_nodes != num_nodes:
            raise ConfigurationError(f"the topology's number of nodes is {topology.num_nodes}, not {shown(num_nodes)}")
        if on_link_down not in ("drop", "keep"):
            raise ConfigurationError(f"{shown(on_link_down)} isn't possible", advice='on_link_down is "drop" or "keep"')
        if not callable(node):
            raise ConfigurationError(f"{shown(node)} isn't a class of nodes", advice="give the class, not an object")
        self.topology = topology
        self.seed = seed
        self.records: list[NodeRecord] = []
        self.last: int | None = None  # Who executed an event last.
        self.is_over = False  # Whether the last run was as long as it should be; only then it is judged as a whole.
        self.is_cut = True  # Whether there may be more at the moment that it is.
        self._verdicts = Verdicts(options.get("properties", ()))
        self.link = over = link if isinstance(link, Link) else as_link(link)
        check_link(over, "the link")
        others = _links_of_edges(options.get("links") or {}, topology)
        least = min((over.latency.minimum, *(each.latency.minimum for each in others.values())))
        # Hosts say themselves how long each message takes. What the kernel knows is the least: workers live on it.
        network = Network(default=Link(latency=Fixed(least if script is None else 1)))
        self._simulation = Simulation(network=network, seed=seed)
        setting = HostSetting(
            num_nodes=topology.num_nodes,
            seed=seed,
            make=node,
            parameters=dict(options.get("parameters") or {}),
            over=over,
            others=others,
            keeps=on_link_down == "keep",
            script=script,
            executed=self._executed if self._verdicts.watches else None,
        )
        self._hosts = {each: NodeHost(setting, each, self._ends(setting, each)) for each in range(num_nodes)}
        for host in self._hosts.values():
            self._simulation.add(name_of(host.id, topology.num_nodes), host)
        self._sent_at: list[int] = []  # When something happens that isn't the nodes' own doing.
        faults = options.get("faults", ())
        check_listed(faults)
        self._faults = sorted(map(as_fault, faults), key=time_of)
        check_faults(self._faults, topology)
        for each in self._faults:
            self._send_out(each)
        self._take = trace if callable(trace) else self.records.append if trace else None
        self._observer: Observer | None = None
        if self._take is not None:
            self._listen()

    @classmethod
    def over(cls, topology: Any, node: Callable[..., Executes], **options: Unpack[SchedulerOptions]) -> Scheduler:
        """Make one over a `Topology`, a text such as ``"ring:8"``, an adjacency list, a networkx graph, or a file."""
        made = as_topology(topology, seed=options.get("seed", 0))
        return cls(made.num_nodes, made, node, **options)

    def __repr__(self) -> str:
        name = self.topology.name or f"{self.num_nodes} nodes"
        return f"Scheduler({name}, seed={self.seed}, now={format_time(self.now)})"

    def _ends(self, setting: HostSetting, node: int) -> list[LinkEnd]:
        return [
            setting.end(node, neighbor, link, self.topology.weight(node, neighbor))
            for link, neighbor in enumerate(self.topology.neighbors[node])
        ]

    # -- Looking

    @property
    def nodes(self) -> list[Any]:
        """The nodes, by id. A node that is down is as it was when it crashed; see `up`."""
        return [host.create_node() for host in self._hosts.values()]

    @property
    def actor(self) -> str | None:
        """Who executed an event last, in words."""
        return None if self.last is None else f"node {self.last}"

    @property
    def acted(self) -> list[Any]:
        """Which nodes have just acted, for checks: one of them, or at the end all."""
        return self.nodes if self.last is None else [self.node(self.last)]

    def node(self, id: int) -> Any:  # noqa: A002
        """One node, by id."""
        host = self._host(id)
        return host.create_node() if host.node is None else host.node

    @property
    def num_nodes(self) -> int:
        return self.topology.num_nodes

    def plan(self, until: TimeLike | None = None) -> Plan:
        """Return what determines a run apart from the nodes themselves, for the header of a recording."""
        return plan_of(self.topology, self.link, self.seed, None if until is None else as_time(until, "the end"))

    @property
    def now(self) -> int:
        return self._simulation.now

    def is_up(self, node: int) -> bool:
        """Whether a node has never crashed, or has recovered."""
        return self._host(node).is_up

    @property
    def up(self) -> list[Any]:
        """The nodes that are up."""
        return [host.create_node() for host in self._hosts.values() if host.is_up]

    @property
    def faults_so_far(self) -> int:
        """How many faults have happened; whatever ends a fault doesn't count."""
        return sum(fault.at <= self.now and fault.verb not in ENDINGS for fault in self._faults)

    @property
    def faults_in_vain(self) -> int:
        """How many of these came when the algorithm was done: no message arrived and no timer rang after them."""
        done = max(host.acted_at for host in self._hosts.values())
        return sum(done < fault.at <= self.now and fault.verb not in ENDINGS for fault in self._faults)

    @property
    def events_of_nodes(self) -> int:
        """How many messages have arrived and timers have expired: all events except starts and faults."""
        return self._simulation.result().events - sum(at <= self.now for at in self._sent_at)

    @property
    def digest(self) -> bytes:
        """The hash of everything that has happened so far."""
        return self._simulation.result().digest

    def result(self) -> KernelOutcome:
        """Return the outcome so far."""
        return self._simulation.result()

    def text(self, *, times: bool = False) -> str:
        """Return the topology and the trace."""
        return "\n".join((self.topology.text(), text_of(self.records, times=times))).rstrip("\n")

    # -- Doing something to nodes and links

    def start_all_nodes(self) -> None:
        """Start the algorithm at every node, now, in the order of their ids."""
        for node in range(self.num_nodes):
            self.start(node)

    def start(self, node: int, at: TimeLike | None = None) -> None:
        """Start the algorithm at one node, now or later."""
        self._send(self._host(node).id, "begin", None, self._time(at))

    def crash(self, node: int, at: TimeLike | None = None) -> None:
        """Crash a node until it recovers: it loses everything that isn't `stable`, and whatever is sent to it."""
        self.inflict(Fault(self._time(at), "crash", (node,)))

    def recover(self, node: int, at: TimeLike | None = None) -> None:
        """Restart a crashed node, with a `Recover` event."""
        self.inflict(Fault(self._time(at), "recover", (node,)))

    def link_down(self, a: int, b: int, at: TimeLike | None = None) -> None:
        """Stop a link from carrying messages; both ends are told."""
        self.inflict(Fault(self._time(at), "down", (a, b)))

    def link_up(self, a: int, b: int, at: TimeLike | None = None) -> None:
        """Let a link carry messages again; both ends are told."""
        self.inflict(Fault(self._time(at), "up", (a, b)))

    def add_link(self, a: int, b: int, at: TimeLike | None = None) -> None:
        """Make two nodes neighbors; both are told."""
        self.inflict(Fault(self._time(at), "add", (a, b)))

    def remove_link(self, a: int, b: int, at: TimeLike | None = None) -> None:
        """Remove the link between two nodes, which are neighbors no longer; both are told."""
        self.inflict(Fault(self._time(at), "remove", (a, b)))

    def partition(self, group: Iterable[int], at: TimeLike | None = None) -> None:
        """Lose everything that a group and the others send each other, until the repair. No node is told."""
        self.inflict(Fault(self._time(at), "partition", tuple(group)))

    def repair(self, at: TimeLike | None = None) -> None:
        """End all partitions."""
        self.inflict(Fault(self._time(at), "repair"))

    def inflict(self, fault: Fault | str) -> None:
        """Schedule a fault at its time; it may be a text such as ``"2s crash 1"``."""
        given = as_fault(fault)
        check_faults((*self._faults, given), self.topology)
        self._send_out(given)
        self._faults.append(given)

    def _send_out(self, fault: Fault) -> None:
        for node, payload in self._told(fault):
            self._send(node, fault.verb, payload, fault.at)

    def _send(self, node: int, topic: str, payload: Any, at: int) -> None:
        self._simulation.send(name_of(node, self.num_nodes), topic, payload, at=at)
        self._sent_at.append(at)

    def _told(self, fault: Fault) -> Iterable[tuple[int, Any]]:
        """Return whom a fault concerns, and what their hosts are told."""
        if fault.verb in _LINKS_OF:
            a, b = fault.nodes
            weight = self.topology.weights.get((min(a, b), max(a, b)), 1)
            return ((a, (b, weight)), (b, (a, weight))) if fault.verb == "add" else ((a, b), (b, a))
        if fault.verb in ("partition", "repair"):
            return ((node, fault.nodes or None) for node in range(self.num_nodes))
        return ((node, None) for node in fault.nodes)

    def _host(self, node: object) -> NodeHost:
        host = self._hosts.get(node) if type(node) is int else None
        if host is None:
            raise UsageError(f"there is no node {shown(node)}", advice=f"the nodes are 0 to {self.num_nodes - 1}")
        return host

    def _time(self, at: TimeLike | None) -> int:
        return self.now if at is None else as_time(at)

    # -- Running

    def schedule(self) -> bool:
        """Execute the next event; return False if there is none, and the run is over."""
        if self._simulation.step():
            return True
        self.is_over, self.is_cut = True, False
        self._judge()
        return False

    def run(
        self,
        until: TimeLike | None = None,
        *,
        events_max: int = EVENTS_MAX,
        executor: Executor | str = "inline",
        observer: Observer | None = None,
        watch: Watch | None = None,
    ) -> KernelOutcome:
        """Run all events before `until`, or all there are; raise a `Violation` if a property doesn't hold.

        An algorithm that takes more than `events_max` events is considered endless. A run can be continued; properties
        that must hold eventually, or at the end, are judged at the end of every piece. `watch` is told the status now
        and then.

        An observer is told everything that happens, from the start: the same, in the same order, whatever the executor.
        Properties that are checked after every event need the inline executor, since they may look at all nodes.
        """
        if not self._sent_at:
            raise UsageError("no node was started, so nothing can happen", advice="call start_all_nodes() first")
        chosen = as_executor(executor, EXECUTORS)
        if observer is not None and observer is not self._observer:
            check_observer(observer)
            self._observer = observer
            self._listen()
        if chosen.kind != "inline":
            if self._verdicts.watches:
                raise UsageError(
                    "properties that hold always or eventually need the inline executor: they are looked at after every"
                    " event, and may look at all nodes",
                    advice="leave them out, or run it inline",
                )
            for host in self._hosts.values():
                host.forget_node()
        elif self._faults:
            for host in self._hosts.values():
                host.keep_time()
        self.is_over, self.is_cut = False, True
        try:
            self._simulation.run(until, executor=chosen, watch=watch, events_max=events_max)
        except Expired as expired:
            culprit = self._simulation.culprit
            stuck = expired.stuck()
            raise stuck if culprit is None else stuck.concerning(f"node {int(culprit.name)}", self.now) from None
        self.is_over, self.is_cut = True, until is not None
        self._judge()
        return self._simulation.result()

    def _judge(self) -> None:
        self.last = None  # From now on it is about all nodes.
        self._verdicts.finish(self)

    # -- What hosts tell

    def _listen(self) -> None:
        self._simulation.observe(HostObserver(self._take, self._observer))
        for host in self._hosts.values():
            host.disturb()

    def _executed(self, node: int) -> None:
        self.last = node
        self._verdicts.look(self)


def plan_of(topology: Topology, link: Link, seed: int, end: int | None) -> Plan:
    """Return the plan of a run, which needs none of its nodes."""
    names = tuple(name_of(node, topology.num_nodes) for node in range(topology.num_nodes))
    return Plan(roster=names, network=Network(default=link), seed=seed, end=end)


def _links_of_edges(links: Mapping[Edge, Link | Latency | TimeLike], topology: Topology) -> dict[Edge, Link]:
    found: dict[Edge, Link] = {}
    for edge, given in links.items():
        ends = sorted(edge) if isinstance(edge, tuple) and all(type(end) is int for end in edge) else []
        if tuple(ends) not in topology.weights:
            raise ConfigurationError(f"there is no edge {shown(edge)} that could have a link of its own")
        a, b = ends
        found[a, b] = given if isinstance(given, Link) else as_link(given)
        check_link(found[a, b], f"the link {a}-{b}")
    return found
