"""The tables of states: total, closed, and drawn as they are."""

from __future__ import annotations

from typing import get_args

from worldline.lock import Abort, Grant, Leave, Over, ParticipantEvent, StartRun, Stop
from worldline.lock.events import OperatorEvent
from worldline.lock.states import GONE, PHASES, RETIRED, ROWS, TRANSITIONS, Phase, State, diagram

PARTICIPANT_EVENTS = set(get_args(ParticipantEvent))
OPERATOR_EVENTS = set(get_args(OperatorEvent))

DIAGRAM = """\
stateDiagram-v2
    [*] --> expected
    expected --> joined: Join
    joined --> computing: StartRun
    joined --> expected: Lost
    joined --> left: Grant
    computing --> computing: Publish, Promise, Reached, Subscribe, Unsubscribe, Down, Invite, Stop, Log
    computing --> advancing: Advance
    computing --> awaiting: Next
    computing --> peeking: Peek
    computing --> left: Leave
    advancing --> computing: Grant
    awaiting --> computing: Grant
    peeking --> computing: Grant
    left --> [*]
"""


def reachable(table: dict, start: State | Phase) -> set:
    reached, frontier = {start}, [start]
    while frontier:
        for target in table[frontier.pop()].values():
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    return reached


def test_every_state_and_phase_can_be_reached_from_the_first() -> None:
    assert reachable(TRANSITIONS, State.EXPECTED) == set(State)
    assert reachable(PHASES, Phase.GATHERING) == set(Phase)


def test_the_end_can_be_reached_from_every_state_and_nothing_follows_it() -> None:
    assert all(State.LEFT in reachable(TRANSITIONS, state) for state in State)
    assert all(Phase.OVER in reachable(PHASES, phase) for phase in Phase)
    assert TRANSITIONS[State.LEFT] == {}
    assert set(PHASES[Phase.OVER].values()) == {Phase.OVER}


def test_everything_that_a_participant_can_say_is_legal_in_one_state_and_only_there() -> None:
    said = [kind for moves in TRANSITIONS.values() for kind in moves if kind in PARTICIPANT_EVENTS]
    assert sorted(kind.__name__ for kind in said) == sorted(kind.__name__ for kind in PARTICIPANT_EVENTS)


def test_whom_the_run_has_ended_for_can_only_leave() -> None:
    assert (RETIRED.state, RETIRED.legal, RETIRED.moves) == (State.COMPUTING, {Leave}, {Leave: GONE})
    assert (GONE.state, GONE.legal, GONE.moves) == (State.LEFT, frozenset(), {})
    assert RETIRED.ended
    assert GONE.ended
    assert ROWS[State.JOINED].moves[Grant] is GONE
    assert not any(row.ended for row in ROWS.values())


def test_everything_that_an_operator_can_say_is_possible_until_the_run_is_over() -> None:
    assert OPERATOR_EVENTS - set(PHASES[Phase.GATHERING]) == {Stop}  # There is nothing to stop before the start.
    assert set(PHASES[Phase.RUNNING]) >= OPERATOR_EVENTS
    for phase in (Phase.GATHERING, Phase.RUNNING):
        assert set(PHASES[phase]) - OPERATOR_EVENTS <= {StartRun, Abort, Over}


def test_the_diagram_is_drawn_from_the_table() -> None:
    assert diagram() == DIAGRAM


def test_the_diagram_shows_every_move() -> None:
    text = diagram()
    for state, moves in TRANSITIONS.items():
        for kind, target in moves.items():
            (line,) = (x for x in text.splitlines() if x.strip().startswith(f"{state.value} --> {target.value}:"))
            assert kind.__name__ in line.split(": ")[1].split(", ")
