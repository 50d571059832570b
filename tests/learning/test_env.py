"""A federation as Gymnasium's environment."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
import warnings
import weakref
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from tests.leaks.running import EXAMPLES
from tests.learning.heating import FORMS, act, doubled, env, federation, idle, observe, reward, room, too_hot, warming
from worldline import Federation, Program, Server, WorldlineError, connect, run
from worldline.federation.inprocess.strand import THREADS
from worldline.learning import AgentMoment, AgentTask, FederationEnv, ParallelFederationEnv, play
from worldline.model import ModelError, UsageError
from worldline.model.errors import ConfigurationError

COLD, HOT = np.array([-1.0]), np.array([1.0])


@pytest.fixture(params=["greenlets", "threads"], autouse=True)
def strands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "threads":
        monkeypatch.setenv(THREADS, "1")
    return str(request.param)


def episode(made: FederationEnv, **how: Any) -> tuple[list[Any], bytes]:
    """Play one episode by a policy; return all that was seen, and the agent's digest."""
    observation, info = made.reset(**how)
    seen: list[Any] = [(observation.tolist(), info)]
    over = False
    while not over:
        observation, gained, terminated, truncated, info = made.step(warming(observation))
        seen.append((observation.tolist(), gained, terminated, truncated, info))
        over = terminated or truncated
    return seen, made.digest


def step_some(made: FederationEnv) -> None:
    """Begin an episode that should fail: others may be ahead of the agent when they do."""
    made.reset(seed=1)
    for _ in range(3):
        made.step(COLD)


def test_gymnasiums_checker_has_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = env()
        check_env(made, skip_render_check=True)


def test_same_seed_and_actions_same_episode() -> None:
    made, other = env(), env()
    first = episode(made, seed=3)
    assert episode(made, seed=3) == first
    assert episode(other, seed=3) == first
    assert episode(other, seed=4) != first


def test_without_a_seed_episodes_follow_from_the_federations() -> None:
    made, other = env(federation(seed=11)), env(federation(seed=11))
    seeds = [made.reset()[1]["seed"] for _ in range(3)]
    assert seeds[0] == 11
    assert len(set(seeds)) == 3
    assert [other.reset()[1]["seed"] for _ in range(3)] == seeds


def test_a_seed_is_a_whole_number() -> None:
    made = env()
    assert made.reset(seed=np.int64(5))[1] == {"seed": 5}  # type: ignore[arg-type]
    assert made.reset(seed=-5)[1] == {"seed": -5}
    with pytest.raises(UsageError, match=r"the seed '5' isn't a whole number"):
        made.reset(seed="5")  # type: ignore[arg-type]


def test_an_episode_that_leaks_is_caught() -> None:
    calls = iter(range(1_000_000))

    def leaky(moment: AgentMoment) -> float:
        return float(next(calls))

    made = env(reward=leaky)
    assert episode(made, seed=3) != episode(made, seed=3)


def test_a_learned_policy_has_the_history_of_the_environment() -> None:
    """The same agent, with and without an environment: in one process, and over sockets."""
    made = env(done=None)
    seen, digest = episode(made, seed=5)
    assert seen[-1][2:4] == (False, True)
    assert made.outcome is not None
    assert made.outcome.members["heater"].chain == digest
    programs = dict(federation().programs)
    task = AgentTask(observe=observe, act=act, reward=reward)
    programs["heater"] = replace(programs["heater"], run=play(task, warming, step="20ms", until="1s"))
    alone = run(federation(programs=programs, seed=5))
    assert alone.digest == made.outcome.digest

    def take_part(server: Server, name: str) -> None:
        with connect(server, name, **programs[name].said()) as me:
            programs[name].run(me)

    with Server(federation(seed=5).plan()) as server:
        threads = [threading.Thread(target=take_part, args=[server, name]) for name in programs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.wait().digest == alone.digest


ALONE = """
import sys
sys.modules.update(dict.fromkeys(["gymnasium", "numpy", "pettingzoo"]))
from worldline import Federation, Program, run
from worldline.learning import AgentTask, play
def observe(moment): return moment.number
def act(me, action): me.log(f"{action}")
def reward(moment): return 0
agent = play(AgentTask(observe=observe, act=act, reward=reward), lambda seen: seen + 1, step="1s", until="3s")
print(run(Federation({"agent": Program(agent)}, until="3s")).now)
"""


def test_a_learned_policy_needs_neither_gymnasium_nor_numpy() -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=100, check=False)
    assert (ran.stdout, ran.stderr) == ("3000000000\n", "")


