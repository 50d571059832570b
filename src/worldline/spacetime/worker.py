"""A run on several workers, processes of this machine or ranks of MPI: what each does, and how they are started.

A worker lets its agents run, tells the others what is for them, takes in what they say.

Theory of operation
-------------------
Workers write each other frames; `take` takes in the letters in them, which concern single bodies. A position never
arrives before what was sent until then, and bounds what comes later (S2 of `core.py`), whichever way it goes.

Worker 0 leads. It finds out when nothing can happen any more (`conclusion`).

Agents move (`placement` says which) while the run stands still: all workers say `paused` to all others, after which
nothing is under way; then all tell the leader about their residents, the leader says which of them goes where, and
bodies are exchanged. Moves never change what happens: a body takes all along that its next event depends on, and what
others think of its position is only a bound.
"""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from worldline.history.outcome import Watch
from worldline.kernel.model import final_state, packed_state, restored, state_of
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.processes.executor import Executor
from worldline.processes.failures import Failure, begin_run, first_error, told
from worldline.processes.forking import check_guarded
from worldline.processes.mesh import PeerGone, Peers
from worldline.processes.pool import WorkerPool, check_loadable, loaded, some_of
from worldline.processes.ranks import RankGroup, gathered
from worldline.processes.status_timer import Look, looks, telling
from worldline.spacetime.agent import Agent, AgentWrapper, moving
from worldline.spacetime.core import Core, Letter
from worldline.spacetime.lanes import NEWS, Body, new_lambda
from worldline.spacetime.outcome import CoreReport, SpacetimeOutcome, outcome_of, records_of, report_of
from worldline.spacetime.placement import Balance, Placing, Resident, as_placing, moves, resident_of
from worldline.spacetime.space import shown_time

# -- Agents on their way from one core to another, with all that belongs to them: at the start, and when they move
#
# What the core knows of them it packs itself; here it is put together with what users' code has a part in.

_OWN = ("_wl_body", "_wl_core")


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the garbage collector rest while many objects are made, of which none is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def packed(core: Core, bodies: Iterable[Body]) -> bytes:
    """Return bodies with their agents and lanes, as bytes; refuse what can't be sent."""
    core.let_go()
    chosen = {body.name: body for body in bodies}
    with moving(core), _uncollected():
        told = [_packed_body(body) for body in chosen.values()]
        return pickle.dumps((told, core.lanes_of(chosen)), protocol=5)


def packed_if_possible(core: Core, bodies: Sequence[Body]) -> tuple[list[str], bytes]:
    """Return those bodies that can be sent, and their names: an agent may have got hold of something that can't."""
    try:
        return [body.name for body in bodies], packed(core, bodies)
    except ConfigurationError:
        able = [body for body in bodies if _is_able(core, body)]
        return [body.name for body in able], packed(core, able)


def _is_able(core: Core, body: Body) -> bool:
    try:
        packed(core, [body])
    except ConfigurationError:  # It stays where it is, which shows nowhere.
        return False
    return True


def unpacked(core: Core, data: bytes) -> None:
    """Let packed bodies live in a core. Its `homes` say where others do, whatever it was when these were packed."""
    with moving(core), _uncollected():
        bodies, lanes = _loaded(data)
        arrived = [(core.arrive(name, state), rest) for name, state, *rest in bodies]
        core.take_lanes(lanes)
        for body, (timers, agent) in arrived:
            if timers is not None:
                lane = core.timer_of(body)
                lane.sent, lane.timers = timers
            _take_agent(core, body, *_loaded(agent))
            core.wake(body)
        for body, _ in arrived:
            for each in list(body.outs):
                if not each.is_news and not each.handle:  # Its channel was garbage, and has stayed behind.
                    core.give_up(each)


def _loaded(data: bytes) -> Any:
    try:
        return loaded(data, "the agents")
    except WorldlineError:
        raise
    except Exception as error:  # An attribute's own code may raise anything.
        raise ConfigurationError(
            f"a worker can't load the agents: {type(error).__name__}: {error}", advice="can they be pickled?"
        ) from error


