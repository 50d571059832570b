"""A federation as PettingZoo's parallel environment."""

from __future__ import annotations

import threading

import pytest

from tests.learning.weighing import env, task, twos
from worldline.federation.inprocess.strand import THREADS
from worldline.model import ModelError, UsageError
from worldline.model.errors import ConfigurationError

pytestmark = pytest.mark.filterwarnings("ignore:the option 'options'")  # PettingZoo's own test gives one.


@pytest.fixture(params=["greenlets", "threads"], autouse=True)
def strands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "threads":
        monkeypatch.setenv(THREADS, "1")


def test_agents_leave_one_by_one() -> None:
    made = env()
    made.reset(seed=1)
    left: dict[str, int] = {}
    steps = 0
    while made.agents:
        before = list(made.agents)
        observations, rewards, terminations, truncations, _ = made.step(twos(made))
        steps += 1
        assert list(observations) == list(rewards) == before
        for name in before:
            if terminations[name] or truncations[name]:
                left[name] = steps
                assert terminations[name] == (name != "bob")
    assert left["ann"] < left["cid"] < left["bob"] == 20
    assert made.outcome is not None
    assert made.outcome.members["ann"].at == left["ann"] * 10_000_000


def test_when_all_are_done_the_run_is_broken_off() -> None:
    threads = threading.active_count()
    made = env(tasks={"ann": task(4), "bob": task(4), "cid": task(4)})
    for _ in range(3):
        made.reset(seed=3)
        while made.agents:
            made.step(twos(made))
        assert made.outcome is None
    assert threading.active_count() == threads
    with pytest.raises(UsageError, match=r"no episode is under way \(call reset"):
        made.step({})


def test_wrong_actions() -> None:
    made = env()
    made.reset(seed=1)
    for wrong in (None, 3, [1, 1, 1]):
        with pytest.raises(
            UsageError, match=r"the actions are .*, and not a dict \(give an action for each of ann, bob"
        ):
            made.step(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="bob: there is no action for it"):
        made.step({"ann": 1, "cid": 1})
    with pytest.raises(UsageError, match=r"an action is for dan, which isn't an agent \(agents are ann, bob, cid\)"):
        made.step({**twos(made), "dan": 1})
    with pytest.raises(UsageError, match="cid: the action 7 isn't in its space"):
        made.step({"ann": 1, "bob": 1, "cid": 7})
    while "ann" in made.agents:
        made.step(twos(made))
    with pytest.raises(UsageError, match="an action is for ann, which is done"):
        made.step({**twos(made), "ann": 1})
    made.step(twos(made))


def test_what_is_refused_before_any_episode() -> None:
    with pytest.raises(ConfigurationError, match=r"\{\} are no agents"):
        env(tasks={})
    with pytest.raises(ConfigurationError, match="ann: None isn't an AgentTask"):
        env(tasks={"ann": None})
    with pytest.raises(ConfigurationError, match="ann: action_space is None"):
        env(tasks={"ann": task(1, action_space=None)})
    with pytest.raises(ConfigurationError, match="no participant 'amn' to be the agent"):
        env(tasks={"amn": task(1)})
    with pytest.raises(ConfigurationError, match="several agents act at the same times"):
        env(step=None)


def test_a_function_that_raises_ends_the_episode() -> None:
    made = env(tasks={"ann": task(10), "bob": task(10, reward=lambda moment: 1 / 0)})
    made.reset(seed=1)
    with pytest.raises(ModelError, match=r"bob at 10ms: its function `reward` raised ZeroDivisionError"):
        made.step({"ann": 1, "bob": 1})
    made.reset(seed=1)
    made.close()
    assert made.agents == []
