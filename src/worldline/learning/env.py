"""A federation as Gymnasium's environment: one participant is the agent, whose program is `step(action)`.

Agents are steered from outside of the run that they take part in: one episode after the other, each a run of its own.

The agents are strands like all programs. At the end of each step an agent leaves its moment and halts. Once nothing is
left to do without the agents, the run stands still and the caller has control, which costs a switch of greenlets. Those
agents then have to act that are at the earliest time. Others may be later, because they boot, hang or have a clock of
their own: these are away, and their turn comes. An agent may also end before its episode does: it crashes for good, or
an emergency stop reaches it. Its last moment is made here.

Every episode leaves nothing behind: the run is over, or it is broken off and all programs are unwound. Greenlets can be
unwound only in their own thread, but an environment may be garbage-collected in another. Its run is then left to
the thread that began it, which breaks it off when it next begins or closes an episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from threading import local
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from weakref import finalize

import gymnasium
import numpy as np

from worldline.federation.inprocess.run import SteppedRun
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.declaration import with_functions
from worldline.federation.participant.participant import ClockName, Participant
from worldline.federation.participant.program import Federation, Program
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import federation_of
from worldline.learning.spaces import action_check, as_seed, check_spaces, take_options
from worldline.learning.task import AgentMoment, AgentTask, as_beat, own, perform
from worldline.lock import Crashed, EmergencyStop
from worldline.model import UsageError
from worldline.model.draws.names import BOOT
from worldline.model.draws.table import DrawsGiven, DrawSource, DrawTable, read_draws
from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.faults import as_faults, spans_of
from worldline.model.latency import Fixed, as_delay
from worldline.model.time import FOREVER, TimeLike, format_time

if TYPE_CHECKING:
    from worldline.learning.page import EpisodesPage

# Why an agent never came to its first step: what kept its participant from it until the run was over.


def why_absent(federation: Federation, name: str, draws: DrawsGiven) -> str:
    """Say what kept a participant: that it boots for longer than the run lasts, or a fault, as far as it is known."""
    end = federation.plan().end
    booted = _booted(federation, name, draws)
    if end is not None and booted >= end:
        return f"it boots until {format_time(booted)}, and the run ends at {format_time(end)}"
    faults = as_faults(federation.faults)
    lasting = [
        str(because)
        for verb in ("crash", "hang")
        for _, over, because in spans_of(faults, name, verb)
        if over >= (FOREVER if end is None else end)
    ]
    return "; ".join(lasting) or "the run is over"


def _booted(federation: Federation, name: str, draws: DrawsGiven) -> int:
    boot = as_delay(federation.programs[name].boot)
    if isinstance(boot, Fixed):  # What is fixed isn't drawn.
        return boot.minimum
    rows, functions = with_functions(read_draws(draws))
    table = DrawTable(federation.seed, rows, load=functions.__getitem__)
    return int(table.draw(DrawSource((BOOT, name, "0"), boot, ("boot", name), 0), 0))


Source = Federation | str | PathLike[str]
"""A federation, or the path of its file."""


_TEXT, _PAGE = "ansi", "human"  # Gymnasium's words for text, and for what shows itself all along.
_SEED_END = 2**31  # Seeds that are drawn are below this.

_left = local()


def _left_runs() -> list[SteppedRun]:
    """Return the runs that other threads have left to this one to break off. Threads' numbers may be used again."""
    runs: list[SteppedRun] = _left.__dict__.setdefault("runs", [])
    return runs


class EpisodeOptions(TypedDict, total=False):
    """What all environments are given besides their agents: see `FederationEnv`."""

    start: TimeLike
    until: TimeLike | None
    settings: Sequence[str]
    clock: ClockName