def _packed_body(body: Body) -> tuple[Any, ...]:
    timers = None if body.timer is None else (body.timer.sent, body.timer.timers)
    advice = "keep what can be pickled, and channels to other agents"
    agent = packed_state(type(body.agent), own_state(body.agent), body.name, advice, is_opened=False)
    return body.name, body.state(), timers, agent


def own_state(agent: Agent) -> dict[str, Any]:
    return {name: value for name, value in state_of(agent, Agent).items() if name not in _OWN}


def _take_agent(core: Core, body: Body, kind: type[Agent], state: dict[str, Any]) -> None:
    agent = object.__new__(kind)
    object.__setattr__(agent, "_wl_core", core)
    object.__setattr__(agent, "_wl_body", body)
    restored_agent(agent, state)
    body.agent = agent
    body.receiver = agent.object if isinstance(agent, AgentWrapper) else agent


def restored_agent(agent: Agent, state: dict[str, Any]) -> None:
    kept = {name: value for name, value in vars(agent).items() if name in _OWN}
    restored(agent, {**state, **kept})


# -- After a run


def states_of(core: Core) -> list[tuple[str, tuple[Any, ...], bytes | None]]:
    """Return what has become of the agents here; what can't leave the process is said to be left behind."""
    with moving(core), _uncollected():
        return [
            (body.name, body.state(), final_state(type(body.agent), own_state(body.agent), is_opened=False))
            for body in core.register.bodies.values()
        ]


def bring_back(core: Core, states: Iterable[tuple[str, tuple[Any, ...], bytes | None]]) -> None:
    """Give agents the state that they had at the end, in whichever process they were."""
    with moving(core), _uncollected():
        for name, state, packed_agent in states:
            if packed_agent is None:
                continue
            kind, attributes = pickle.loads(packed_agent)
            body = core.register.house(name)
            body.restore(state)
            if body.agent is None:
                _take_agent(core, body, kind, attributes)
            else:
                _bring_back(body, attributes)


def _bring_back(body: Body, attributes: dict[str, Any]) -> None:
    """Give an agent its attributes; what it wraps stays the object that it was, as it does inline."""
    agent = body.agent
    wrapped = agent.object if isinstance(agent, AgentWrapper) else None
    restored_agent(agent, attributes)
    if isinstance(agent, AgentWrapper):
        if type(agent.object) is type(wrapped) and hasattr(wrapped, "__dict__"):
            vars(wrapped).clear()
            vars(wrapped).update(vars(agent.object))
            agent.object = wrapped
        body.receiver = agent.object


# -- Letters that other workers have written to bodies of this one: see `core.py` for what each says


def take(core: Core, letter: Letter) -> None:
    kind, *said = letter
    match kind:
        case "lambda":
            _take_lambda(core, *said)
        case "gone":
            lane_name, target = said
            core.lose(lane_name, core.register.body(target, core.me))
        case "watch":
            _be_watched(core, *said)
        case "watched":
            news = core.lanes.get(said[0])
            if news is not None:
                news.asked = False
                core.wake(news.target)
        case "unwatch":
            name, news_name = said
            news = core.lanes.pop(news_name, None)
            body = core.register.body(name, core.me)
            if news is not None and news in body.outs:
                body.outs.remove(news)


def _take_lambda(core: Core, name: str, source: str, home: int, target: str, *parts: Any) -> None:
    if name.endswith(NEWS) and name not in core.lanes:
        return  # News that aren't waited for any more.
    lane = core.lanes.get(name) or core.lane(
        name, core.register.body(source, home), core.register.body(target, core.me)
    )
    core.deliver(lane, new_lambda(*parts))


def _be_watched(core: Core, name: str, news: str, watcher: str, worker: int) -> None:
    body = core.register.body(name, core.me)
    assert body.is_here, f"{name} is thought to be here"  # Otherwise the watcher would take it for dead.
    if news:
        lane = core.lane(news, body, core.register.body(watcher, worker))
        core.tell_death(body, lane)
        core.outbox.append((lane.target, ("watched", news)))
    body.partners[worker] = True
    core.moved[name] = body


