# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False
# cython: annotation_typing=True
# cython: embedsignature=True, embedsignature.format=clinic
"""What the processes of one entity compete for: turns of a resource, things in a store, an amount in a container.

In Cython's pure-Python mode, as `engine.py`; its C types are in `resources.pxd`.

Each is a `Stock`, and what is asked of it is a `Claim`, which is awaited like a signal. A claim is met at once if that
can be done and no other waits before it; otherwise when another gives back, puts or gets what it needs. Claims are met
in the order in which they were made, those of a resource by priority first. Nothing here takes time, or an event: only
processes that wait get one, when their claim is met.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from worldline.kernel.engine import EntityBase
from worldline.kernel.trouble import refuse_sharing
from worldline.kernel.waiting import Awaited, Process
from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # What isn't a class is imported by `resources.pxd`.
    from worldline.kernel.waiting import FIRED, PENDING

# Under their own names, Cython would take these for types of C.
Whole = int
Number = int | float
Flag = bool

_INFINITE = cython.declare(object, float("inf"))
_GAPS_MAX = cython.declare(cython.Py_ssize_t, 32)


class Preempted(NamedTuple):
    """The cause of the `Interrupt` in a process whose turn was taken away: by which claim, and since when it had it."""

    by: Any
    since: int
    resource: Any


@cython.final
@cython.cclass
class Claim(Awaited):
    """A claim to something of a stock: fires when it is met. As a context it gives back a turn, or the claim up."""

    if not cython.compiled:
        _of: Any = None
        _wanted: Any = None  # A priority, the item to put, what it must match, or an amount.
        _holder: Any = None  # The process that waits or has waited for it.
        _since: int = 0  # When it was met, if a process has waited for it.
        _is_put: bool = False
        _is_withdrawn: bool = False
        _is_held: bool = False  # Whether it is a turn of a resource, and not given back.

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stock: Stock = self._of
        stock._leave_block(self, kind is None)

    def __reduce__(self) -> Any:
        if self._waiters is not None:
            raise TypeError("a claim that a process waits for can't be copied or sent")
        flags = (self._is_put, self._is_withdrawn, self._is_held)
        return Claim, (), (self._state, self._value, self._of, self._wanted, flags)

    def __setstate__(self, state: Any) -> None:
        self._state, self._value, self._of, self._wanted, flags = state
        self._is_put, self._is_withdrawn, self._is_held = flags

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, waiter: Awaited, process: Process) -> cython.int:
        stock: Stock = self._of
        owner: EntityBase = process._owner
        if stock._owner != owner._wl_key:
            stock._belong_to(owner)
        if self._holder is None:
            self._holder = process
            self._since = owner._wl_engine.now
        if self._is_withdrawn:
            self._is_withdrawn = False
            stock._enter(self)
        if self._state != PENDING:
            return 1
        self._note(waiter)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave(self, waiter: Awaited) -> cython.int:
        Awaited._leave(self, waiter)
        if self._waiters is None and self._state == PENDING:
            stock: Stock = self._of
            stock._abandon(self)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet(self, value: object) -> cython.int:
        if self._holder is not None:
            process: Process = self._holder
            self._since = process._owner._wl_engine.now
        return self._happen(FIRED, value)


@cython.final
@cython.cclass
class WaitingLine:
    """Claims that wait, in the order in which they are to be met. Those that went from its front are gaps for a while.

    It is a deque whose ends can be looked at in C.
    """

    def __init__(self) -> None:
        self._claims: list[Any] = []
        self._gone = 0

    def __len__(self) -> int:
        return len(self._claims) - self._gone

    def __reduce__(self) -> Any:
        return WaitingLine, (), self._claims[self._gone :]

    def __setstate__(self, claims: Any) -> None:
        self._claims = claims

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_empty(self) -> cython.int:
        return len(self._claims) == self._gone

    @cython.cfunc
    def _first(self) -> Claim:
        return self._claims[self._gone]  # type: ignore[no-any-return]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(self, claim: Claim) -> cython.int:
        self._claims.append(claim)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_by_priority(self, claim: Claim) -> cython.int:
        """Let a claim wait behind those with its priority or a better one."""
        other: Claim
        place: cython.Py_ssize_t = len(self._claims)
        while place > self._gone:
            other = self._claims[place - 1]
            if not other._wanted > claim._wanted:
                break
            place -= 1
        if place == len(self._claims):
            self._claims.append(claim)
        else:
            self._claims.insert(place, claim)
        return 0

    @cython.cfunc
    def _take_first(self) -> Claim:
        claim: Claim = self._claims[self._gone]
        self._claims[self._gone] = None
        self._gone += 1
        if self._gone >= _GAPS_MAX and 2 * self._gone >= len(self._claims):
            del self._claims[: self._gone]
            self._gone = 0
        return claim

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _remove(self, claim: Claim) -> cython.int:
        """Let a claim go from wherever it is; return whether it was there."""
        place: cython.Py_ssize_t
        for place in range(self._gone, len(self._claims)):
            if self._claims[place] is claim:
                del self._claims[place]
                return 1
        return 0


@cython.cclass
class Stock:
    """What claims are made to, by the processes of one entity."""

    if not cython.compiled:
        _owner: int = 0  # The key of that entity, once a process has waited: it would be a cycle to keep itself.
        _gets: Any  # The claims that wait, to get something and to put something in.
        _puts: Any = None  # A resource has none.

    @property
    def waiting(self) -> int:
        """How many claims wait."""
        return len(self._gets) + (0 if self._puts is None else len(self._puts))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _belong_to(self, owner: EntityBase) -> cython.int:
        if self._owner != 0 and self._owner != owner._wl_key:
            refuse_sharing(f"a {type(self).__name__}", owner.name, _name_of(owner, self._owner))
        self._owner = owner._wl_key
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(self, claim: Claim) -> cython.int:
        """Meet a claim, or let it wait."""
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _queue(self, claim: Claim) -> cython.int:
        """Let a claim wait behind the others."""
        waiting: WaitingLine = self._puts if claim._is_put else self._gets
        return waiting._add(claim)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _withdraw(self, claim: Claim) -> cython.int:
        """Let a claim wait no longer."""
        waiting: WaitingLine = self._puts if claim._is_put else self._gets
        if claim._state == PENDING and waiting._remove(claim):
            claim._is_withdrawn = True
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _abandon(self, claim: Claim) -> cython.int:
        """Do what is to be done when no process waits any more for a claim that isn't met."""
        return self._withdraw(claim)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave_block(self, claim: Claim, regularly: cython.bint) -> cython.int:
        """Do what is to be done when the block of a claim is left, regularly or by an exception."""
        return self._withdraw(claim)