def test_terminated_and_truncated() -> None:
    made = env()
    made.reset(seed=1)
    last: Any = None
    for _ in range(50):
        last = made.step(HOT)
        if last[2] or last[3]:
            break
    assert last[2:4] == (True, False)
    assert last[0][0] > 25.0
    assert made.outcome is None
    made.reset(seed=1)
    steps = [made.step(COLD) for _ in range(50)]
    assert [step[3] for step in steps] == [False] * 49 + [True]
    assert made.outcome is not None


def test_a_step_may_last_until_the_next_message() -> None:
    made = env(step=None, done=None)
    observation, _ = made.reset(seed=2)
    assert observation[1] == 1  # It has waited for the first.
    times = [0, made.now]
    over = False
    while not over:
        observation, _, terminated, over, _ = made.step(COLD)
        assert not terminated
        assert over or observation[1] >= 1
        times.append(made.now)
    assert times[:-1] == sorted(set(times[:-1]))


def test_the_agent_may_start_later() -> None:
    made = env(start="70ms")
    observation, _ = made.reset(seed=2)
    assert made.now == 70_000_000
    assert observation[1] >= 2


def test_whoever_changes_an_observation_changes_nothing_in_the_run() -> None:
    def lazy(moment: AgentMoment) -> Any:
        return observe(moment) if moment.before is None or moment.messages else moment.before

    made = env(observe=lazy, step="1ms")
    seen, _ = episode(made, seed=1)
    observation, _ = made.reset(seed=1)
    for expected, *_ in seen[1:]:
        action = warming(observation)
        observation[:] = 99.0
        observation = made.step(action)[0]
        assert observation.tolist() == expected


def test_whoever_changes_an_action_in_act_changes_its_own() -> None:
    action = np.array([0.25])
    given = env(reward=lambda moment: float(moment.action[0]), act=doubled)
    whole = ParallelFederationEnv(federation(), {"heater": given.task}, step="20ms")
    given.reset(seed=1)
    whole.reset(seed=1)
    for _ in range(5):
        assert given.step(action)[1] == 0.5
        assert whole.step({"heater": action})[1] == {"heater": 0.5}
        assert action.tolist() == [0.25]
    assert whole.digest("heater") == given.digest


def test_a_policy_may_return_the_same_array_again() -> None:
    action = np.array([0.25])
    task = AgentTask(observe=observe, act=doubled, reward=reward, done=too_hot)
    programs = {**federation().programs, "heater": replace(HEATER, run=play(task, lambda seen: action, step="20ms"))}
    run(federation(programs=programs))
    assert action.tolist() == [0.25]


def test_memory_lasts_for_an_episode() -> None:
    def count(moment: AgentMoment) -> float:
        moment.memory["steps"] = moment.memory.get("steps", 0) + 1
        return float(moment.memory["steps"])

    made = env(reward=count)
    for _ in range(2):
        made.reset(seed=1)
        assert [made.step(COLD)[1] for _ in range(3)] == [1.0, 2.0, 3.0]


# --- Draws ---


def test_what_befalls_participants_befalls_them_in_every_episode() -> None:
    with env(federation(faults=("100ms dropout room",)), step="50ms") as episodes:
        for seed in (1, 2):
            episodes.reset(seed=seed)
            received = [episodes.step(np.zeros(1))[0][1] for _ in range(10)]
            assert received[0] > 0
            assert not any(received[3:])  # What was under way has arrived by then.


def test_draws_are_options_of_an_episode() -> None:
    made = env()
    latencies = {"latency": "10ms", "loss": False}
    seen, _ = episode(made, seed=3, options={"draws": latencies})
    assert [observation[1] for observation, *_ in seen[2:-1]] == [1.0] * (len(seen) - 3)  # Nothing lost, one a step.
    assert episode(made, seed=3)[0] != seen


def test_common_random_numbers_by_name() -> None:
    """Two episodes with seeds of their own have the same network, and not the same noise."""
    made = env(step="1ms", done=None)
    network = {"latency": {"seed": 7}, "loss": {"seed": 7}}

    def arrivals(seed: int, **options: Any) -> tuple[list[float], list[float]]:
        seen, _ = episode(made, seed=seed, **options)
        return [observation[1] for observation, *_ in seen], [observation[0] for observation, *_ in seen]

    first, second = (arrivals(seed, options={"draws": network}) for seed in (1, 2))
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert arrivals(1)[0] != arrivals(2)[0]


