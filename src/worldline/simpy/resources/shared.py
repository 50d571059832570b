# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, nonecheck=True
# cython: annotation_typing=True, embedsignature=True, embedsignature.format=clinic
"""SimPy's resources: what processes share, and the events by which they ask for it.

A resource has two queues, of those that put something and of those that get something. Whenever one of them has been
served, the other is looked at. A request for a place is a put, and its release a get.

A resource is *plain* if it keeps to the methods written here; then they are called as C functions. A class or an object
that has replaced one of them is served by SimPy's own protocol: `_trigger_put` calls `_do_put` for each event that
waits, and so on. (See S1 to S4 in `engine.py`.)
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from worldline.simpy.engine import Environment, Event, SimTime

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython
    if not cython.compiled:  # Cython's own stand-ins do more than nothing, and are called very often here.
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `shared.pxd`.
    from worldline.simpy.engine import LEADS, NORMAL_, SUCCEEDED, TRIGGERED, fulfil, stand_in

_REPLACEABLE = ("_do_put", "_do_get", "_trigger_put", "_trigger_get", "capacity", "release")
_key = cython.declare(object, attrgetter("key"))
_resource_dict = cython.declare(cython.Py_ssize_t, 0)
_plain_classes: dict[type, bool] = {}


class SortedQueue(list):  # type: ignore[type-arg]
    """A queue in the order of its events' keys, with room for `maxlen`."""

    def __init__(self, maxlen: int | None = None) -> None:
        super().__init__()
        self.maxlen = maxlen

    def append(self, item: Any) -> None:
        if self.maxlen is not None and len(self) >= self.maxlen:
            raise RuntimeError("Cannot append event. Queue is full.")
        super().append(item)
        super().sort(key=_key)


if not cython.compiled:

    def remove_at(items: list[Any], place: int) -> None:
        del items[place]


# -- What all resources have in common


@cython.cclass
class BaseResource:
    """Something with two queues, of puts and of gets. Derived classes say in `_do_put` and `_do_get` when to serve."""

    PutQueue: Any = list
    GetQueue: Any = list

    if not cython.compiled:
        _env: Environment
        _capacity: Any
        put_queue: Any
        get_queue: Any
        _wl_is_plain: bool

    def __cinit__(self) -> None:
        if cython.compiled:
            empty(self, _resource_dict)

    def __init__(self, env: Environment, capacity: Any) -> None:
        self._env = env
        self._capacity = capacity
        self.put_queue = self.PutQueue()
        self.get_queue = self.GetQueue()
        self._wl_is_plain = _is_plain(self)

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    def __setattr__(self, name: str, value: Any) -> None:
        if cython.compiled:
            PyObject_GenericSetAttr(self, name, value)
        else:
            object.__setattr__(self, name, value)
        if name in _REPLACEABLE:
            self._wl_is_plain = False

    def __delattr__(self, name: str) -> None:
        if cython.compiled:
            PyObject_GenericDelAttr(self, name, cython.NULL)
        else:
            object.__delattr__(self, name)

    @property
    def capacity(self) -> Any:
        return self._capacity

    def put(self) -> Put:
        return Put(self)

    def get(self) -> Get:
        return Get(self)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        """Serve a put if that can be done; return whether to look at the next one."""
        raise NotImplementedError(self)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        raise NotImplementedError(self)

    def _do_put(self, event: Any) -> Any:
        return self._wl_put(event) or None

    def _do_get(self, event: Any) -> Any:
        return self._wl_get(event) or None

    def _trigger_put(self, _: Any) -> None:
        if self._wl_is_plain:
            _serve(self, True)
        else:
            _serve_by_protocol(self.put_queue, self._do_put, "Put")

    def _trigger_get(self, _: Any) -> None:
        if self._wl_is_plain:
            _serve(self, False)
        else:
            _serve_by_protocol(self.get_queue, self._do_get, "Get")


