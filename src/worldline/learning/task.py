"""An agent's task: what it sees, what it can do, what it is rewarded for, and when it is done.

The agent is a participant, and its program is always the same loop, `act`, wait, `observe`, `reward`, `done`. Only who
chooses the actions differs: in an environment it is the learner, outside of the run, and in a run of its own it is a
policy that has been learned (`play`). So both have the same history.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from math import isfinite
from typing import Any, NamedTuple

from msgspec import Struct

from worldline.federation.participant.participant import ClockName, Participant
from worldline.model import TIME_MAX, Message, ModelError, WorldlineError, as_time
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, shown
from worldline.model.time import TimeLike

REWARD = "reward"
"""What agents measure: so rewards are in the run's monitors, in its recording and on its page."""

_NUMBERS = "biuf"


def own(value: Any) -> Any:
    """Return a copy, which its receiver may change. This needs no NumPy: a learned policy may run without it."""
    kind = getattr(getattr(value, "dtype", None), "kind", "O")
    return value.copy() if kind in _NUMBERS else deepcopy(value)  # `deepcopy` takes several times as long.


class AgentMoment(Struct):
    """What an agent knows at the end of a step.

    `number` counts the steps; it is 0 at the start of an episode. `messages` are those that arrived during the step, in
    order, and `action` is what was done at the beginning of it. `before` is the observation of the step before,
    `observation` the one that is made of this moment: `reward` and `done` find it there. `memory` is whatever the
    task's functions keep for the rest of the episode.
    """

    number: int
    now: int
    messages: list[Message]
    action: Any
    before: Any
    memory: dict[str, Any]
    observation: Any = None
    reward: float = 0.0
    is_done: bool = False
    is_end: bool = False
    """Whether the run has ended for the agent."""

    @property
    def is_last(self) -> bool:
        """Whether the episode is over."""
        return self.is_done or self.is_end