def watch_sources(core: Core) -> None:
    """Ask for the positions of all those elsewhere that agents here wait for."""
    asked: dict[str, bool] = {}
    for lane in list(core.lanes.values()):
        source = lane.source
        if lane.target.is_here and not source.is_here and not lane.gone and source.name not in asked:
            asked[source.name] = True
            core.outbox.append((source, ("watch", source.name, "", lane.target.name, core.me)))


# -- Frames between two workers. They keep their order; that is all that is asked of what carries them.


class Update(NamedTuple):
    """What is for bodies of the other worker, and then where those are that bodies there wait for (None: gone).

    A position never arrives before what was sent until then. `cap` is the lab time after which nothing counts, since
    an agent has failed; `events` is how many there were at the sender's.
    """

    letters: list[Letter]
    positions: list[tuple[str, tuple[float, ...] | None]]
    cap: float
    events: int


class IdleReport(NamedTuple):
    """Nothing can happen at a worker, which has sent and taken in that many updates to and from each other.

    `is_alive`: an agent hasn't ended there, though it should have. `is_swept`: garbage was collected since.
    """

    sent: tuple[int, ...]
    received: tuple[int, ...]
    is_alive: bool
    is_swept: bool


class Gathering(NamedTuple):
    """What a worker says to all others at a step of a round of moves, while they stand still; `begin` only begins it.

    Rounds are counted.
    """

    number: int
    step: str
    told: Any


Order = Literal["sweep", "finish", "balance"]
"""What the leader tells all others: to collect garbage, since a channel that is only that holds no agent up; to stop,
since nothing can happen any more. And a worker the leader: to look whether agents would be better off elsewhere."""

Frame = Update | IdleReport | Gathering | Order | WorldlineError
"""An error is that of a worker that can't go on."""


def packed_frame(frame: Frame) -> bytes:
    return pickle.dumps(frame, protocol=5)


# -- When a run on several workers is over
#
# Every worker that is idle says so to the leader, with how many frames it has sent to each other and taken in from
# each. If all have said that, and each has taken in as many as each other has sent to it, these counts are of one cut
# through the run that no frame crosses. So it stays like that: the run is over, or stuck, or was broken off by an
# error.
#
# If an agent is still alive then, that may be because of a channel that nothing refers to any more, and that wasn't
# found to be garbage yet. So all workers look for that first, once; one that finds something isn't idle any more.


def conclusion(said: Sequence[IdleReport | None]) -> Order | None:
    """Return what follows from what all workers have said last, None for those that aren't idle."""
    idle = [each for each in said if each is not None]
    if len(idle) < len(said):
        return None
    for here, one in enumerate(idle):
        for there, other in enumerate(idle):
            if one.sent[there] != other.received[here]:
                return None
    is_stuck = any(each.is_alive for each in idle) and not all(each.is_swept for each in idle)
    return "sweep" if is_stuck else "finish"


_SLICE = 512
_LEADER = 0