def test_draws_that_no_run_makes() -> None:
    made = env(done=None)
    with pytest.raises(UsageError, match="latency/temperature"):
        episode(made, seed=1, options={"draws": {"latency/temperature": "10ms"}})
    with pytest.raises(UsageError, match="latency"):
        made.reset(options={"draws": {"latency": "1h"}})
    made.reset()


FILE = """
until = "1s"
[link]
latency = "uniform(2ms, 30ms)"
loss = 0.1
[[participants]]
name = "room"
entry = "tests.learning.heating:room"
publishes = ["degrees"]
subscribes = ["power"]
period = "20ms"
[[participants]]
name = "heater"
{entry}
publishes = ["power"]
subscribes = ["degrees"]
"""


@pytest.mark.parametrize("entry", ["", 'entry = "tests.learning.heating:idle"', 'command = "heat --up"'])
def test_from_a_file(tmp_path: Path, entry: str) -> None:
    """Whether the agent has a program there doesn't matter."""
    file = tmp_path / "heating.toml"
    file.write_text(FILE.format(entry=entry))
    assert episode(env(file), seed=3) == episode(env(), seed=3)
    assert len(episode(env(str(file), settings=["until=100ms", "link.latency=1ms"]), seed=3)[0]) == 6
    assert len(episode(env(file, until="60ms"), seed=3)[0]) == 4


def test_from_a_file_with_a_whole_program(tmp_path: Path) -> None:
    file = tmp_path / "heating.toml"
    text = FILE.format(entry='entry = "tests.learning.test_env:HEATER"')
    file.write_text(text.replace('publishes = ["power"]\nsubscribes = ["degrees"]', ""))
    assert episode(env(file), seed=3) == episode(env(), seed=3)


HEATER = Program(idle, publishes=["power"], subscribes=["degrees"])


# --- What is left behind ---


def careful_federation(unwound: list[int]) -> Federation:
    """A federation whose room says when it has been unwound."""

    def careful(me: Any) -> None:
        try:
            room(me)
        finally:
            unwound.append(me.now)

    return federation(programs={**federation().programs, "room": replace(federation().programs["room"], run=careful)})


def test_nothing_is_left_of_an_episode() -> None:
    unwound: list[int] = []
    before = threading.active_count()
    made = env(careful_federation(unwound))
    made.reset(seed=1)
    made.step(COLD)
    made.reset(seed=1)
    assert len(unwound) == 1
    made.step(COLD)
    made.close()
    assert len(unwound) == 2
    made.close()
    assert threading.active_count() == before
    episode(made, seed=1)  # It may be used again.
    assert len(unwound) == 3
    made.reset(seed=2)
    made.step(COLD)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    assert len(unwound) == 4
    assert threading.active_count() == before


@pytest.mark.parametrize("call", ["reset", "close"])
def test_one_that_is_collected_in_another_thread_is_unwound_in_its_own(call: str) -> None:
    unwound: list[int] = []
    kept = [env(careful_federation(unwound)) for _ in range(2)]
    for made in kept:
        made.reset(seed=1)
        made.step(COLD)
    del made
    before = threading.active_count()
    other = env()
    collector = threading.Thread(target=lambda: (kept.clear(), gc.collect(), other.close()))
    collector.start()
    collector.join()
    getattr(other, call)()
    assert len(unwound) == 2
    other.close()
    assert threading.active_count() <= before


UNCLOSED = """
from tests.learning.heating import env
from tests.learning.test_env import COLD, federation, replace, room

def careful(me):
    try:
        room(me)
    finally:
        print("unwound")

whole = federation()
made = env(replace(whole, programs={**whole.programs, "room": replace(whole.programs["room"], run=careful)}))
made.reset(seed=1)
made.step(COLD)
"""


def test_one_that_nobody_closes_is_closed_when_the_process_ends() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNCLOSED],
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("unwound\n", "")


def test_one_may_be_closed_in_the_middle_of_another() -> None:
    """As the garbage collector does, wherever it is called."""
    other = env()
    other.reset(seed=1)
    other.step(COLD)

    def closing(moment: AgentMoment) -> Any:
        other.close()
        return observe(moment)

    assert episode(env(observe=closing), seed=3) == episode(env(), seed=3)
    episode(other, seed=1)