@cython.cfunc
def _name_of(owner: EntityBase, key: object) -> Any:
    """Return the name of another entity by its key, which is needed so rarely that it is searched for."""
    for name, entity in owner._wl_engine.directory.items():
        core: EntityBase = entity
        if core._wl_key == key:
            return name
    return "another entity"


@cython.cfunc
def _claim(stock: Stock, wanted: object, is_put: cython.bint) -> Claim:
    claim: Claim = Claim.__new__(Claim)
    claim._of = stock
    claim._wanted = wanted
    claim._is_put = is_put
    return claim


# -- So many that can be held at a time


@cython.final
@cython.cclass
class Resource(Stock):
    """So many that can be held at a time: ``with machine.acquire() as turn: yield turn``.

    First come, first served; with priorities, the least number first. A claim that preempts takes the turn of a holder
    with a worse priority, if all are held: the process of that one is interrupted, and the cause is a `Preempted`.
    """

    def __init__(self, capacity: Whole = 1) -> None:
        if type(capacity) is not int or capacity < 1:
            raise ConfigurationError(f"a resource can't have a capacity of {shown(capacity)}", advice="use at least 1")
        self.capacity = capacity
        self._gets = WaitingLine()
        self._held: dict[Any, Any] = {}  # Claims, in the order in which they were met.

    @property
    def held(self) -> int:
        """How many are held."""
        return len(self._held)

    def acquire(self, priority: Number = 0, preempt: Flag = False) -> Claim:
        """Claim one."""
        if type(priority) is not int and type(priority) is not float:
            raise ModelError(f"{shown(priority)} isn't a priority", advice="use a number: the least is served first")
        turn: Claim = _claim(self, priority, False)
        self._enter(turn)
        if preempt and turn._state == PENDING and self._gets._first() is turn:
            self._preempt(turn)
        return turn

    def release(self, turn: Any) -> None:
        """Give one back, or give up the claim if it isn't granted yet. A second time does nothing."""
        if type(turn) is not Claim:
            raise ModelError(f"{shown(turn)} isn't a turn", advice="release what acquire() has returned")
        self._give_back(turn)

    def request(self, *_: Any, **__: Any) -> NoReturn:
        """Say what SimPy's word is called here."""
        raise UsageError(
            "a Resource has no request()", advice="write with resource.acquire() as turn: and yield turn in it"
        )

    def __repr__(self) -> str:
        return f"<Resource, {self.held} of {self.capacity} held, {self.waiting} waiting>"

    def __reduce__(self) -> Any:
        return Resource, (self.capacity,), (self._held, self._gets)

    def __setstate__(self, state: Any) -> None:
        self._held, self._gets = state

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(self, claim: Claim) -> cython.int:
        return self._hold(claim) if len(self._held) < self.capacity else self._gets._add_by_priority(claim)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _hold(self, turn: Claim) -> cython.int:
        self._held[turn] = None
        turn._is_held = True
        return turn._meet(turn)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _preempt(self, turn: Claim) -> cython.int:
        """Take the turn of the holder with the worst priority, of several the last, if it is worse than this one."""
        worst: Claim | None = None
        held: Claim
        for each in self._held:
            held = each
            if held._holder is not None and (worst is None or held._wanted >= worst._wanted):
                worst = held
        if worst is None or not worst._wanted > turn._wanted:
            return 0
        self._let_go(worst)
        process: Process = worst._holder
        if process._generator is not None:
            process.interrupt(Preempted(turn, worst._since, self))
        return self._grant()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _grant(self) -> cython.int:
        while len(self._held) < self.capacity and not self._gets._is_empty():
            self._hold(self._gets._take_first())
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _let_go(self, turn: Claim) -> cython.int:
        del self._held[turn]
        turn._is_held = False
        turn._value = None  # Itself, until now: it would have to wait for the garbage collector.
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _give_back(self, turn: Claim) -> cython.int:
        if turn._state == PENDING:
            return self._withdraw(turn)
        if turn._is_held and turn._of is self:
            self._let_go(turn)
            self._grant()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _abandon(self, claim: Claim) -> cython.int:
        return 0  # It keeps its place until its block is left.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave_block(self, claim: Claim, regularly: cython.bint) -> cython.int:
        if regularly and claim._state == PENDING and claim._holder is None and not claim._is_withdrawn:
            # What was done under it was done without it.
            raise ModelError(
                "a with block of a resource was left before its turn, and nothing has waited for it",
                advice="write yield turn at its beginning, or resource.release(turn) to give it up",
            )
        return self._give_back(claim)


