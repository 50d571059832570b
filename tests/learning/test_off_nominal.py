"""Agents to which something happens: they boot late, crash, hang, are slow or stopped, or have clocks that are off."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from tests.learning import heating, weighing
from worldline import MS, Federation, Participant, Program, clock, run
from worldline.federation.inprocess.strand import THREADS
from worldline.learning import AgentTask, FederationEnv, ParallelFederationEnv, play
from worldline.model import UsageError

COLD = np.array([-1.0])
TASK = AgentTask(observe=heating.observe, act=heating.act, reward=heating.reward)


@pytest.fixture(params=["greenlets", "threads"], autouse=True)
def strands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "threads":
        monkeypatch.setenv(THREADS, "1")


def with_agent(federation: Federation, name: str, **changes: Any) -> Federation:
    """Return the federation with something else about one participant."""
    return replace(federation, programs={**federation.programs, name: replace(federation.programs[name], **changes)})


def stopping(federation: Federation) -> Federation:
    """Return the federation with somebody who calls an emergency stop at 70 ms."""

    def guard(me: Participant) -> None:
        me.advance(to="70ms")
        me.estop("gate open")

    return replace(federation, programs={**federation.programs, "guard": Program(guard, period="10ms")}, estop="10ms")


# --- One agent ---


def episode(made: FederationEnv, **how: Any) -> list[Any]:
    """Play an episode; return the time of every step, what it gave, and the info."""
    _, info = made.reset(seed=3)
    seen: list[Any] = [(made.now // MS, 0.0, False, False, info)]
    while not (seen[-1][2] or seen[-1][3]):
        _, *rest = made.step(COLD)
        seen.append((made.now // MS, *rest))
    return seen


def test_an_agent_that_crashes_for_good_is_terminated() -> None:
    made = heating.env(heating.federation(faults=["50ms crash heater"]))
    before = made.reset(seed=3)[0]
    for _ in range(2):
        before = made.step(COLD)[0]
    after, gained, terminated, truncated, info = made.step(COLD)
    assert (gained, terminated, truncated, made.now) == (0.0, True, False, 50 * MS)
    assert after.tolist() == before.tolist()
    assert info == {"befell": "heater at 50ms: 50ms crash heater", "incarnation": 0}
    with pytest.raises(UsageError, match="no episode is under way"):
        made.step(COLD)
    assert made.outcome is None
    assert len(episode(made)) == 4


def test_an_agent_that_recovers_goes_on_as_a_new_incarnation() -> None:
    """So does the program of a policy, and it has the same history."""
    faults = ["50ms crash heater 55ms"]
    made = heating.env(heating.federation(faults=faults), done=None)
    seen = episode(made)
    assert [time for time, *_ in seen[:6]] == [0, 20, 40, 120, 140, 160]
    befell = {"befell": "heater at 50ms: 50ms crash heater 55ms", "incarnation": 1}
    assert [info for *_, info in seen[1:6]] == [{}, {}, befell, {}, {}]
    assert seen[3][1] == 0.0  # It doesn't know what it has done before.
    program = play(TASK, lambda observation: COLD, step="20ms", until="1s")
    alone = run(with_agent(heating.federation(faults=faults, seed=3), "heater", run=program))
    assert made.outcome is not None
    assert made.outcome.digest == alone.digest


def test_one_that_would_recover_after_the_end_is_terminated() -> None:
    made = heating.env(heating.federation(faults=["50ms crash heater 2s"]))
    assert [step[2:4] for step in episode(made)][-1] == (True, False)


def test_an_emergency_stop_terminates_the_episode() -> None:
    *_, (now, gained, terminated, truncated, info) = episode(heating.env(stopping(heating.federation())))
    assert (now, gained, terminated, truncated) == (80, 0.0, True, False)
    assert info == {"befell": "emergency stop by guard at 70ms: gate open", "incarnation": 0}


def test_one_that_is_late_is_in_time_for_the_next_beat() -> None:
    hangs = heating.env(heating.federation(faults=["50ms hang heater 55ms"]), done=None)
    assert [time for time, *_ in episode(hangs)[:7]] == [0, 20, 40, 105, 120, 140, 160]
    slow = heating.env(heating.federation(faults=["30ms slow heater 5ms 40ms"]), done=None)
    assert [time for time, *_ in episode(slow)[:7]] == [0, 20, 45, 65, 80, 100, 120]
    boots = heating.env(with_agent(heating.federation(), "heater", boot="30ms"), done=None)
    assert [time for time, *_ in episode(boots)[:3]] == [40, 60, 80]


def test_one_that_crashes_before_its_first_step() -> None:
    made = heating.env(
        with_agent(heating.federation(faults=["10ms crash heater"]), "heater", boot="uniform(9ms, 30ms)")
    )
    with pytest.raises(UsageError, match=r"heater: its program has ended before its first step: .*\(an episode begins"):
        made.reset(seed=1)
    assert made.digest == b""
    made = heating.env(heating.federation(faults=["10ms crash heater"]), start="20ms")
    with pytest.raises(UsageError, match="before its first step: heater at 10ms: 10ms crash heater"):
        made.reset(seed=1)


@pytest.mark.parametrize(
    ("faults", "boot", "said"),
    [
        ([], "uniform(2s, 3s)", r"it boots until 2\.\d+s, and the run ends at 1s \("),
        ([], "2s", r"it boots until 2s, and the run ends at 1s \("),
        (["0s crash heater"], "0s", r"0s crash heater \("),
        (["10ms crash heater 3s"], "uniform(9ms, 30ms)", r"10ms crash heater 3s \("),
        (["0s hang heater 3s"], "0s", r"0s hang heater 3s \("),
    ],
)
def test_what_kept_an_agent_from_its_first_step_is_said(faults: list[str], boot: str, said: str) -> None:
    made = heating.env(with_agent(heating.federation(faults=faults), "heater", boot=boot))
    with pytest.raises(UsageError, match=f"before its first step: {said}"):
        made.reset(seed=1)


def test_the_boot_time_that_a_table_gives_is_the_one_that_is_said() -> None:
    made = heating.env(with_agent(heating.federation(), "heater", boot="uniform(2s, 3s)"))
    with pytest.raises(UsageError, match=r"it boots until 2\.5s"):
        made.reset(seed=1, options={"draws": {"boot/heater": "2500ms"}})


def test_steps_in_local_time() -> None:
    """Of a clock that is slow by a fifth and 5 ms ahead: the first beat that it shows is the second."""
    slow = with_agent(heating.federation(), "heater", clock=clock(offset="5ms", drift="-20%"))
    made = heating.env(slow, clock="local", done=None)
    times = [(made.reset(seed=3), made.now)[1] / MS, *((made.step(COLD), made.now)[1] / MS for _ in range(3))]
    assert times == [18.75, 43.75, 68.75, 93.75]
    seen = episode(made)
    assert len(seen) == 41
    program = play(TASK, lambda observation: COLD, step="20ms", until="1s", clock="local")
    assert made.outcome is not None
    assert made.outcome.digest == run(with_agent(replace(slow, seed=3), "heater", run=program)).digest
    true = heating.env(slow, done=None)
    assert [time for time, *_ in episode(true)[:3]] == [0, 20, 40]


def test_local_time_without_a_clock_is_true_time() -> None:
    assert episode(heating.env(clock="local", done=None)) == episode(heating.env(done=None))
    assert [time for time, *_ in episode(heating.env(clock="local", done=None, start="30ms"))[:2]] == [30, 50]


def test_there_is_no_such_clock() -> None:
    with pytest.raises(UsageError, match=r"there is no clock 'lokal' \(write clock=\"local\""):
        heating.env(clock="lokal")


# --- Several ---

PLAYERS = {"ann": 10**6, "bob": 10**6, "cid": 60}

FATES: dict[str, Federation] = {
    "has none": weighing.federation(),
    "boots late": with_agent(weighing.federation(), "bob", boot="uniform(25ms, 38ms)"),
    "crashes for good": weighing.federation(faults=["35ms crash bob"]),
    "crashes and recovers": weighing.federation(faults=["35ms crash bob 38ms"]),
    "hangs": weighing.federation(faults=["35ms hang bob 38ms"]),
    "is slow": weighing.federation(faults=["15ms slow bob 3ms", "15ms slow cid 27ms"]),
    "is stopped": stopping(weighing.federation()),
    "has a clock": with_agent(weighing.federation(), "bob", clock=clock(offset="2ms", drift="10%")),
}


def several(federation: Federation, **changes: Any) -> ParallelFederationEnv:
    tasks = {name: weighing.task(limit) for name, limit in PLAYERS.items()}
    return weighing.env(federation=federation, tasks=tasks, clock="local", **changes)


def played(made: ParallelFederationEnv, **how: Any) -> list[Any]:
    """Play an episode; return what every step gave."""
    seen: list[Any] = [made.reset(**how)]
    while made.agents:
        seen.append(made.step(weighing.twos(made)))
    return seen


@pytest.mark.parametrize("fate", FATES)
def test_policies_have_the_history_of_the_environment(fate: str) -> None:
    """Whoever is late or down: the same as if each agent's policy were its program."""
    federation = replace(FATES[fate], seed=7)
    made = several(federation)
    seen = played(made, seed=7)
    programs = dict(federation.programs)
    for name, limit in PLAYERS.items():
        program = play(weighing.task(limit), lambda observation: 2, step="10ms", until="200ms", clock="local")
        programs[name] = replace(programs[name], run=program)
    alone = run(replace(federation, programs=programs))
    for name in PLAYERS:
        assert made.digest(name) == alone.members[name].chain
    again = played(made, seed=7)
    assert repr(again) == repr(seen)