@pytest.mark.parametrize("call", ["close", "reset", "step"])
def test_none_is_used_from_inside(call: str) -> None:
    made: list[FederationEnv] = []

    def confused(moment: AgentMoment) -> Any:
        if moment.number == 1:
            getattr(made[0], call)(*([COLD] if call == "step" else []))
        return observe(moment)

    made.append(env(observe=confused))
    made[0].reset(seed=1)
    with pytest.raises(UsageError, match=r"heater at 20ms: the run (is going on|goes on in the thread)"):
        made[0].step(COLD)
    with pytest.raises(UsageError, match="no episode is under way"):
        made[0].step(COLD)


@pytest.mark.long
def test_episodes_by_the_thousand_need_no_more_memory(strands: str) -> None:
    made = env(federation(until="60ms"))

    def play_many(count: int) -> None:
        for number in range(count):
            made.reset(seed=number)
            while not any(made.step(COLD)[2:4]) and number % 2:  # Every other one is broken off.
                pass

    count = 400 if strands == "greenlets" else 100
    play_many(20)
    gc.collect()
    objects = len(gc.get_objects())
    tracemalloc.start()
    try:
        play_many(20)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        play_many(count)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - size
    finally:
        tracemalloc.stop()
    assert grown < 200 * count  # Bytes; an episode has tens of thousands. Tables that are kept grow by a few in all.
    assert len(gc.get_objects()) - objects < count


# --- What isn't right ---


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (np.zeros(2), r"heater: the action has the shape \(2,\), and its space \(1,\) \(actions are in Box"),
        (0.5, r"heater: the action 0\.5 isn't an array \(actions are in Box"),
        ([0.5], r"isn't an array"),
        (np.array([3.0]), r"heater: the action array\(\[3\.\]\) isn't in its space"),
        (np.array([np.nan]), "isn't in its space"),
        ("up", "isn't an array"),
        (None, "isn't an array"),
    ],
)
def test_wrong_actions(action: Any, said: str) -> None:
    made = env()
    made.reset(seed=1)
    with pytest.raises(UsageError, match=said):
        made.step(action)
    made.step(COLD)  # It goes on as if nothing had been said.


def test_steps_outside_of_an_episode() -> None:
    made = env(until="20ms")
    said = r"heater: no episode is under way \(call reset\(\) first\)"
    with pytest.raises(UsageError, match=said):
        made.step(COLD)
    made.reset(seed=1)
    assert made.step(COLD)[3]
    with pytest.raises(UsageError, match=said):
        made.step(COLD)
    made.reset()
    made.close()
    with pytest.raises(UsageError, match=said):
        made.step(COLD)


def test_wrong_agents() -> None:
    def made(name: str, source: Federation | None = None) -> FederationEnv:
        return FederationEnv(
            source or federation(), name, observe=observe, act=act, reward=reward, done=too_hot, step="20ms", **FORMS
        )

    with pytest.raises(ConfigurationError, match=r"no participant 'haeter' to be the agent \(did you mean 'heater'\?"):
        made("haeter")
    with pytest.raises(ConfigurationError, match=r"\(participants are heater, room\)"):
        made("xyz")
    programs = {**federation().programs, "late": Program(idle, guest=True)}
    with pytest.raises(ConfigurationError, match="the agent late is a guest"):
        made("late", federation(programs=programs))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"done": None, "source": federation(until=None)}, "an episode would never end"),
        ({"step": "0ms"}, "the step of an environment is 0"),
        ({"step": "soon"}, "soon"),
        ({"until": "never"}, "never"),
        ({"reward": 1.0}, r"reward is 1\.0, and not a function"),
        ({"observe": None}, "observe is None, and not a function"),
        ({"action_space": (1,)}, r"heater: action_space is \(1,\), and not a space"),
        ({"source": federation}, r"is neither a Federation nor .* \(call the function"),
        ({"source": "model.py"}, r"model\.py isn't a federation's file"),
        ({"source": "there_is_none.toml"}, r"there_is_none\.toml"),
        (
            {"source": "x.toml", "settings": "until=2s"},
            r"'until=2s' is one text, and settings are a list \(write \['until",
        ),
        ({"settings": ["until=2s"]}, "settings change a federation's file"),
    ],
)
def test_what_is_refused_before_any_episode(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        env(**changes)


def test_functions_that_raise() -> None:
    def broken(moment: AgentMoment) -> Any:
        return moment.observation[7]

    for name in ("observe", "reward", "done"):
        made = env(**{name: broken})
        with pytest.raises(
            ModelError, match=rf"^heater at (0s|20ms): its function `{name}` raised .*, in .*test_env\.py, line \d+"
        ):
            step_some(made)
        with pytest.raises(UsageError, match="no episode is under way"):
            made.step(COLD)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("reward", "much", "its function `reward` returned 'much', and not a number"),
        ("reward", None, "its function `reward` returned None, and not a number"),
        ("reward", float("nan"), "its function `reward` returned nan, and not a finite number"),
        ("reward", np.float32("-inf"), r"its function `reward` returned np.float32\(-inf\), and not a finite number"),
        ("done", None, "its function `done` returned None, and neither True nor False"),
        ("done", 1, "its function `done` returned 1, and neither"),
    ],
)
def test_functions_that_return_something_else(name: str, value: object, said: str) -> None:
    made = env(**{name: lambda moment: value})
    with pytest.raises(ModelError, match=said):
        step_some(made)