class Steering:
    """The agents of a federation, by name, and the episode that is under way, if there is one."""

    def __init__(
        self,
        source: Source,
        tasks: Mapping[str, AgentTask],
        step: TimeLike | None,
        *,
        start: TimeLike = 0,
        until: TimeLike | None = None,
        settings: Sequence[str] = (),
        clock: ClockName = "true",
    ) -> None:
        self._agents = {name: _Agent(self, name, task) for name, task in tasks.items()}
        self._federation = _steered(_read(source, self._agents, settings), self._agents, until)
        self.beat = as_beat(step, start, self._federation.until, clock)
        if self._federation.until is None and any(task.done is None for task in tasks.values()):
            raise ConfigurationError(
                "an episode would never end: the federation has no end, and there is no function `done`",
                advice='write until="10s", or give `done`',
            )
        self.run: SteppedRun | None = None
        self.page: EpisodesPage | None = None  # Is told of all episodes, if there is one.
        self._following: np.random.Generator | None = None  # Draws seeds of episodes that are given none.
        self._left_runs: list[SteppedRun] = []  # Of the thread that began the run.
        self.here: list[str] = []
        """The agents that have halted at the time at which the run stands still; others are later, or on their way."""

    def __getstate__(self) -> object:
        if self.run is not None:
            raise UsageError(
                "an environment can't be copied or pickled once it has begun an episode",
                advice="do so before its first reset, or make another one",
            )
        return {**self.__dict__, "page": None}  # A copy gets a page of its own once that is asked for.

    @property
    def seed(self) -> int:
        """The seed that the federation has unless another one is given."""
        return self._federation.seed

    @property
    def is_under_way(self) -> bool:
        return self.run is not None and not self.run.is_over

    @property
    def outcome(self) -> FederationOutcome | None:
        """What came of the last run, if it went to its end."""
        return None if self.run is None else self.run.outcome

    def digest(self, name: str) -> bytes:
        """Return the hash of all that an agent has received and sent in this episode, or had in the last."""
        return self._agents[name].digest

    def moment(self, name: str) -> AgentMoment:
        """Return the moment that an agent came to last."""
        moment: AgentMoment = self._agents[name].moment
        return moment

    def info(self, name: str) -> dict[str, Any]:
        """Return which fates an agent met on the way to the moment at which it is, if any."""
        return self._agents[name].info()

    def next_seed(self, given: int | None) -> int:
        """Return the seed of the next episode: the one that is given, or one that follows from the last that was.

        It never comes from a clock, so that a learner that gives none can be repeated, too.
        """
        if given is None and self._following is not None:
            return int(self._following.integers(_SEED_END))
        seed = self.seed if given is None else as_seed(given)
        self._following = np.random.default_rng(abs(seed))
        return seed

    def begin(self, owner: object, seed: int, draws: DrawsGiven = None) -> dict[str, AgentMoment]:
        """Begin another episode, with some draws replaced; return what those agents see that have to act first.

        It is broken off when the owner is garbage-collected, always the same one, or when the process ends.
        """
        self.close()
        if self.run is None:  # Not before: the owner may have been copied until now.
            finalize(owner, self._break_off_or_leave)
        for agent in self._agents.values():
            agent.forget()
        self._left_runs = _left_runs()
        federation = replace(self._federation, seed=seed)
        observer = None if self.page is None else self.page.episode(seed)
        self.run = SteppedRun(federation, self._agents, draws=draws, observer=observer)
        moments = self._next_moments()
        if not moments:
            self.close()
            name, agent = next(iter(self._agents.items()))
            why = agent.info().get("befell") or why_absent(federation, name, draws)
            raise UsageError(
                f"its program has ended before its first step: {why}",
                participant=name,
                advice="an episode begins when the agent does",
            )
        for name, moment in moments.items():
            if moment.is_end:
                self.close()
                raise UsageError(
                    "the run had ended before its first step",
                    participant=name,
                    at=moment.now,
                    advice="end it later, or start sooner; without a step, another has to send it a message",
                )
        return moments

    def go_on(self, actions: Mapping[str, Any]) -> dict[str, AgentMoment]:
        """Let the agents that are here do this; return what those see that have to act next, or are over.

        The actions are checked by the caller. Agents that were over before are among neither.
        """
        for name, action in actions.items():
            self._agents[name].action = action
        moments = self._next_moments()
        assert self.run is not None
        for name in self.here:
            if not moments[name].is_last:
                return moments
        if len(self.here) < len(self.run.steered):
            return moments
        if any(moment.is_end for moment in moments.values()):
            while not self.run.is_over:
                self._go_on()  # The agents leave, and the others do what they do at the end.
        self.close()
        return moments

    def _next_moments(self) -> dict[str, AgentMoment]:
        self._go_on()
        assert self.run is not None
        moments = {name: self._agents[name].moment for name in self.here}
        steered = self.run.steered
        if len(steered) < len(self._agents):
            for name, agent in self._agents.items():
                if name not in steered and agent.moment is not None and not agent.moment.is_last:
                    moments[name] = agent.moment = agent.last_moment()
        return moments

    def close(self) -> None:
        """Break off the episode that is under way, if there is one, and what was left to this thread."""
        left = _left_runs()
        while left:
            left.pop().close()
        if self.run is not None:
            self._keep_digests()
            self.here = []
            self.run.close()

    def _break_off_or_leave(self) -> None:
        if self.run is not None:
            try:
                self.run.close()
            except UsageError:  # This is another thread.
                self._left_runs.append(self.run)

    def _go_on(self) -> None:
        assert self.run is not None
        here, self.here = self.here, []
        try:
            if self.page is not None:
                self.page.wait()
            self.run.go_on(here)
            self.here = self.run.earliest()
        finally:
            if self.run.is_over:
                self._keep_digests()

    def _keep_digests(self) -> None:
        for agent in self._agents.values():
            agent.let_go()


