"""Runs the program of one participant alone, fed from a recording: in this thread, so that a debugger has it all.

Whatever it does is compared with what it did in the recorded run. No other takes part, so it costs what the program
itself costs, and may stand in a debugger for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Program, blame, is_debugger_quit, run_program_out
from worldline.history.replay import RetoldDifference
from worldline.lock import Join, StartRun
from worldline.lock.arbiter import Arbiter
from worldline.lock.feeding import Feeding, FeedingOver
from worldline.lock.lifecycle import with_estop
from worldline.model import Interrupted, ModelError, Plan, WorldlineError
from worldline.model.blame import own_line, said_of
from worldline.model.lifecycle import UNEVENTFUL, Lifecycle
from worldline.model.path import Paths
from worldline.model.payload import PAYLOAD_MAX

Call = Callable[[Callable[[Participant], object], Participant], object]
"""Calls a program, such as a debugger does."""


@dataclass
class SoloReplay:
    """What came of it. Unless it `is_whole`, it was stopped: it differs, or the recording ends before its run did.

    `failure` is what its program raised, where it may have done so in the recorded run as well.
    """

    name: str
    now: int = 0
    sent: int = 0
    compared: int = 0
    is_whole: bool = False
    digest: bytes = b""
    failure: str = ""
    differences: list[RetoldDifference] = field(default_factory=list)


def replay_alone(
    program: Program,
    feed: Callable[[Callable[[RetoldDifference], None]], Feeding],
    *,
    differs: Callable[[RetoldDifference], bool] = lambda _: True,
    call: Call = lambda run, participant: run(participant),
    payload_max: int = PAYLOAD_MAX,
    life: Lifecycle = UNEVENTFUL,
) -> SoloReplay:
    """Run a program to its end, or to the first difference at which `differs` says so.

    `feed` makes what it is fed by, which is to call what it is given with each difference. `life` is what its
    run's plan has in store for it.
    """
    found: list[RetoldDifference] = []

    def take(difference: RetoldDifference) -> None:
        found.append(difference)
        if differs(difference):
            feeding.stop()

    feeding = feed(take)
    name = feeding.part.name
    ledger = program.ledger(name, life)
    ledger.payload_max = payload_max
    participant = Participant(ledger, feeding)
    done = SoloReplay(name, differences=found)
    try:
        participant.join()
        run_program_out(lambda me: call(program.run, me), participant)
        participant.leave()
        done.is_whole = True
    except FeedingOver:  # It differs, or the recording ends here.
        pass
    except Interrupted as error:
        raise error.concerning(name, ledger.now) from error.__cause__
    except (Exception, SystemExit) as error:
        if is_debugger_quit(error):
            raise ModelError(blame(error), participant=name, at=ledger.now) from error
        if isinstance(error, WorldlineError) and own_line(error) is None:  # Its program didn't lead to this.
            raise error.concerning(name, ledger.now) from error.__cause__
        try:
            participant.catch_up()  # It may be further on than it has said, since what comes next was known to it.
        except FeedingOver:
            difference = None  # By then, it has missed something.
        else:
            difference = feeding.failure(said_of(error))
        if difference is None:
            done.failure = said_of(error)
        else:
            found.append(difference)
    done.now, done.sent, done.compared = feeding.now, feeding.part.sent, feeding.part.compared
    done.digest = participant.digest
    return done


def reach_in(plan: Plan, joins: Mapping[str, Join], name: str) -> int:
    """Return how far a participant may peek in a run of these: that follows from what they declare."""
    if plan.network.estop is not None:
        joins = {each: with_estop(joins.get(each, Join())) for each in (*plan.roster, *joins)}
    if name not in plan.roster:  # It was invited, so others could be, too.
        paths = Paths(plan.network, plan.seed)
        topics = [each.topic for each in joins[name].subscribes if each.buffer.limit != 0]
        return min([plan.network.control_latency, *(paths.least_into(topic, name) for topic in topics)])
    arbiter = Arbiter(plan, None)
    actions = [action for each in plan.roster for action in arbiter.handle(each, joins.get(each, Join()))]
    return next(action.reach for action in actions if isinstance(action, StartRun) and action.to == name)


def rules_alone(joins: Mapping[str, Join], name: str) -> bool:
    """Whether a participant may invite and stop, and no other."""
    return [each for each, join in joins.items() if join.controls] == [name]