def test_numpys_numbers_and_truths_are_as_good_as_pythons() -> None:
    made = env(reward=lambda moment: np.float32(2.5), done=lambda moment: np.bool_(moment.number == 2))
    made.reset(seed=1)
    assert made.step(COLD)[1:3] == (2.5, False)
    assert made.step(COLD)[2] is True


def test_another_participant_that_fails() -> None:
    def failing(me: Any) -> None:
        me.advance(by="30ms")
        raise RuntimeError("burnt out")

    programs = {**federation().programs, "room": Program(failing)}
    made = env(federation(programs=programs))
    with pytest.raises(ModelError, match="room at 30ms: its program raised RuntimeError: burnt out"):
        step_some(made)
    with pytest.raises(UsageError, match="no episode"):
        made.step(COLD)


def observing(space: Any, *seen: Any) -> FederationEnv:
    """Return an environment that shows one thing after the other; `reward` and `done` take what is in its space."""

    def show(moment: AgentMoment) -> Any:
        return seen[min(moment.number, len(seen) - 1)]

    def check(moment: AgentMoment) -> bool:
        assert space.contains(moment.observation)
        return False

    return env(observe=show, reward=check, done=check, observation_space=space)


BOX = spaces.Box(-1.0, 0.7, (2,), np.float32)
LARGE = spaces.Box(-1.0, 1.0, (5, 5), np.float32)
BYTES = spaces.Box(0, 255, (2,), np.uint8)


@pytest.mark.parametrize(
    ("space", "seen", "expected"),
    [
        (BOX, np.array([0.1, 0.7]), np.array([0.1, 0.7], np.float32)),
        (BOX, [0, -1], np.array([0.0, -1.0], np.float32)),
        (BYTES, [0, 255], np.array([0, 255], np.uint8)),
        (spaces.Box(-1.0, 1.0, (), np.float32), 0.5, np.array(0.5, np.float32)),
        (spaces.Discrete(3, start=1), 3, np.int64(3)),
        (spaces.Discrete(3), True, np.int64(1)),
        (spaces.MultiBinary(2), [True, False], np.array([1, 0], np.int8)),
        (spaces.Tuple([spaces.Discrete(2), BOX]), [1, (0, 0)], (np.int64(1), np.array([0.0, 0.0], np.float32))),
        (spaces.Dict({"place": BOX}), {"place": (0, 0)}, {"place": np.array([0.0, 0.0], np.float32)}),
        (spaces.Text(5), "warm", "warm"),
    ],
    ids=str,
)
def test_observations_are_of_the_type_of_their_space(space: Any, seen: Any, expected: Any) -> None:
    made = observing(space, seen)
    for observation in (made.reset(seed=1)[0], made.step(COLD)[0]):
        assert repr(observation) == repr(expected)
        assert getattr(observation, "dtype", None) == getattr(expected, "dtype", None)