class _Agent:
    """One agent as both sides see it: its program leaves a moment, and finds an action."""

    def __init__(self, steering: Steering, name: str, task: AgentTask) -> None:
        self._steering = steering
        self._name = name
        self._task = task
        self._me: Participant | None = None
        self._digest = b""
        self._now = 0
        self._incarnation = 0
        self._fates: list[str] = []  # Since the moment before.
        self.moment: Any = None
        self.action: Any = None

    @property
    def digest(self) -> bytes:
        return self._digest if self._me is None else self._me.digest

    def info(self) -> dict[str, Any]:
        return {"befell": "; ".join(self._fates), "incarnation": self._incarnation} if self._fates else {}

    def forget(self) -> None:
        """Know nothing of an episode before."""
        self.moment = self.action = None
        self._digest = b""
        self._incarnation = 0
        self._fates.clear()

    def let_go(self) -> None:
        self._digest, self._me = self.digest, None

    def last_moment(self) -> AgentMoment:
        """Return the moment at which its program has ended: nothing more is seen."""
        last: AgentMoment = self.moment
        return AgentMoment(
            last.number + 1,
            self._now,
            [],
            self.action,
            last.observation,
            last.memory,
            last.observation,
            is_done=bool(self._fates),
            is_end=not self._fates,
        )

    def live(self, me: Participant) -> None:
        """Be the program of the participant."""
        run = self._steering.run
        assert run is not None
        halt, name = run.halt, self._name
        self._me = me
        self._incarnation = me.incarnation

        def choose(moment: AgentMoment) -> Any:
            self.moment = moment
            halt(name)
            if self._fates:
                self._fates.clear()
            return self.action

        try:
            perform(me, self._task, self._steering.beat, choose, measures=self._steering.page is not None)
        except (Crashed, EmergencyStop) as fate:
            self._fates.append(str(fate))
            raise
        finally:
            self._now = me.now


def _read(source: Source, agents: Mapping[str, _Agent], settings: Sequence[str]) -> Federation:
    if isinstance(source, Federation):
        if settings:
            raise UsageError("settings change a federation's file, and this is a Federation already")
        return source
    if not isinstance(source, str | PathLike):
        raise UsageError(
            f"{shown(source)} is neither a Federation nor the path of a federation's file",
            advice="call the function that makes it" if callable(source) else None,
        )
    file = Path(source)
    if file.suffix == ".py":
        raise UsageError(f"{file} isn't a federation's file", advice="import it, and give the Federation that it makes")
    setup = read_setup(file, changes=settings, starts=lambda name: name not in agents)
    return federation_of(setup, {name: agent.live for name, agent in agents.items()})


def _steered(federation: Federation, agents: Mapping[str, _Agent], until: TimeLike | None) -> Federation:
    """Return the federation with the agents' programs."""
    programs = dict(federation.programs)
    for name, agent in agents.items():
        program = programs.get(name)
        if not isinstance(program, Program):
            advice = nearest(name, programs) or f"participants are {', '.join(sorted(programs))}"
            raise ConfigurationError(f"there is no participant {shown(name)} to be the agent", advice=advice)
        if program.guest:
            raise ConfigurationError(f"the agent {name} is a guest", advice="an agent is there from the beginning")
        programs[name] = replace(program, run=agent.live)
    made = replace(federation, programs=programs, until=federation.until if until is None else until)
    made.plan()  # Whatever is wrong with it is said here, and not at the first reset.
    for name in programs:
        programs[name].join()
    return made


