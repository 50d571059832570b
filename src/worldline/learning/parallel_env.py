"""A federation as PettingZoo's parallel environment: several participants are agents.

All act at the same times, unless something keeps them: an agent boots late, hangs, crashes and recovers, or goes by a
clock of its own. One that isn't there when others have to act is away. It misses nothing: what it sees and is
rewarded for comes when it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Unpack

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from worldline.federation.outcome import FederationOutcome
from worldline.learning.env import EpisodeOptions, Source, Steering
from worldline.learning.spaces import action_check, check_spaces, take_options
from worldline.learning.task import AgentMoment, AgentTask, own
from worldline.model import UsageError
from worldline.model.errors import ConfigurationError, shown
from worldline.model.time import TimeLike

Infos = dict[str, dict[str, Any]]


class ParallelFederationEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """An environment in which each episode is a run of a federation, and each agent is a participant.

    `tasks` has an `AgentTask` for each agent, by the participant's name. The other arguments are those of a
    `FederationEnv`, but for `step`, which has to be a duration: all agents act at once. An agent that is done leaves
    the run, and the others go on. The episode is over when all are done, or when the run ends.

    An agent is among `agents` from its first observation on. If it isn't there when others have to act, its info has
    ``{"away": True}``: it is shown what it last saw, and an action for it isn't taken.
    """

    metadata: dict[str, Any] = {"name": "federation", "render_modes": []}  # noqa: RUF012 - PettingZoo's declaration.

    def __init__(
        self,
        federation: Source,
        tasks: Mapping[str, AgentTask],
        *,
        step: TimeLike,
        **options: Unpack[EpisodeOptions],
    ) -> None:
        if not isinstance(tasks, Mapping) or not tasks:
            raise ConfigurationError(
                f"{shown(tasks)} are no agents", advice='write {"left": AgentTask(...), "right": AgentTask(...)}'
            )
        for name, task in tasks.items():
            if not isinstance(task, AgentTask):
                raise ConfigurationError(f"{name}: {shown(task)} isn't an AgentTask")
            check_spaces(name, observation_space=task.observation_space, action_space=task.action_space)
        if step is None:
            raise ConfigurationError("several agents act at the same times", advice='write step="20ms"')
        self.tasks = dict(tasks)
        self.possible_agents = list(tasks)
        self.agents: list[str] = []
        self.observation_spaces: dict[str, gymnasium.Space[Any]] = {
            name: deepcopy(task.observation_space) for name, task in tasks.items()
        }
        self.action_spaces: dict[str, gymnasium.Space[Any]] = {
            name: deepcopy(task.action_space) for name, task in tasks.items()
        }
        self._check_action = {name: action_check(task.action_space, name) for name, task in tasks.items()}
        self._steering = Steering(federation, tasks, step, **options)
        self._seen: dict[str, Any] = {}  # What each agent has seen last.

    def __repr__(self) -> str:
        return f"<ParallelFederationEnv of {', '.join(self.possible_agents)}, {len(self.agents)} there>"

    @property
    def outcome(self) -> FederationOutcome | None:
        """What came of the run, once an episode has gone to its end."""
        return self._steering.outcome

    def digest(self, agent: str) -> bytes:
        """Return the hash of everything that an agent has received and sent in this episode so far."""
        return self._steering.digest(agent)

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Infos]:
        """Begin another episode; the one under way is broken off."""
        draws = take_options(options)
        seed = self._steering.next_seed(seed)
        self.agents = []
        self._seen = {}
        self._take(self._steering.begin(self, seed, draws))
        return (
            {name: own(self._seen[name]) for name in self.agents},
            {name: {"seed": seed, **self._steering.info(name)} for name in self.agents},
        )

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Let the agents act that are there, and all others go on until some have to act again."""
        if not self._steering.is_under_way:
            raise UsageError("no episode is under way", advice="call reset() first")
        self._check(actions)
        before = self.agents
        moments = self._take(self._steering.go_on({name: actions[name] for name in before if self._is_here(name)}))
        told = {name: moments.get(name) for name in self.possible_agents if name in before or name in self.agents}
        return (
            {name: own(self._seen[name]) for name in told},
            {name: 0.0 if moment is None else moment.reward for name, moment in told.items()},
            {name: moment is not None and moment.is_done for name, moment in told.items()},
            {name: moment is not None and _is_cut_off(moment) for name, moment in told.items()},
            {name: {"away": True} if moment is None else self._steering.info(name) for name, moment in told.items()},
        )

    def _take(self, moments: dict[str, AgentMoment]) -> dict[str, AgentMoment]:
        """Note which agents are there, and what they see; if none is left, wait for those that are still to come."""
        while True:
            for name, moment in moments.items():
                self._seen[name] = moment.observation
            known = {*self.agents, *moments}
            over = {name for name, moment in moments.items() if moment.is_last}
            self.agents = [name for name in self.possible_agents if name in known and name not in over]
            if self.agents or not self._steering.is_under_way:
                return moments
            moments = {**moments, **self._steering.go_on({})}

    def _is_here(self, name: str) -> bool:
        return name in self._steering.here

    def _check(self, actions: Mapping[str, Any]) -> None:
        if not isinstance(actions, Mapping):
            raise UsageError(
                f"the actions are {shown(actions)}, and not a dict",
                advice=f"give an action for each of {', '.join(self.agents)}, by name",
            )
        for name in actions:
            if name not in self.agents:
                what = "isn't there yet" if name in self.possible_agents else "isn't an agent"
                what = "is done" if name in self._seen else what
                raise UsageError(
                    f"an action is for {name}, which {what}", advice=f"agents are {', '.join(self.agents)}"
                )
            self._check_action[name](actions[name])
        for name in self.agents:
            if name not in actions and self._is_here(name):
                raise UsageError("there is no action for it", participant=name)

    def close(self) -> None:
        """Break off the episode that is under way. Another one may begin."""
        self._steering.close()
        self.agents = []

    def render(self) -> np.ndarray[Any, Any] | str | list[Any] | None:
        """There is nothing to be seen."""
        return None


def _is_cut_off(moment: AgentMoment) -> bool:
    return moment.is_end and not moment.is_done