class SpacetimeWorker:
    """One worker among others."""

    def __init__(self, core: Core, peers: Peers, count: int, placing: Placing) -> None:
        self._core = core
        self._peers = peers
        self._others = [other for other in range(count) if other != core.me]
        self._is_over = False
        # Updates that were sent to and received from each, and the last `cap` that was told.
        self._sent = [0] * count
        self._received = [0] * count
        self._told_cap = core.cap
        # The end.
        self._idle: list[IdleReport | None] = [None] * count  # What each has said when it was idle last.
        self._is_swept_now = False
        self._steps_at_sweep = -1  # How many steps there were when garbage was collected last.
        # Moves.
        self._round = 0  # How often the run has stood still.
        self._round_wanted = 0
        self._is_moving = False
        self._unheard: list[tuple[int, Gathering]] = []
        self._balance = Balance(placing, count, time.monotonic())

    def run(self, look: Look) -> None:
        """Do all that happens here."""
        core = self._core
        watch_sources(core)
        self._tell()
        events = look(0, 0)
        while not self._is_over:
            is_busy = core.run(min(events, _SLICE))
            events = look(shown_time(core.lab), core.events)
            self._tell()
            self._is_swept_now = False
            if is_busy:
                self._idle[core.me] = None
                self._consider_moves()
            else:
                self._say_idle()
            if self._round_wanted > self._round:
                self._move()
            elif not self._is_over and not self._is_swept_now:
                self._hear_all(self._peers.poll() if is_busy else self._peers.wait())

    # -- What is said

    def _post(self, other: int, frame: Frame) -> None:
        self._peers.post(other, packed_frame(frame))

    def _post_all(self, frame: Frame) -> None:
        for other in self._others:
            self._post(other, frame)

    def _tell(self) -> None:
        """Send all others what is for them."""
        core = self._core
        letters: list[list[Letter]] = [[] for _ in self._sent]
        positions: list[list[Any]] = [[] for _ in self._sent]
        while core.outbox:
            outbox, core.outbox = core.outbox, []
            for body, letter in outbox:
                if body.home == core.me:  # It has moved here meanwhile.
                    take(core, letter)
                else:
                    letters[body.home].append(letter)
        if core.moved:
            for body in core.moved.values():
                told = body.name, None if body.done or body.parked else body.position(core.n)
                for other in body.partners:
                    positions[other].append(told)
            core.moved = {}
        is_news = core.cap < self._told_cap
        self._told_cap = core.cap
        for other in self._others:
            if letters[other] or positions[other] or is_news:
                self._post(other, Update(letters[other], positions[other], core.cap, core.events))
                self._sent[other] += 1
                self._balance.letters += len(letters[other])

    def _say_idle(self) -> None:
        """Tell the leader that nothing can happen here, unless it knows."""
        core = self._core
        is_alive = core.live > 0 and not core.failures
        is_swept = core.steps <= self._steps_at_sweep
        said = IdleReport(tuple(self._sent), tuple(self._received), is_alive, is_swept)
        if said != self._idle[core.me]:
            self._idle[core.me] = said
            if core.me == _LEADER:
                self._conclude()
            else:
                self._post(_LEADER, said)

    # -- What is heard

    def _hear_all(self, frames: Iterable[tuple[int, bytes]]) -> None:
        for other, frame in frames:
            self._hear(other, pickle.loads(frame))

    def _hear(self, other: int, frame: Frame) -> None:
        match frame:
            case Update():
                self._take_in(other, frame)
            case IdleReport():
                self._idle[other] = frame
                self._conclude()
            case "sweep":
                gc.collect()
                self._is_swept_now = True
                self._steps_at_sweep = self._core.steps
            case "finish":
                self._is_over = True
            case "balance":
                self._grant()
            case Gathering(number, step):  # Its sender may be ahead: the leader's wish may have come to it earlier.
                self._round_wanted = max(self._round_wanted, number)
                if step != "begin":
                    self._unheard.append((other, frame))
            case WorldlineError():
                raise frame

    def _take_in(self, other: int, update: Update) -> None:
        core = self._core
        self._received[other] += 1
        self._balance.events[other] = update.events
        for letter in update.letters:
            take(core, letter)
        for name, position in update.positions:
            core.hear_position(name, position)
        if update.cap < core.cap:
            core.cap = self._told_cap = update.cap

    def _conclude(self) -> None:
        """If nothing can happen any more, anywhere, let the run be over; not while others wait for a move, though."""
        own = self._idle[self._core.me]
        if self._is_moving or self._round_wanted > self._round or own is None:
            return
        if (own.sent, own.received) != (tuple(self._sent), tuple(self._received)):  # It was so, and isn't any more.
            return
        order = conclusion(self._idle)
        if order is not None:
            self._post_all(order)
            self._hear(_LEADER, order)

    # -- Moves

    def _consider_moves(self) -> None:
        """Ask now and then whether agents would be better off elsewhere."""
        if self._balance.is_due(time.monotonic(), self._core.events):
            if self._core.me == _LEADER:
                self._grant()
            else:
                self._post(_LEADER, "balance")

    def _grant(self) -> None:
        """Let the run stand still, as the leader, unless that is about to happen, or isn't worth it."""
        if self._round_wanted != self._round or self._is_over:
            return
        self._balance.events[_LEADER] = self._core.events
        if self._balance.is_worth_it(time.monotonic(), _LEADER):
            self._round_wanted += 1
            self._post_all(Gathering(self._round_wanted, "begin", None))

    def _move(self) -> None:
        """Stand still together with all others, and let agents go where they are better off."""
        self._round += 1
        self._is_moving = True
        self._tell()
        everyone = range(len(self._sent))
        self._gathered("paused", [None for _ in everyone])
        residents = self._residents()
        told = self._gathered("residents", [residents if other == _LEADER else None for other in everyone])
        chosen = moves(self._balance.placing, told) if self._core.me == _LEADER else None
        agreed = self._gathered("moves", [chosen for _ in everyone])[_LEADER]
        if agreed:
            self._exchange(agreed)
        self._balance.restart(time.monotonic())
        self._is_moving = False
        if self._core.me == _LEADER:
            self._conclude()

    def _gathered(self, step: str, own: Sequence[Any]) -> list[Any]:
        """Tell each other something; wait until all have told theirs. Whatever else comes in between is taken in."""
        for other in self._others:
            self._post(other, Gathering(self._round, step, own[other]))
        found = {self._core.me: own[self._core.me]}
        while True:
            unheard, self._unheard = self._unheard, []
            for other, said in unheard:
                if (said.number, said.step) == (self._round, step):
                    found[other] = said.told
                else:
                    self._unheard.append((other, said))
            if len(found) == len(own):
                return [found[number] for number in range(len(own))]
            self._hear_all(self._peers.wait())

    def _residents(self) -> list[Resident]:
        """Return who is here, each with how many events it has had since this was asked last."""
        core = self._core
        living = [body for body in core.register.bodies.values() if not body.done]
        before, self._balance.events_of = self._balance.events_of, {body.name: body.events for body in living}
        return [resident_of(body, core.n, body.events - before.get(body.name, body.events)) for body in living]

    def _exchange(self, agreed: dict[str, int]) -> None:
        """Let agents go, and take in those that come."""
        core = self._core
        leaving: list[list[Body]] = [[] for _ in self._sent]
        for name, worker in agreed.items():
            body = core.register.bodies.get(name)
            if body is not None:
                leaving[worker].append(body)
        ready = [packed_if_possible(core, bodies) for bodies in leaving]
        for worker, (names, _) in enumerate(ready):
            for name in names:
                core.depart(core.register.bodies[name], worker)
        leavers = [name for names, _ in ready for name in names]
        for gone in self._gathered("leaving", [leavers for _ in ready]):
            core.register.homes.update((name, agreed[name]) for name in gone)
        for body in core.register.all():
            body.home = core.register.homes.get(body.name, body.home)
            body.partners = {}
        core.forget_lanes()
        # Here, while all stand still: who is faster goes on, and says new things, before this one has settled.
        core.moved = {}
        self._idle = [None for _ in ready]
        for arrived in self._gathered("bodies", [data for _, data in ready]):
            unpacked(core, arrived)
        self._gathered("settled", [None for _ in ready])  # Until then nothing may be sent to an agent on the move.
        watch_sources(core)
        self._tell()
        core.wake_all()