@pytest.mark.parametrize(
    ("space", "good", "bad", "said"),
    [
        (
            BOX,
            [0, 0],
            np.zeros(3),
            r"an array of shape \(3,\) and type float64: .*, which has the shape \(3,\), and its",
        ),
        (BOX, [0, 0], [0.0, 0.71], r"\[0\.0, 0\.71\], which isn't in its space"),
        (BOX, [0, 0], [0.0, np.nan], "which isn't in its space"),
        (LARGE, np.zeros((5, 5)), np.full((5, 5), 2), "which isn't in its space"),
        (LARGE, np.zeros((5, 5)), np.full((5, 5), np.nan), "which isn't in its space"),
        (BOX, [0, 0], "warm", "'warm', which isn't an array of numbers"),
        (BOX, [0, 0], None, "None, which isn't an array of numbers"),
        (BOX, [0, 0], [[1], [1, 2]], "which isn't an array"),
        (spaces.Box(-np.inf, np.inf, (1,), np.float32), [0], [1e300], "which is too large for float32"),
        (BYTES, [0, 0], [0, 256], "which is too large for uint8"),
        (BYTES, [0, 0], [0.0, 0.5], "which has the type float64, and its space uint8"),
        (spaces.Discrete(3), 0, 3, "3, which isn't in its space"),
        (spaces.Discrete(3), 0, 1.0, r"1\.0, which isn't a whole number"),
        (spaces.MultiBinary(2), [0, 1], [0, 2], "which isn't in its space"),
        (spaces.Dict({"place": BOX}), {"place": [0, 0]}, {"place": [9, 9]}, "of which 'place' is .*, which isn't in"),
        (spaces.Dict({"place": BOX}), {"place": [0, 0]}, {}, "which isn't a dict of place"),
        (spaces.Tuple([BOX]), ([0, 0],), (), "which isn't a tuple of 1"),
        (spaces.Text(5), "warm", "too warm", "which isn't in its space"),
    ],
    ids=str,
)
def test_observations_that_arent_in_their_space(space: Any, good: Any, bad: Any, said: str) -> None:
    with pytest.raises(
        ModelError, match=f"^heater at 0s: its function `observe` returned .*{said}.*observations are in"
    ):
        observing(space, bad).reset()
    made = observing(space, good, bad)
    made.reset()
    with pytest.raises(ModelError, match=f"^heater at 20ms: its function `observe` returned .*{said}"):
        made.step(COLD)
    with pytest.raises(UsageError, match="no episode is under way"):
        made.step(COLD)


def test_an_episode_that_is_done_when_it_begins() -> None:
    made = env(done=lambda moment: True)
    made.reset(seed=1)
    assert made.step(COLD)[2:4] == (True, False)


def test_a_run_that_ends_before_the_first_step() -> None:
    with pytest.raises(UsageError, match="heater at 1s: the run had ended before its first step"):
        env(start="2s").reset()


def test_options_that_nobody_knows() -> None:
    with pytest.warns(UserWarning, match=r"the option 'drawz' is nothing .* \(did you mean 'draws'\?\)"):
        env().reset(options={"drawz": {}})


def test_one_can_be_copied_before_its_first_episode() -> None:
    made = env()
    fresh = deepcopy(made)
    expected = episode(made, seed=1)
    assert episode(fresh, seed=1) == expected
    made.reset(seed=1)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"can't be copied or pickled once .* \(do so before its first reset"):
            deepcopy(made)
        made.close()


def test_a_copy_that_nobody_closes_is_unwound_as_any_other() -> None:
    unwound: list[int] = []
    copied = [deepcopy(env(careful_federation(unwound)))]
    copied[0].reset(seed=1)
    copied[0].step(COLD)
    copied.clear()
    gc.collect()
    assert len(unwound) == 1


@pytest.mark.parametrize("options", [[1], [], "draws", 3])
def test_options_are_a_dict(options: Any) -> None:
    with pytest.raises(UsageError, match=r"the options of a reset are .*, and not a dict \(write options="):
        env().reset(options=options)


def test_a_thread_of_its_own() -> None:
    made = env()
    made.reset(seed=1)
    said: list[Exception] = []

    def use() -> None:
        try:
            made.step(COLD)
        except WorldlineError as error:
            said.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "in the thread that has begun it" in str(said[0])
    made.step(COLD)


def test_spaces_of_other_kinds() -> None:
    made = env(action_space=spaces.Discrete(2), act=lambda me, action: act(me, [float(action)]))
    made.reset(seed=1)
    made.step(1)
    with pytest.raises(UsageError, match="the action 2 isn't in its space"):
        made.step(2)
