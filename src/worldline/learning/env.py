"""A federation as Gymnasium's environment: one participant is the agent, whose program is `step(action)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import gymnasium

from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant import Participant
from worldline.learning.seeds import SEED_END
from worldline.learning.spaces import action_check, check_observation, check_spaces, fresh, take_options
from worldline.learning.steering import Source, Steering
from worldline.learning.task import AgentMoment, AgentTask
from worldline.model import UsageError, WorldlineError
from worldline.model.time import TimeLike


class FederationEnv(gymnasium.Env[Any, Any]):
    """An environment in which each episode is a run of a federation.

    `federation` is a Federation or the path of its file, which `settings` change as `--set` does. The participant
    `agent` is played by whoever calls `step`: what it declares stays, and its program is replaced. `observe`, `act`,
    `reward` and `done` are those of an `AgentTask`. The agent acts from `start` on, once in a `step`; if that is None,
    whenever messages have arrived. An episode is terminated when the agent is `done`, and truncated when the run ends,
    at `until` or where the federation says.

    `reset(seed=...)` runs the federation with exactly that seed. Without one, seeds follow from the last one that was
    given, or from the federation's own.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own declaration.

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
        start: TimeLike = 0,
        until: TimeLike | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        check_spaces(agent, observation_space=observation_space, action_space=action_space)
        self.observation_space = observation_space
        self.action_space = action_space
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
        self._steering = Steering(
            federation, {agent: self.task}, step=step, start=start, until=until, settings=settings
        )

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
        if seed is None and self._np_random is None:
            seed = self._steering.seed
            super().reset(seed=abs(seed))
        else:
            super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(SEED_END))
        moment = self._steering.begin(seed, draws)[self.agent]
        observation = check_observation(moment.observation, self.observation_space, self.agent, moment.now)
        self.now = moment.now
        return observation, {"seed": seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the agent act, and everybody go on until it has to act again."""
        steering = self._steering
        if not steering.is_under_way:
            raise UsageError("no episode is under way", participant=self.agent, advice="call reset() first")
        self._check_action(action)
        moment = steering.go_on({self.agent: action})[self.agent]
        self.now = moment.now
        observation = fresh(moment.observation, moment.before)
        truncated = moment.is_end and not moment.is_done
        return observation, moment.reward, moment.is_done, truncated, {}

    def close(self) -> None:
        """Break off the episode that is under way. Another one may begin."""
        self._steering.close()

    def __del__(self) -> None:
        with suppress(WorldlineError, AttributeError):  # In another thread, or half made.
            self.close()
