"""The loop of the uncompiled engine: what `advance` of the compiled one does, written for plain Python.

In plain Python the time goes into calls and attributes, so the queue hands out whole events; in C they are looked up by
numbers. So the loop is the one part of the engine that each build has for itself. Whoever changes one changes both: the
conformance suite compares them.
"""

from __future__ import annotations

from worldline.kernel.account import tell_timer, tell_waking
from worldline.kernel.engine import _CHAIN, ALIVE, STARTS, Engine
from worldline.kernel.packing import PackedCopy
from worldline.kernel.process import Process, adopt, deliver, purge, wake
from worldline.kernel.trouble import check_idle, fail


def advance(engine: Engine, end: int, limit: int) -> int:
    """Handle the events before `end`, at most `limit` of them (one at least), and return how many it were."""
    check_idle(engine)
    handled = 0
    target = what = None
    is_observed = engine.observer is not None
    try:
        for entry in engine.queue.until(end):
            time, _, _, order, what, sender, target, payload = engine._entry = entry
            if target is None and type(what) is Process:
                target = sender
                target._wl_ahead -= 1
                if what._ticket != order or target._wl_state != ALIVE:
                    continue
                handled += 1
                engine.now = time
                engine.actor = target
                target._wl_chain = hash((target._wl_chain, time, order, 0)) & _CHAIN
                if is_observed:
                    tell_waking(engine, target, what._generator)
                wake(what)
            else:
                if target is None:
                    timer, target = what, sender
                    target._wl_ahead -= 1
                    what, payload = timer.topic, timer.payload
                    is_live, timer.is_live = timer.is_live, False
                    if not is_live or target._wl_state != ALIVE:
                        continue
                    if is_observed:
                        engine.now = time
                        tell_timer(engine, target, what, payload)
                elif target._wl_state != ALIVE:
                    engine.now = time
                    target = engine.roster.arrived(target, sender, what, time)
                    if target is None:
                        continue
                handled += 1
                engine.now = time
                engine.actor = target
                target._wl_chain = hash((target._wl_chain, time, order, sender._wl_key)) & _CHAIN
                if type(payload) is PackedCopy:
                    payload = payload.open()
                function = target._wl_handlers.by_topic.get(what)
                if function is None:
                    deliver(engine, target, what, payload)
                else:
                    result = function(target) if what is STARTS else function(target, payload)
                    if result is not None:
                        adopt(target, result, what is STARTS)
            if engine._canceled > engine._patience:
                purge(engine)
            if handled == limit:
                break
    except BaseException as error:
        fail(engine, error, target, what)
    finally:
        engine.events += handled
        engine.actor = None
    return handled