# -- Things, one by one


@cython.final
@cython.cclass
class Store(Stock):
    """Things that processes put in and get out: ``yield store.put(thing)``, ``thing = yield store.get()``.

    First in, first out; with a `key`, the thing with the least key comes out first. With a capacity, a put waits until
    there is room. A put or get that no process waits for any more, because of a limit, an interrupt or another part of
    a combination, is withdrawn.
    """

    def __init__(self, capacity: Whole | None = None, key: Callable[[Any], Any] | None = None) -> None:
        if capacity is not None and (type(capacity) is not int or capacity < 1):
            raise ConfigurationError(f"a store can't have a capacity of {shown(capacity)}", advice="use at least 1")
        if key is not None and not callable(key):
            raise ConfigurationError(f"{shown(key)} can't be a store's key", advice="give it a function of a thing")
        self.capacity = capacity
        self.key = key
        self._gets, self._puts = WaitingLine(), WaitingLine()
        self._items: Any = deque() if key is None else []

    @property
    def items(self) -> list[Any]:
        """The things that are in it, in the order in which they come out."""
        return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Any) -> Claim:
        """Put a thing in; fires when there is room for it."""
        claim: Claim = _claim(self, item, True)
        self._enter(claim)
        return claim

    def get(self, matching: Callable[[Any], Any] | None = None) -> Claim:
        """Get the first thing, or the first for which ``matching(thing)`` is true; fires with it."""
        if matching is not None and not callable(matching):
            raise ModelError(f"{shown(matching)} can't match things", advice="give it a function: get(lambda x: ...)")
        claim: Claim = _claim(self, matching, False)
        self._enter(claim)
        return claim

    def __repr__(self) -> str:
        most = "" if self.capacity is None else f" of {self.capacity}"
        return f"<Store, {len(self._items)}{most} in it, {self.waiting} waiting>"

    def __reduce__(self) -> Any:
        return Store, (self.capacity, self.key), (self._items, self._gets, self._puts)

    def __setstate__(self, state: Any) -> None:
        self._items, self._gets, self._puts = state

    # What is in the store matches no claim that waits, or that would have taken it. So a new thing is all that claims
    # have to look at, and all things are what a new claim has to.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(self, claim: Claim) -> cython.int:
        if claim._is_put:
            if not self._puts._is_empty() or self._is_full():
                return self._queue(claim)
            return self._admit(claim)
        if not self._take(claim):
            return self._queue(claim)
        while not self._puts._is_empty() and not self._is_full():
            self._admit(self._puts._take_first())
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_full(self) -> cython.int:
        return self.capacity is not None and len(self._items) >= self.capacity

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _admit(self, put: Claim) -> cython.int:
        """Let a thing in, or hand it to the first that waits for such a one."""
        item = put._wanted
        get: Claim
        waiting: WaitingLine = self._gets
        place: cython.Py_ssize_t
        for place in range(waiting._gone, len(waiting._claims)):
            get = waiting._claims[place]
            if get._wanted is None or get._wanted(item):
                if place == waiting._gone:
                    waiting._take_first()
                else:
                    waiting._remove(get)
                put._meet(None)
                return get._meet(item)
        if self.key is None:
            self._items.append(item)
        else:
            insort_right(self._items, item, key=self.key)
        return put._meet(None)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(self, get: Claim) -> cython.int:
        """Give a claim what it asks for; return whether that is there."""
        items = self._items
        place: cython.Py_ssize_t
        for place in range(len(items)):
            item = items[place]
            if get._wanted is None or get._wanted(item):
                del items[place]
                get._meet(item)
                return 1
        return 0


