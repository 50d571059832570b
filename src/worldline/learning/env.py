"""A federation as Gymnasium's environment: one participant is the agent, whose program is `step(action)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium

from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.participant import ClockName, Participant
from worldline.learning.spaces import SeedSeries, action_check, check_spaces, take_options
from worldline.learning.steering import Source, Steering
from worldline.learning.task import AgentMoment, AgentTask, own
from worldline.model import UsageError
from worldline.model.time import TimeLike


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
        clock: ClockName = "true",
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
            federation, {agent: self.task}, step=step, start=start, until=until, settings=settings, clock=clock
        )
        self._seeds = SeedSeries(self._steering.seed)

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
        seed = self._seeds.next(seed)
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

    def close(self) -> None:
        """Break off the episode that is under way. Another one may begin."""
        self._steering.close()