def _serve_by_protocol(queue: Any, serve: Callable[[Any], Any], what: str) -> None:
    place = 0
    while place < len(queue):
        event = queue[place]
        goes_on = serve(event)
        if not event.triggered:
            place += 1
        elif queue.pop(place) != event:
            raise RuntimeError(f"{what} queue invariant violated")
        if not goes_on:
            break


def _is_plain(resource: Any) -> bool:
    kind = type(resource)
    found = _plain_classes.get(kind)
    if found is None:
        ours = next(each for each in kind.__mro__ if each.__module__ == __name__)
        found = all(getattr(kind, name, None) is getattr(ours, name, None) for name in _REPLACEABLE)
        found = found and ours is not BaseResource
        _plain_classes[kind] = found
    return found and type(resource.put_queue) in (list, SortedQueue) and type(resource.get_queue) is list


@cython.cfunc
@cython.exceptval(-1, check=False)
def _serve(resource: BaseResource, puts: cython.bint) -> cython.int:
    """Serve what waits in one of the queues of a plain resource."""
    queue: list = cython.cast(list, resource.put_queue if puts else resource.get_queue)  # type: ignore[type-arg]
    place: cython.Py_ssize_t = 0
    goes_on: cython.bint = True
    while goes_on and place < len(queue):  # It may be a `SortedQueue`.
        event: Event = queue[place]
        goes_on = resource._wl_put(event) if puts else resource._wl_get(event)
        if not event._wl_state & TRIGGERED:
            place += 1
        elif place >= len(queue) or queue[place] is not event:
            raise RuntimeError(f"{'Put' if puts else 'Get'} queue invariant violated")
        else:
            remove_at(queue, place)
    return 0


@cython.cclass
class Asking(Event):
    """What asks a resource for something: a put or a get. Once it has been served, the other queue is looked at."""

    if not cython.compiled:
        resource: Any
        proc: Any
        _wl_is_put: bool = False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self.cancel()

    def cancel(self) -> None:
        """Don't wait any longer."""
        if not self._wl_state & TRIGGERED:
            queue = self.resource.put_queue if self._wl_is_put else self.resource.get_queue
            queue.remove(self)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_lead(self) -> cython.int:
        if self.resource._wl_is_plain:
            return _serve(self.resource, not self._wl_is_put)
        self._wl_leader()(self)
        return 0

    @cython.cfunc
    def _wl_leader(self) -> Any:
        return self.resource._trigger_get if self._wl_is_put else self.resource._trigger_put


@cython.cclass
class Put(Asking):
    """Asks a resource to take something. In a `with` block, it is canceled at the end if it is still waiting."""

    def __init__(self, resource: BaseResource) -> None:
        _ask(self, resource, True)


@cython.cclass
class Get(Asking):
    """Asks a resource for something. In a `with` block, it is canceled at the end if it is still waiting."""

    def __init__(self, resource: BaseResource) -> None:
        _ask(self, resource, False)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _ask(event: Asking, resource: BaseResource, is_put: cython.bint) -> cython.int:
    event.env = resource._env
    event.resource = resource
    event.proc = resource._env._active_proc
    event._wl_state |= LEADS
    event._wl_is_put = is_put
    queue = resource.put_queue if is_put else resource.get_queue
    is_first: cython.bint = resource._wl_is_plain and not len(cython.cast(list, queue))
    if is_first:  # It needn't queue, if it is served at once.
        try:
            if is_put:
                resource._wl_put(event)
            else:
                resource._wl_get(event)
        except BaseException:
            queue.append(event)
            raise
        if event._wl_state & TRIGGERED:
            return 0
    if type(queue) is list:
        cython.cast(list, queue).append(event)
    else:
        queue.append(event)
    if is_first:
        return 0
    if resource._wl_is_plain:
        return _serve(resource, is_put)
    event._wl_list()  # Which method it calls then is found out now.
    if is_put:
        resource._trigger_put(None)
    else:
        resource._trigger_get(None)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _has_room(taken: cython.Py_ssize_t, resource: BaseResource) -> cython.bint:
    capacity = resource._capacity if resource._wl_is_plain else resource.capacity
    if cython.compiled and type(capacity) is int:
        overflow: cython.int = 0
        whole: cython.longlong = PyLong_AsLongLongAndOverflow(capacity, cython.address(overflow))
        if not overflow:
            return taken < whole
    return bool(taken < capacity)