class Beat(NamedTuple):
    """When an agent acts: at `start` and a `step` after it, and so on; whenever messages have arrived if that is None.

    These are times of the `clock`. One that is late for a beat is in time for the next, so that those who are late at
    different times come together again. At the `end` of the run, which is a true time, an agent doesn't act any more,
    although it could: its messages would reach no participant.
    """

    step: int | None
    start: int
    end: int = TIME_MAX
    clock: ClockName = "true"

    def first(self, me: Participant) -> list[Message]:
        """Wait for the first beat that hasn't passed; return what has arrived by then."""
        shows = me.clock.now if self.clock == "local" else me.now
        due = self.start
        if due < shows:
            due = shows if self.step is None else due - (due - shows) // self.step * self.step
        messages = me.advance(to=due, clock=self.clock) if due > shows else []
        return messages if messages or self.step is not None else me.next()

    def next(self, me: Participant) -> list[Message]:
        """Wait for the next beat; return what has arrived by then."""
        step, start, _, clock = self
        if step is None:
            return me.next()
        shows = me.now if clock == "true" else me.clock.now
        return me.advance(to=start + ((shows - start) // step + 1) * step, clock=clock)


def as_beat(step: TimeLike | None, start: TimeLike, until: TimeLike | None, clock: ClockName) -> Beat:
    """Return when an agent acts, checked."""
    if clock not in ("true", "local"):
        raise ConfigurationError(
            f"there is no clock {shown(clock)}", advice='write clock="local", or leave it out for true time'
        )
    duration = None if step is None else as_time(step, "the step of an environment")
    if duration == 0:
        raise ConfigurationError("the step of an environment is 0", advice='write step="20ms", or None: any message')
    end = TIME_MAX if until is None else as_time(until, "the end of an environment")
    return Beat(duration, as_time(start, "the start of an environment"), end, clock)


@dataclass(frozen=True)
class AgentTask:
    """What an agent observes, does and is rewarded for, by small functions.

    `observe(moment)` returns the observation, `reward(moment)` a number, and `done(moment)` whether the episode is over
    for this agent. `act(me, action)` does what an action says, where `me` is the participant: usually, it publishes.
    The spaces are Gymnasium's; observations are made to be of their space's type.
    """

    _: KW_ONLY
    observe: Callable[[AgentMoment], Any]
    act: Callable[[Participant, Any], object]
    reward: Callable[[AgentMoment], float]
    done: Callable[[AgentMoment], bool] | None = None
    observation_space: Any = None
    action_space: Any = None

    def __post_init__(self) -> None:
        for name in ("observe", "act", "reward", "done"):
            given = getattr(self, name)
            if not callable(given) and not (name == "done" and given is None):
                raise ConfigurationError(f"{name} is {shown(given)}, and not a function", advice=_FORMS[name])


_FORMS = {
    "observe": "write observe=function, where function(moment) returns an observation",
    "act": "write act=function, where function(me, action) publishes what the action says",
    "reward": "write reward=function, where function(moment) returns a number",
    "done": "write done=function, where function(moment) returns True at the end of an episode, or leave it out",
}


def play(
    task: AgentTask,
    policy: Callable[[Any], Any],
    *,
    step: TimeLike | None,
    start: TimeLike = 0,
    until: TimeLike | None = None,
    clock: ClockName = "true",
) -> Callable[[Participant], None]:
    """Return the program of a participant whose actions a policy chooses: a function of the observation.

    On any executor it does what the agent of an environment does that is given the same actions; `until` is the end of
    the run, at which an agent doesn't act any more. The times are those of the `clock`.
    """
    beat = as_beat(step, start, until, clock)

    def program(me: Participant) -> None:
        perform(me, task, beat, lambda moment: None if moment.is_last else policy(own(moment.observation)))

    return program


def perform(
    me: Participant, task: AgentTask, beat: Beat, choose: Callable[[AgentMoment], Any], *, measures: bool = True
) -> None:
    """Be an agent until the episode is over; `choose` is called at every step, also at the last.

    What it returns is copied, so `act` may change it. What it is given stays the agent's: it may not change that.
    Unless it `measures` its rewards, only `choose` sees them: to measure takes a third of the time of a short step.
    """
    observe, act, reward, done = task.observe, task.act, task.reward, task.done
    fitting = _fitting(task, me.name)
    memory: dict[str, Any] = {}
    doing = "observe"
    messages = beat.first(me)
    moment = AgentMoment(0, me.now, messages, None, None, memory)
    try:
        while True:
            doing = "observe"
            moment.observation = fitting(observe(moment), moment.now)
            if moment.number:
                doing = "reward"
                earned = reward(moment)
                moment.reward = _number(earned)
                if measures:
                    me.measure(REWARD, moment.reward)
            if done is not None:
                doing = "done"
                is_done = done(moment)
                moment.is_done = is_done if type(is_done) is bool else _truth(is_done)
            moment.is_end = me.ended or me.now >= beat.end
            doing = "policy"
            chosen = choose(moment)
            if moment.is_last:
                return
            action = own(chosen)
            doing = "act"
            act(me, action)
            messages = beat.next(me)
            moment = AgentMoment(moment.number + 1, me.now, messages, action, moment.observation, memory)
    except WorldlineError:
        raise
    except Exception as error:
        raise ModelError(f"its function `{doing}` raised {said_of(error)}") from error


def _number(earned: Any) -> float:
    """Take a number of whichever class as a reward. A learner that was given a NaN would learn nothing ever after."""
    try:
        number = float(earned)
    except (TypeError, ValueError):
        raise ModelError(f"its function `reward` returned {shown(earned)}, and not a number") from None
    if not isfinite(number):
        raise ModelError(f"its function `reward` returned {shown(earned)}, and not a finite number")
    return number


def _truth(is_done: Any) -> bool:
    """Take NumPy's truth values, too. None or a number would be a slip: a `return` that is missing, or a distance."""
    if getattr(getattr(is_done, "dtype", None), "kind", "") == "b":
        return bool(is_done)
    raise ModelError(f"its function `done` returned {shown(is_done)}, and neither True nor False")


def _fitting(task: AgentTask, agent: str) -> Callable[[Any, int], Any]:
    """Return what makes an observation be in the task's space, if that is given."""
    if task.observation_space is None:
        return lambda observation, _: observation
    from worldline.learning.spaces import fitting  # Here: a policy that has no spaces may have no NumPy either.

    return fitting(task.observation_space, agent)
