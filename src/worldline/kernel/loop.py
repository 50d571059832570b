# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
"""The loop of the compiled engine: takes events from the queue, and lets entities act on them.

It is only ever compiled; uncompiled, `plain.py` does the same. Whoever changes one changes both.
"""

import cython
from cython.cimports.cpython.list import PyList_GET_ITEM
from cython.cimports.worldline.kernel._chain import hash_of_four
from cython.cimports.worldline.kernel._engine import ALIVE, STARTS, Engine, EntityBase, Handlers, ScheduledEvent
from cython.cimports.worldline.kernel._process import Process, adopt, deliver, purge, wake
from cython.cimports.worldline.kernel._queue import LADEN, HeapQueue

from worldline.kernel.account import tell_timer, tell_waking
from worldline.kernel.packing import PackedCopy
from worldline.kernel.trouble import check_idle, fail

_Parcel = cython.declare(object, PackedCopy)


def advance(engine: Engine, end: cython.longlong, limit: cython.longlong) -> int:
    """Handle the events before `end`, at most `limit` of them, and return how many it were."""
    handled: cython.longlong = 0
    time: cython.longlong
    order: cython.longlong
    sender_key: cython.ulonglong
    target: EntityBase = None
    process: Process
    timer: ScheduledEvent
    handlers: Handlers
    rank: cython.int
    goal: cython.int
    is_live: cython.bint
    is_observed: cython.bint = engine.observer is not None
    queue: HeapQueue = engine.queue
    check_idle(engine)
    what = None
    try:
        while handled < limit and queue.pop(end):
            time = queue.time
            order = queue.event.order
            rank = queue.event.rank
            goal = queue.event.target
            what = queue.cell
            if type(what) is Process and goal < 0:
                process = what
                target = process._owner
                target._wl_ahead -= 1
                if process._ticket == order and target._wl_state == ALIVE:
                    handled += 1
                    engine.now = time
                    engine.actor = target
                    target._wl_chain = hash_of_four(target._wl_chain, time, order, 0)
                    if is_observed:
                        tell_waking(engine, target, process._generator)
                    wake(process)
            else:
                if goal < 0:
                    timer = what
                    target = timer._owner
                    target._wl_ahead -= 1
                    what = timer.topic
                    payload = timer.payload
                    sender_key = target._wl_key
                    is_live = timer.is_live and target._wl_state == ALIVE
                    timer.is_live = False
                    if is_observed and is_live:
                        engine.now = time
                        tell_timer(engine, target, what, payload)
                else:
                    target = cython.cast(EntityBase, PyList_GET_ITEM(queue.table, goal))
                    payload = what if queue.event.kind == LADEN else None
                    what = cython.cast(tuple, PyList_GET_ITEM(engine._topics, queue.event.topic))[0]
                    sender_key = queue.event.sender_key
                    is_live = True
                    if target._wl_state != ALIVE:
                        engine.now = time
                        target = engine.roster.arrived(target, engine.sender, what, time)
                        is_live = target is not None
                if is_live:
                    handled += 1
                    engine.now = time
                    engine.actor = target
                    target._wl_chain = hash_of_four(target._wl_chain, time, order, sender_key)
                    if type(payload) is _Parcel:
                        payload = payload.open()
                    handlers = target._wl_handlers
                    if what is not handlers.topic:
                        handlers.find(what)
                    if handlers.function is None:
                        deliver(engine, target, what, payload)
                    else:
                        function = handlers.function
                        result = function(target) if what is STARTS else function(target, payload)
                        if result is not None:
                            adopt(target, result, what is STARTS)
            queue.settle()
            if rank & 1:
                engine._unpin(queue.event.sender)
            if goal >= 0:
                target = cython.cast(EntityBase, PyList_GET_ITEM(queue.table, goal))
                if target._wl_rank & 1:
                    engine._unpin(goal)
            if engine._leaving:
                engine._let_go()
            if engine._canceled > engine._patience:
                purge(engine)
    except BaseException as error:
        fail(engine, error, target, what)
    finally:
        engine.events += handled
        engine.actor = None
        queue.settle()
    return handled