# -- Places that are requested and released


@cython.cclass
class Preempted:
    """The cause of an interrupt: `by` which process a `resource` was taken away, which was used since a time."""

    if not cython.compiled:
        by: Any
        usage_since: Any
        resource: Any

    def __init__(self, by: Any, usage_since: SimTime, resource: Any) -> None:
        self.by = by
        self.usage_since = usage_since
        self.resource = resource


@cython.cclass
class Request(Put):
    """Asks for a place; at the end of a `with` block it is given back."""

    if not cython.compiled:
        usage_since: Any = None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        resource: BaseResource = self.resource
        if not self._wl_state & TRIGGERED:
            self.cancel()
        if kind is not GeneratorExit:
            if resource._wl_is_plain and isinstance(resource, Resource) and not len(resource.get_queue):
                _give_back(resource, self)
            else:
                resource.release(self)  # type: ignore[attr-defined]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_stand(self) -> cython.int:
        if self.resource._wl_is_plain:
            return _serve(self.resource, True)
        self.resource._trigger_put(self._wl_shown())
        return 0

    def _wl_shown(self) -> Release:
        """Return the release for which the request stands in the queue."""
        event: Release = Release.__new__(Release)
        event.env = self.env
        event.resource = self.resource
        event.proc = self.proc
        event._wl_about = self
        event._wl_state |= SUCCEEDED | LEADS
        return event


@cython.cfunc
@cython.exceptval(-1, check=False)
def _give_back(resource: Resource, request: Request) -> cython.int:
    """Release a place, without an object for that event, if it can be done."""
    if stand_in(resource._env, request, NORMAL_):
        _leave(resource, request)
    else:
        resource.release(request)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _leave(resource: Resource, request: object) -> cython.int:
    users: list = resource.users  # type: ignore[type-arg]
    if len(users) and users[0] is request:
        remove_at(users, 0)
    elif request in users:
        users.remove(request)
    return 0


@cython.cclass
class PriorityRequest(Request):
    """Asks for a place; lesser numbers come first, and with `preempt` may take a place away."""

    if not cython.compiled:
        priority: Any
        preempt: Any
        time: Any
        key: Any

    def __init__(self, resource: Any, priority: Any = 0, preempt: Any = True) -> None:
        _request(self, resource, priority, preempt)


@cython.cfunc
@cython.exceptval(-1, check=False)
def _request(event: PriorityRequest, resource: BaseResource, priority: object, preempt: object) -> cython.int:
    event.priority = priority
    event.preempt = preempt
    event.time = resource._env._wl_time()
    event.key = (priority, event.time, not preempt)
    return _ask(event, resource, True)


@cython.cclass
class Release(Get):
    """Gives a place back."""

    def __init__(self, resource: Any, request: Any) -> None:
        self._wl_about = request
        _ask(self, resource, False)

    @property
    def request(self) -> Any:
        return self._wl_about

    @request.setter
    def request(self, request: Any) -> None:
        self._wl_about = request


@cython.cclass
class Resource(BaseResource):
    """So many places that processes use: `with resource.request() as request: yield request`."""

    if not cython.compiled:
        users: list[Any]

    def __init__(self, env: Environment, capacity: Any = 1) -> None:
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        BaseResource.__init__(self, env, capacity)
        self.users = []

    @property
    def queue(self) -> Any:
        return self.put_queue

    @property
    def count(self) -> int:
        return len(self.users)

    def request(self) -> Request:
        event: Request = Request.__new__(Request)
        _ask(event, self, True)
        return event

    def release(self, request: Any) -> Release:
        event: Release = Release.__new__(Release)
        event._wl_about = request
        _ask(event, self, False)
        return event

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        return _admit(self, event)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        _leave(self, event._wl_about)
        fulfil(event, None)
        return False


