"""Takes agents from one core to another, with all that belongs to them: for workers at the start, and when they move.

What the core knows of them it packs itself; here it is put together with what users' code has a part in.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from worldline.kernel.model import restored, state_of
from worldline.kernel.share import LeftBehind
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.spacetime.agent import Agent, AgentWrapper
from worldline.spacetime.core import Core
from worldline.spacetime.lanes import Body
from worldline.spacetime.reference import moving

_OWN = ("_wl_body", "_wl_core")


@contextmanager
def _moving(core: Core) -> Iterator[None]:
    """Let channels be copied meanwhile."""
    before = moving.core
    moving.core = core
    try:
        yield
    finally:
        moving.core = before


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let the garbage collector rest while many objects are made, of which none is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def packed(core: Core, bodies: Iterable[Body]) -> bytes:
    """Return bodies with their agents and lanes, as bytes; refuse what can't be sent."""
    core.let_go()
    chosen = {body.name: body for body in bodies}
    with _moving(core), _uncollected():
        told = [_packed_body(body) for body in chosen.values()]
        return pickle.dumps((told, core.lanes_of(chosen)), protocol=5)


def packed_if_possible(core: Core, bodies: Sequence[Body]) -> tuple[list[str], bytes]:
    """Return those bodies that can be sent, and their names: an agent may have got hold of something that can't."""
    try:
        return [body.name for body in bodies], packed(core, bodies)
    except ConfigurationError:
        able = [body for body in bodies if _is_able(core, body)]
        return [body.name for body in able], packed(core, able)


def _is_able(core: Core, body: Body) -> bool:
    try:
        packed(core, [body])
    except ConfigurationError:  # It stays where it is, and nobody notices.
        return False
    return True


def unpacked(core: Core, data: bytes) -> None:
    """Let packed bodies live in a core. Its `homes` say where others do, whatever it was when these were packed."""
    with _moving(core), _uncollected():
        bodies, lanes = _loaded(data)
        arrived = [(core.arrive(name, state), rest) for name, state, *rest in bodies]
        core.take_lanes(lanes)
        for body, (timers, kind, state) in arrived:
            if timers is not None:
                _take_timers(core, body, *timers)
            _take_agent(core, body, kind, _loaded(state))
            core.wake(body)
        for body, _ in arrived:
            for each in list(body.outs):
                if not each.is_news and not each.handle:  # Its channel was garbage, and has stayed behind.
                    core.give_up(each)


def _loaded(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"a worker can't load the agents: {error}", advice="define their classes at the top level of a module"
        ) from error
    except Exception as error:  # An attribute's own code may raise anything.
        raise ConfigurationError(
            f"a worker can't load the agents: {type(error).__name__}: {error}", advice="can they be pickled?"
        ) from error


def _packed_body(body: Body) -> tuple[Any, ...]:
    timers = None if body.timer is None else (body.timer.sent, body.timer.timers)
    _check_kind(body)
    return body.name, body.state(), timers, type(body.agent), _packed_state(body.agent)


def _packed_state(agent: Agent) -> bytes:
    """Return the attributes of an agent; say which it is that can't go."""
    state = own_state(agent)
    try:
        return pickle.dumps(state, protocol=5)
    except Exception:  # An attribute's own code may raise anything; which one it was is found now.
        for attribute, value in state.items():
            try:
                pickle.dumps(value, protocol=5)
            except Exception as error:
                reason = error.problem if isinstance(error, WorldlineError) else str(error)
                raise ConfigurationError(
                    f"its attribute {attribute} can't be sent to a worker: {reason}",
                    participant=agent.name,
                    advice="keep what can be pickled, and channels to other agents",
                ) from error
        raise


def _check_kind(body: Body) -> None:
    try:
        pickle.dumps(type(body.agent))
    except Exception as error:  # A class of classes may have code of its own.
        raise ConfigurationError(
            f"its class can't be sent to a worker: {error}",
            participant=body.name,
            advice="define it at the top level of a module",
        ) from error


def own_state(agent: Agent) -> dict[str, Any]:
    return {name: value for name, value in state_of(agent, Agent).items() if name not in _OWN}


def _take_timers(core: Core, body: Body, sent: int, timers: list[Any]) -> None:
    lane = core.timer_of(body)
    lane.sent, lane.timers = sent, timers


def _take_agent(core: Core, body: Body, kind: type[Agent], state: dict[str, Any]) -> None:
    agent = object.__new__(kind)
    object.__setattr__(agent, "_wl_core", core)
    object.__setattr__(agent, "_wl_body", body)
    restored_agent(agent, state)
    body.agent = agent
    body.receiver = agent.object if isinstance(agent, AgentWrapper) else agent


def restored_agent(agent: Agent, state: dict[str, Any]) -> None:
    kept = {name: value for name, value in vars(agent).items() if name in _OWN}
    restored(agent, {**state, **kept})


# -- After a run


def states_of(core: Core) -> list[tuple[str, type[Agent], tuple[Any, ...], bytes]]:
    """Return what has become of the agents here; what can't leave the process is said to be left behind."""
    with _moving(core), _uncollected():
        return [(body.name, type(body.agent), body.state(), _final_state(body.agent)) for body in core.bodies.values()]


def _final_state(agent: Agent) -> bytes:
    state = own_state(agent)
    try:
        return pickle.dumps(state, protocol=5)
    except Exception:  # As above.
        return pickle.dumps({name: _sendable(value) for name, value in state.items()}, protocol=5)


def _sendable(value: Any) -> Any:
    try:
        pickle.dumps(value, protocol=5)
    except Exception as error:  # As above.
        return LeftBehind(str(error))
    return value


def bring_back(core: Core, states: Iterable[tuple[str, type[Agent], tuple[Any, ...], bytes]]) -> None:
    """Give agents the state that they had at the end, in whichever process they were."""
    with _moving(core), _uncollected():
        for name, kind, state, attributes in states:
            body = core.house(name)
            body.restore(state)
            if body.agent is None:
                _take_agent(core, body, kind, pickle.loads(attributes))
            else:
                _bring_back(body, pickle.loads(attributes))


def _bring_back(body: Body, attributes: dict[str, Any]) -> None:
    """Give an agent its attributes; what it wraps stays the object that it was, as it does inline."""
    agent = body.agent
    wrapped = agent.object if isinstance(agent, AgentWrapper) else None
    restored_agent(agent, attributes)
    if isinstance(agent, AgentWrapper):
        if type(agent.object) is type(wrapped) and hasattr(wrapped, "__dict__"):
            vars(wrapped).clear()
            vars(wrapped).update(vars(agent.object))
            agent.object = wrapped
        body.receiver = agent.object
