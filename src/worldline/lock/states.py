"""The states of a participant and of a run, and every legal transition, as data.

The arbiter and the ledger look their moves up here and refuse what isn't there; the diagram in the documentation is
drawn from these tables (`diagram`), and a test compares the two.
"""

from __future__ import annotations

from enum import Enum

from worldline.lock.events import (
    Abort,
    Advance,
    Barrier,
    CallOff,
    Down,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Lost,
    Next,
    Over,
    Peek,
    Promise,
    Publish,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
)


class State(Enum):
    """Where a participant is."""

    EXPECTED = "expected"
    """On the roster, or invited, and not there yet."""
    JOINED = "joined"
    """There, and waiting for its start."""
    COMPUTING = "computing"
    """Past a sequence point: it may act, and only the participant itself moves on from here."""
    ADVANCING = "advancing"
    """Waiting for a sequence point at a time that it has named."""
    AWAITING = "awaiting"
    """Asleep until its next message."""
    PEEKING = "peeking"
    """Waiting to know what comes next, and free to act from its own time on."""
    LEFT = "left"


WAITING = (State.ADVANCING, State.AWAITING, State.PEEKING)
ASKING = (*WAITING, State.JOINED)
STARTED = (State.COMPUTING, *WAITING)


class Phase(Enum):
    """Where a run is."""

    GATHERING = "gathering"
    RUNNING = "running"
    OVER = "over"


_ACTS: dict[type, State] = dict.fromkeys(
    (Publish, Promise, Reached, Subscribe, Unsubscribe, Down, Invite, Stop, Log), State.COMPUTING
)

TRANSITIONS: dict[State, dict[type, State]] = {
    State.EXPECTED: {Join: State.JOINED},
    State.JOINED: {StartRun: State.COMPUTING, Lost: State.EXPECTED, Grant: State.LEFT},  # It has ended without it.
    State.COMPUTING: {**_ACTS, Advance: State.ADVANCING, Next: State.AWAITING, Peek: State.PEEKING, Leave: State.LEFT},
    State.ADVANCING: {Grant: State.COMPUTING},
    State.AWAITING: {Grant: State.COMPUTING},
    State.PEEKING: {Grant: State.COMPUTING},
    State.LEFT: {},
}

PHASES: dict[Phase, dict[type, Phase]] = {
    Phase.GATHERING: {
        StartRun: Phase.RUNNING,
        Barrier: Phase.GATHERING,
        Lost: Phase.GATHERING,  # Nothing has happened yet that couldn't happen without it: it is expected again.
        CallOff: Phase.OVER,
        Abort: Phase.OVER,
    },
    Phase.RUNNING: {
        Barrier: Phase.RUNNING,
        Stop: Phase.RUNNING,
        Lost: Phase.OVER,
        CallOff: Phase.OVER,
        Abort: Phase.OVER,
        Over: Phase.OVER,
    },
    Phase.OVER: {Lost: Phase.OVER, CallOff: Phase.OVER},  # All go when a run is over: that is no news.
}


# What a participant itself may say in a state: the table without the arbiter's own moves.
LEGAL: dict[State, frozenset[type]] = {
    state: frozenset([kind for kind in moves if kind not in (StartRun, Grant, Lost)])
    for state, moves in TRANSITIONS.items()
}


class StateRow:
    """A state with what is legal in it and where each move leads: the tables above, joined for quick walking.

    `ended` says that the run has ended for a participant that stands here.
    """

    __slots__ = ("ended", "legal", "moves", "state")

    def __init__(self, state: State, *, ended: bool = False) -> None:
        self.state = state
        self.ended = ended
        self.legal = LEGAL[state]
        self.moves: dict[type, StateRow] = {}


ROWS = {state: StateRow(state) for state in State}
RETIRED = StateRow(State.COMPUTING, ended=True)
"""Where one stands that has been told that the run has ended for it: others go on by that, so it can only leave."""
GONE = StateRow(State.LEFT, ended=True)
"""Where it is then, or one whom the run has ended without."""

for _row in ROWS.values():
    _row.moves.update({kind: ROWS[target] for kind, target in TRANSITIONS[_row.state].items()})
ROWS[State.JOINED].moves[Grant] = GONE
RETIRED.legal = frozenset((Leave,))
RETIRED.moves[Leave] = GONE


def diagram() -> str:
    """Draw the participant's table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.EXPECTED.value}"]
    for state, moves in TRANSITIONS.items():
        by_target: dict[State, list[str]] = {}
        for kind, target in moves.items():
            by_target.setdefault(target, []).append(kind.__name__)
        for target, names in by_target.items():
            lines.append(f"    {state.value} --> {target.value}: {', '.join(names)}")
    lines.append(f"    {State.LEFT.value} --> [*]")
    return "\n".join(lines) + "\n"