@cython.cfunc
@cython.exceptval(-1, check=False)
def _admit(resource: Resource, event: Event) -> cython.bint:
    if _has_room(len(resource.users), resource):
        resource.users.append(event)
        if isinstance(event, Request):
            cython.cast(Request, event).usage_since = resource._env._wl_time()
        else:  # A model's own kind of put.
            event.usage_since = resource._env.now  # type: ignore[attr-defined]
        fulfil(event, None)
    return False


@cython.cclass
class PriorityResource(Resource):
    """Places that are given to the request with the least priority first."""

    PutQueue: Any = SortedQueue
    GetQueue: Any = list

    def request(self, priority: Any = 0, preempt: Any = True) -> PriorityRequest:
        event: PriorityRequest = PriorityRequest.__new__(PriorityRequest)
        _request(event, self, priority, preempt)
        return event


@cython.cclass
class PreemptiveResource(PriorityResource):
    """Places that a request with a lesser priority takes away from the one with the greatest."""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        asked: Any = event
        if asked.preempt and not _has_room(len(self.users), self):
            last = max(self.users, key=_key)
            if last.key > asked.key:
                self.users.remove(last)
                cause: Preempted = Preempted.__new__(Preempted)
                cause.by = asked.proc
                cause.usage_since = last.usage_since
                cause.resource = self
                last.proc.interrupt(cause)
        return _admit(self, event)


# -- Amounts


@cython.cclass
class ContainerPut(Put):
    """Asks to add an amount."""

    def __init__(self, container: Any, amount: Any) -> None:
        _check_amount(amount)
        self._wl_about = amount
        _ask(self, container, True)

    @property
    def amount(self) -> Any:
        return self._wl_about

    @amount.setter
    def amount(self, amount: Any) -> None:
        self._wl_about = amount


@cython.cclass
class ContainerGet(Get):
    """Asks to take an amount away."""

    def __init__(self, container: Any, amount: Any) -> None:
        _check_amount(amount)
        self._wl_about = amount
        _ask(self, container, False)

    @property
    def amount(self) -> Any:
        return self._wl_about

    @amount.setter
    def amount(self, amount: Any) -> None:
        self._wl_about = amount


@cython.cfunc
@cython.exceptval(-1, check=False)
def _check_amount(amount: object) -> cython.int:
    if amount <= 0:  # type: ignore[operator] # What is no number, Python refuses.
        raise ValueError(f"amount(={amount}) must be > 0.")
    return 0


@cython.cclass
class Container(BaseResource):
    """An amount between nothing and the capacity, such as the fuel in a tank."""

    if not cython.compiled:
        _level: Any

    def __init__(self, env: Environment, capacity: Any = float("inf"), init: Any = 0) -> None:
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        if init < 0:
            raise ValueError('"init" must be >= 0.')
        if init > capacity:
            raise ValueError('"init" must be <= "capacity".')
        BaseResource.__init__(self, env, capacity)
        self._level = init

    @property
    def level(self) -> Any:
        return self._level

    def put(self, amount: Any) -> ContainerPut:  # type: ignore[override]
        event: ContainerPut = ContainerPut.__new__(ContainerPut)
        _check_amount(amount)
        event._wl_about = amount
        _ask(event, self, True)
        return event

    def get(self, amount: Any) -> ContainerGet:  # type: ignore[override]
        event: ContainerGet = ContainerGet.__new__(ContainerGet)
        _check_amount(amount)
        event._wl_about = amount
        _ask(event, self, False)
        return event

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        if self._capacity - self._level >= event._wl_about:
            self._level += event._wl_about
            fulfil(event, None)
            return True
        return False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        if self._level >= event._wl_about:
            self._level -= event._wl_about
            fulfil(event, None)
            return True
        return False