# -- An amount


@cython.final
@cython.cclass
class Container(Stock):
    """An amount of something, such as fuel: ``yield tank.put(30)``, ``yield tank.get(50)``.

    A get waits until there is as much, and a put until there is room, each first come, first served. Those that no
    process waits for any more are withdrawn, as those of a `Store`.
    """

    def __init__(self, capacity: Number | None = None, level: Number = 0) -> None:
        if capacity is not None and not _is_amount(capacity):
            raise ConfigurationError(
                f"a container can't have a capacity of {shown(capacity)}", advice="use more than 0"
            )
        if level != 0 and not _is_amount(level):
            raise ConfigurationError(
                f"a container can't begin with {shown(level)}", advice="use a number of at least 0"
            )
        if capacity is not None and level > capacity:
            raise ConfigurationError(f"a container of {capacity} can't begin with {shown(level)}")
        self._gets, self._puts = WaitingLine(), WaitingLine()
        self.capacity = capacity
        self.level: Any = level

    def put(self, amount: Number) -> Claim:
        """Put an amount in; fires when there is room for all of it."""
        return self._ask(amount, True)

    def get(self, amount: Number) -> Claim:
        """Take an amount out; fires when there is as much."""
        return self._ask(amount, False)

    def __repr__(self) -> str:
        most = "" if self.capacity is None else f" of {self.capacity}"
        return f"<Container, {self.level}{most} in it, {self.waiting} waiting>"

    def __reduce__(self) -> Any:
        return Container, (self.capacity, self.level), (self._gets, self._puts)

    def __setstate__(self, state: Any) -> None:
        self._gets, self._puts = state

    @cython.cfunc
    def _ask(self, amount: Any, is_put: cython.bint) -> Claim:
        if not _is_amount(amount):
            raise ModelError(f"{shown(amount)} isn't an amount", advice="use a number that is greater than 0")
        if self.capacity is not None and amount > self.capacity:
            raise ModelError(
                f"{amount} can never be {'put into' if is_put else 'in'} a container of {self.capacity}",
                advice="do it in several steps, or make the container larger",
            )
        claim: Claim = _claim(self, amount, is_put)
        self._enter(claim)
        return claim

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(self, claim: Claim) -> cython.int:
        self._queue(claim)
        return self._serve()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _withdraw(self, claim: Claim) -> cython.int:
        Stock._withdraw(self, claim)
        return self._serve()  # It may have been in the way of smaller ones.

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve(self) -> cython.int:
        """Meet what can be met, puts first, until nothing can."""
        claim: Claim
        is_over: cython.bint = False
        while not is_over:
            is_over = True
            while not self._puts._is_empty():
                claim = self._puts._first()
                if self.capacity is not None and self.level + claim._wanted > self.capacity:
                    break
                self.level += claim._wanted
                self._puts._take_first()
                claim._meet(None)
                is_over = False
            while not self._gets._is_empty():
                claim = self._gets._first()
                if claim._wanted > self.level:
                    break
                self.level -= claim._wanted
                self._gets._take_first()
                claim._meet(claim._wanted)
                is_over = False
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _is_amount(amount: object) -> cython.bint:
    return (type(amount) is int or type(amount) is float) and 0 < amount < _INFINITE