class FederationEnv(gymnasium.Env[Any, Any]):
    """An environment in which each episode is a run of a federation.

    `federation` is a Federation or the path of its file, which `settings` change as `--set` does. The participant
    `agent` is played by the caller of `step`: what it declares stays, and its program is replaced. `observe`, `act`,
    `reward` and `done` are those of an `AgentTask`. The agent acts from `start` on, once in a `step`; if that is None,
    whenever messages have arrived. Both are times of the simulation, or with ``clock="local"`` of the agent's own
    clock. An episode is terminated when the agent is `done`, crashes for good or is told of an emergency stop, and
    truncated when the run ends, at `until` or where the federation says.

    `reset(seed=...)` runs the federation with exactly that seed. Without one, seeds follow from the last one that was
    given, or from the federation's own.

    With ``render_mode="ansi"``, `render` returns the agent's moment as a line of text. With ``"human"``, a page shows
    all episodes while they happen, at the address `page`. The spaces are its own: those that are given may be given to
    others, too.
    """

    metadata: dict[str, Any] = {"render_modes": [_TEXT, _PAGE], "render_fps": 50}  # noqa: RUF012 - Gymnasium's own declaration.

    def __init__(
        self,
        federation: Source,
        agent: str,
        *,
        observe: Callable[[AgentMoment], Any],
        act: Callable[[Participant, Any], object],
        reward: Callable[[AgentMoment], float],
        done: Callable[[AgentMoment], bool] | None = None,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        step: TimeLike | None,
        render_mode: str | None = None,
        **options: Unpack[EpisodeOptions],
    ) -> None:
        check_spaces(agent, observation_space=observation_space, action_space=action_space)
        self.render_mode = render_mode
        if self.render_mode not in (None, _TEXT, _PAGE):
            raise ConfigurationError(
                f"it can't be shown as {shown(self.render_mode)}", advice=f'use "{_TEXT}": text; or "{_PAGE}": a page'
            )
        # A space draws, and to seed it changes what it draws next: not for another environment.
        self.observation_space, self.action_space = deepcopy(observation_space), deepcopy(action_space)
        self._check_action = action_check(action_space, agent)
        self.agent = agent
        self.now = 0
        """The agent's own time, in nanoseconds."""
        self.task = AgentTask(
            observe=observe,
            act=act,
            reward=reward,
            done=done,
            observation_space=observation_space,
            action_space=action_space,
        )
        self._steering = Steering(federation, {agent: self.task}, step, **options)

    @property
    def page(self) -> str | None:
        """The address of the page that shows all episodes, with ``render_mode="human"``."""
        if self.render_mode != _PAGE:
            return None
        if self._steering.page is None:
            from worldline.learning.page import EpisodesPage  # Here, since few environments have one.

            self._steering.page = EpisodesPage(self.agent)
            finalize(self, self._steering.page.close)
        return self._steering.page.url

    def __repr__(self) -> str:
        return f"<FederationEnv of {self.agent}, {'under way' if self._steering.is_under_way else 'no episode'}>"

    @property
    def first_seed(self) -> int:
        """The federation's own seed: that of the first episode, unless one is given."""
        return self._steering.seed

    @property
    def outcome(self) -> FederationOutcome | None:
        """What came of the run, once an episode has been truncated: its digest is that of any other such run."""
        return self._steering.outcome

    @property
    def digest(self) -> bytes:
        """The hash of everything that the agent has received and sent in this episode so far."""
        return self._steering.digest(self.agent)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin another episode; the one under way is broken off."""
        draws = take_options(options)
        seed = self._steering.next_seed(seed)
        _ = self.page  # It is there from the first episode on.
        super().reset(seed=abs(seed))
        moment = self._steering.begin(self, seed, draws)[self.agent]
        self.now = moment.now
        return own(moment.observation), {"seed": seed, **self._steering.info(self.agent)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the agent act, and all others go on until it has to act again."""
        steering = self._steering
        if not steering.is_under_way:
            raise UsageError("no episode is under way", participant=self.agent, advice="call reset() first")
        self._check_action(action)
        steering.go_on({self.agent: action})
        moment = steering.moment(self.agent)
        self.now = moment.now
        truncated = moment.is_end and not moment.is_done
        return own(moment.observation), moment.reward, moment.is_done, truncated, steering.info(self.agent)

    def render(self) -> Any:
        """Return where the agent is, as text, if that is wanted."""
        if self.render_mode != _TEXT:
            return None
        moment: AgentMoment | None = self._steering.moment(self.agent)
        if moment is None:
            return f"{self.agent}: no episode"
        seen = f"{self.agent} at {format_time(moment.now)}, step {moment.number}: sees {moment.observation}"
        return f"{seen}, after {moment.action}, which earned {moment.reward:g}" if moment.number else seen

    def close(self) -> None:
        """Break off the episode that is under way. Another one may begin."""
        self._steering.close()
        if self._steering.page is not None:
            self._steering.page.close()
            self._steering.page = None