# -- Things


@cython.cclass
class StorePut(Put):
    """Asks to add an item."""

    def __init__(self, store: Any, item: Any) -> None:
        self._wl_about = item
        _ask(self, store, True)

    @property
    def item(self) -> Any:
        return self._wl_about

    @item.setter
    def item(self, item: Any) -> None:
        self._wl_about = item


@cython.cclass
class StoreGet(Get):
    """Asks for an item."""


def _any_item(_: Any) -> bool:
    return True


@cython.cclass
class FilterStoreGet(StoreGet):
    """Asks for an item that a function accepts."""

    def __init__(self, resource: Any, filter: Callable[[Any], bool] = _any_item) -> None:  # noqa: A002 - SimPy's name.
        self._wl_about = filter
        _ask(self, resource, False)

    @property
    def filter(self) -> Any:
        return self._wl_about

    @filter.setter  # noqa: A003 - SimPy's name.
    def filter(self, accepts: Any) -> None:
        self._wl_about = accepts


@cython.cclass
class Store(BaseResource):
    """Items, first in, first out."""

    if not cython.compiled:
        items: list[Any]

    def __init__(self, env: Environment, capacity: Any = float("inf")) -> None:
        if capacity <= 0:
            raise ValueError('"capacity" must be > 0.')
        BaseResource.__init__(self, env, capacity)
        self.items = []

    def put(self, item: Any) -> StorePut:  # type: ignore[override]
        event: StorePut = StorePut.__new__(StorePut)
        event._wl_about = item
        _ask(event, self, True)
        return event

    def get(self) -> StoreGet:
        event: StoreGet = StoreGet.__new__(StoreGet)
        _ask(event, self, False)
        return event

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        if _has_room(len(self.items), self):
            self.items.append(event._wl_about)
            fulfil(event, None)
        return False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        if self.items:
            item = self.items[0]
            remove_at(self.items, 0)
            fulfil(event, item)
        return False


class PriorityItem(NamedTuple):
    """An item with a priority, by which alone it is compared."""

    priority: Any
    item: Any

    def __lt__(self, other: Any) -> Any:
        return self.priority < other.priority


@cython.cclass
class PriorityStore(Store):
    """Items, the least of them first."""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_put(self, event: Event) -> cython.bint:
        if _has_room(len(self.items), self):
            heappush(self.items, event._wl_about)
            fulfil(event, None)
        return False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        if self.items:
            fulfil(event, heappop(self.items))
        return False


@cython.cclass
class FilterStore(Store):
    """Items that are got by what they are: a get takes the first that its function accepts."""

    def get(self, filter: Callable[[Any], bool] = _any_item) -> FilterStoreGet:  # noqa: A002 - SimPy's.
        event: FilterStoreGet = FilterStoreGet.__new__(FilterStoreGet)
        event._wl_about = filter
        _ask(event, self, False)
        return event

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wl_get(self, event: Event) -> cython.bint:
        accepts = event._wl_about
        for item in self.items:
            if accepts(item):
                self.items.remove(item)
                fulfil(event, item)
                break
        return True


if cython.compiled:

    @cython.cfunc
    def _find_dict() -> cython.int:
        """Find out where resources keep attributes that models set, and let Python know."""
        global _resource_dict
        marker = object()
        resource: BaseResource = BaseResource.__new__(BaseResource)
        resource._wl_dict = marker
        _resource_dict = place_of(resource, marker)
        resource._wl_dict = None
        empty(resource, _resource_dict)
        for kind in (
            *(BaseResource, Resource, PriorityResource, PreemptiveResource),
            *(Container, Store, PriorityStore, FilterStore),
        ):
            wl_give_dict(kind, _resource_dict)
        return 0

    _find_dict()