# -- How workers are given their agents, and what has become of these is brought back

_SETTING = "the boundaries or the placement"

_Task = tuple[int, bytes, dict[str, int], bytes]  # How many workers, the setting, homes, and its agents, packed.


def run_elsewhere(
    executor: Executor, core: Core, until: float, watch: Watch | None, shown_end: int
) -> SpacetimeOutcome:
    """Run what was set up in a core on other workers, and bring the agents' states back."""
    if executor.kind == "processes":
        reports = _on_processes(executor, core, telling(watch, shown_end))
    else:
        reports = _on_ranks(executor, core, looks(watch, shown_end))
    error = first_error(reports)
    if error is not None:
        raise error
    heard = [report for report in reports if isinstance(report, CoreReport)]
    before = CoreReport(0, [], records_of(core.trace or ()), {}, [], measured=core.measured)
    outcome = outcome_of([before, *heard], until, is_traced=core.trace is not None)
    if outcome.failure is None:
        bring_back(core, (state for report in heard for state in report.states))
    return outcome


def is_said_by_any(executor: Executor, said: bool) -> bool:
    """Return whether one of the ranks says yes, on all of them."""
    return True in gathered(lambda _: said, executor.patience_s)


def _on_processes(
    executor: Executor, core: Core, reached: Callable[[int, int], None]
) -> Sequence[CoreReport | Failure]:
    check_guarded()
    check_loadable((body.agent for body in core.register.bodies.values()), "the agents' classes")
    placing = as_placing(executor.placement, core.n)
    homes = _placed(core, placing, executor.count)
    setting = _setting(core, placing, core.trace is not None)
    tasks = [_task(core, setting, homes, number, executor.count) for number in range(executor.count)]

    def describe(number: int) -> str:
        return some_of([name for name, home in homes.items() if home == number], "no agents")

    with WorkerPool(_work, tasks, describe) as pool:
        return pool.watch(reached)