@pytest.mark.parametrize("fate", FATES)
def test_pettingzoos_own_tests(fate: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the option 'options'")  # It gives one.
        parallel_api_test(several(FATES[fate]), num_cycles=100)
        parallel_seed_test(lambda: several(FATES[fate]), num_cycles=10)


def test_one_that_boots_late_comes_when_it_is_there() -> None:
    made = several(FATES["boots late"])
    observations, infos = made.reset(seed=1)
    assert [*observations] == [*infos] == made.agents == ["ann", "cid"]
    with pytest.raises(UsageError, match="an action is for bob, which isn't there yet"):
        made.step({"ann": 1, "bob": 1, "cid": 1})
    while "bob" not in made.agents:
        observations, *_, infos = made.step({"ann": 1, "cid": 1})
    assert infos == {"ann": {}, "bob": {}, "cid": {}}
    assert made.agents == ["ann", "bob", "cid"]


def test_one_that_comes_after_the_others_are_done_is_waited_for() -> None:
    tasks = {"ann": weighing.task(0), "bob": weighing.task(10**6), "cid": weighing.task(2)}
    made = weighing.env(federation=FATES["boots late"], tasks=tasks)
    made.reset(seed=1)
    assert made.agents == ["cid"]
    while made.agents == ["cid"]:
        _, _, terminations, _, infos = made.step({"cid": 2})
    assert terminations == {"bob": False, "cid": True}
    assert infos == {"bob": {}, "cid": {}}
    assert made.agents == ["bob"]


def test_one_that_crashes_for_good_leaves_and_the_others_go_on() -> None:
    made = several(FATES["crashes for good"])
    made.reset(seed=1)
    for _ in range(3):
        made.step(weighing.twos(made))
    _, rewards, terminations, truncations, infos = made.step(weighing.twos(made))
    assert terminations == {"ann": False, "bob": True, "cid": False}
    assert not any(truncations.values())
    assert rewards["bob"] == 0.0
    assert infos["bob"] == {"befell": "bob at 35ms: 35ms crash bob", "incarnation": 0}
    assert made.agents == ["ann", "cid"]
    made.step(weighing.twos(made))


def test_one_that_recovers_is_away_meanwhile() -> None:
    """While it is down, actions for it aren't taken, and needn't be given."""
    made = several(FATES["crashes and recovers"])
    made.reset(seed=1)
    infos = [made.step({"ann": 2, "cid": 2, **({"bob": 2} if number < 4 else {})})[-1]["bob"] for number in range(8)]
    befell = {"befell": "bob at 35ms: 35ms crash bob 38ms", "incarnation": 1}
    assert infos == [{}, {}, {}, *[{"away": True}] * 4, befell]
    with pytest.raises(UsageError, match="bob: there is no action for it"):
        made.step({"ann": 2, "cid": 2})


def test_one_that_hangs_acts_when_it_is_back() -> None:
    """It is there at 73 ms, alone, and with the others again at 80 ms."""
    made = several(FATES["hangs"])
    made.reset(seed=1)
    away = []
    for _ in range(9):
        infos = made.step(weighing.twos(made))[-1]
        away.append("".join(name[0] for name, info in infos.items() if info))
    assert away == ["", "", "", "b", "b", "b", "b", "ac", ""]


def test_an_emergency_stop_ends_the_episode_of_all() -> None:
    *_, (_, rewards, terminations, _, infos) = played(several(FATES["is stopped"]), seed=1)
    assert terminations == dict.fromkeys(PLAYERS, True)
    assert rewards == dict.fromkeys(PLAYERS, 0.0)
    assert {info["befell"] for info in infos.values()} == {"emergency stop by guard at 70ms: gate open"}


@pytest.mark.parametrize(
    "source",
    [
        heating.federation(faults=["50ms crash heater 55ms", "300ms hang heater 40ms", "500ms slow room 3ms"]),
        with_agent(heating.federation(), "heater", boot="uniform(0ms, 50ms)"),
        with_agent(heating.federation(), "heater", clock=clock(offset="uniform(-5ms, 5ms)", drift="uniform(-1%, 1%)")),
    ],
    ids=["faults", "boot", "clock"],
)
def test_gymnasiums_checker_has_nothing_to_say(source: Federation) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(heating.env(source, clock="local"), skip_render_check=True)