def _on_ranks(executor: Executor, core: Core, look: Look) -> Sequence[CoreReport | Failure]:
    placing = as_placing(executor.placement, core.n)

    def work(ranks: RankGroup) -> CoreReport | Failure:
        homes = ranks.agreed(lambda: _placed(core, placing, ranks.count))
        ranks.check_equal((homes, repr(core.field), core.seed, [str(each) for each in core.boundaries], _outline(core)))
        is_traced = any(ranks.exchanged(core.trace is not None))  # A script may trace on one of them alone.
        task = ranks.agreed(lambda: _task(core, _setting(core, placing, is_traced), homes, ranks.rank, ranks.count))
        try:
            return _work(ranks.rank, ranks.peers, task, look)
        except WorldlineError as error:  # The others know of it.
            return Failure((), error)

    return gathered(work, executor.patience_s)


def _work(number: int, peers: Peers, task: _Task, look: Look) -> CoreReport | Failure:
    """Be a worker, for a whole run; if this one can't go on, tell the others."""
    try:
        return _worked(number, peers, task, look)
    except PeerGone:
        raise
    except WorldlineError as error:
        for other in range(task[0]):
            if other != number:
                peers.post(other, packed_frame(error))
        raise


def _worked(number: int, peers: Peers, task: _Task, look: Look) -> CoreReport:
    begin_run()
    workers, setting, homes, bodies = task
    space, field, boundaries, seed, placing, is_traced = loaded(setting, _SETTING)
    core = Core(space, field, boundaries, seed, number)
    core.register.homes.update(homes)
    unpacked(core, bodies)
    if is_traced:
        core.trace = []
    SpacetimeWorker(core, peers, workers, placing).run(look)
    report = report_of(core)
    if report.failure is not None:
        return report._replace(failure=told(report.failure))
    return report._replace(states=states_of(core))


def _placed(core: Core, placing: Placing, count: int) -> dict[str, int]:
    residents = [resident_of(body, core.n, 1) for _, body in sorted(core.register.bodies.items())]
    return placing.place(residents, count)


def _outline(core: Core) -> list[Any]:
    """Return what two processes that set up the same agree on, besides who takes part."""
    lanes = [(name, lane.source.name, lane.target.name, lane.sent) for name, lane in core.lanes.items()]
    bodies = [
        (body.name, type(body.agent).__qualname__, tuple(body.point), tuple(body.trajectory.velocity), body.chain)
        for body in core.register.bodies.values()
    ]
    return [sorted(bodies), sorted(lanes)]


def _setting(core: Core, placing: Placing, is_traced: bool) -> bytes:
    setting = (core.space, core.field, core.boundaries, core.seed, placing, is_traced)
    try:
        return pickle.dumps(setting, protocol=5)
    except Exception as error:  # What a boundary does is the user's own.
        raise ConfigurationError(
            f"{_SETTING} can't be sent to a worker: {error}",
            advice="define their functions at the top level of a module",
        ) from error


def _task(core: Core, setting: bytes, homes: dict[str, int], number: int, count: int) -> _Task:
    return (
        count,
        setting,
        homes,
        packed(core, [body for body in core.register.bodies.values() if homes[body.name] == number]),
    )
