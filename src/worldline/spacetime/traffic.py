# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
"""Channels: how lanes begin and end, and what may be sent on them.

S4. What is not causal in the simulation is never visible in it: that a lane is given up, that a target is gone. An
    agent learns of a death by a lambda on a lane of its own (`is_news`), which blocks like others.
"""

from types import FunctionType

try:
    import cython
except ImportError:
    from worldline.kernel import uncompiled as cython  # type: ignore[no-redef]

from worldline.kernel.packing import fingerprint, seal
from worldline.model.errors import ModelError, UsageError
from worldline.model.message import SEPARATOR
from worldline.spacetime.functions import is_importable, name_of, sealed
from worldline.spacetime.kinds import ATTACH, CALL, CLOSE, DEATH
from worldline.spacetime.worker_messages import LaneGone, UnwatchFor, WatchFor

if cython.compiled:
    from cython.cimports.worldline.spacetime._geometry import Vector
    from cython.cimports.worldline.spacetime._lanes import Body, Lambda, Lane, new_lambda
    from cython.cimports.worldline.spacetime._population import Population
    from cython.cimports.worldline.spacetime._stepping import add_lane, drop_lane, linked
else:
    from worldline.spacetime.geometry import Vector
    from worldline.spacetime.lanes import Body, Lambda, Lane, new_lambda
    from worldline.spacetime.population import Population
    from worldline.spacetime.stepping import add_lane, drop_lane, linked

_CALL = cython.declare(cython.int, CALL)
_ATTACH = cython.declare(cython.int, ATTACH)
_DEATH = cython.declare(cython.int, DEATH)
_CLOSE = cython.declare(cython.int, CLOSE)
_CHAIN = cython.declare(cython.ulonglong, 2**60 - 1)
_SMALL = cython.declare(cython.longlong, 2**59)

_Function = cython.declare(object, FunctionType)
_LaneGone = cython.declare(object, LaneGone)
_WatchFor = cython.declare(object, WatchFor)
_UnwatchFor = cython.declare(object, UnwatchFor)
_seal = cython.declare(object, seal)
_fingerprint = cython.declare(object, fingerprint)


class ClosedError(ModelError):
    """Somebody sends on a channel that is closed, or whose target is known to be dead."""


@cython.cclass
class Traffic(Population):
    """Bodies, and the channels between them."""

    # -- How lanes begin

    def attach(self, lane: Lane) -> None:
        """Let a lane's target look at it from now on."""
        lane.attached = True
        lane.exact = False
        add_lane(lane.target, lane, lane.target.last)

    def open_lane(self, source: Body, target: Body, blind: bool) -> Lane:
        """Make a lane between two bodies, both of which are at the point of who acts."""
        lane: Lane = self.lane(self._channel_name(), source, target)
        source.outs.append(lane)
        self.attach(lane)
        self.note("created", source, lane.name, target.name)
        if not blind:
            self.watch(lane)
        return lane

    def derive(self, via: Lane, holder: Body) -> Lane:
        """Make a lane to the target of another, for whoever holds its end: who acts, or whom that is sent to.

        The other end goes to the target along the old lane. Nothing that is sent on the new one can be there earlier.
        """
        if not via.open or not self.acts(via.source):
            self.check_sender(via)
        name = self._channel_name()
        self.emit(via, _ATTACH, None, (name, holder.name, holder.home), 0, None)
        self.note("created", via.source, name, via.target.name)
        if via.target.is_here or holder.is_here:
            return self.lane(name, holder, via.target)
        return Lane(name, 0, holder, via.target)  # Nobody here has anything to do with it.

    def derive_own(self, body: Body, holder: Body) -> Lane:
        """Make a lane to who acts, for somebody whom its end is sent to."""
        lane: Lane = self.lane(self._channel_name(), holder, body)
        lane.floor = body.point
        self.note("created", body, lane.name, body.name)
        self._attach_end(lane)
        return lane

    def _channel_name(self) -> str:
        maker: Body = self.maker()
        return f"{maker.name}:{maker.count(':')}"

    def _attach_end(self, lane: Lane) -> None:
        """Attach a lane whose source's end is elsewhere."""
        self.attach(lane)
        if not lane.source.is_here:
            self.outbox.append((lane.source, _WatchFor(lane.source.name, "", lane.target.name, self.me)))
        self.note("attached", lane.target, lane.name, lane.source.name)

    def take_end(self, name: str, target: str, home: int) -> Lane:
        """Let who acts hold the end of a lane that has come to it."""
        body: Body = self.acting
        lane: Lane = self.lane(name, body, self.body(target, home))
        body.outs.append(lane)
        self.note("held", body, name, target)
        return lane

    def _take_end(self, body: Body, item: Lambda) -> None:
        """Attach the end of a channel that has come to its target."""
        name, source, home = item.arguments
        lane: Lane = self.lane(name, self.body(source, home), body)
        lane.source = self.body(
            source, home
        )  # It may have been given up before it came, when only its target was known.
        lane.floor = item.at
        self._attach_end(lane)

    # -- How they end

    def close(self, lane: Lane) -> None:
        """Let nothing more be sent on a lane."""
        lane.source.chain = linked(lane.source.chain, _CLOSE, 0.0, lane.key, lane.sent, 0)
        self.note("closed", lane.source, lane.name, lane.target.name)
        self.give_up(lane)

    def give_up(self, lane: Lane) -> None:
        """Say that nobody can send on a lane any more. Its target just no longer waits for it, which nobody sees (S4).

        So it may happen at any moment, such as when the garbage collector finds that nobody has the channel.
        """
        if not lane.open:
            return
        lane.open = False
        if lane in lane.source.outs:
            lane.source.outs.remove(lane)
        self.unwatch(lane)
        self.lose(lane.name, lane.target)

    def let_go(self) -> None:
        """Give up the lanes of channels that nobody has any more.

        That isn't done when the last one lets go of a channel, since this may be in the middle of anything.
        """
        dropped, self.dropped = self.dropped, []
        for lane in dropped:
            self.give_up(lane)

    def lose(self, name: str, target: Body) -> None:
        """Let a lane's target no longer wait for it."""
        if target.is_here and not target.done:
            lane: Lane = self.lane(name, target, target)
            lane.gone = True
            self._wake(target)
            return
        self.lanes.pop(name, None)
        if not target.is_here:
            self.outbox.append((target, _LaneGone(name, target.name)))

    def end(self, body: Body, silently: bool) -> None:
        """Take a body out. At the end of everything that is silent: nobody could hear of it."""
        lane: Lane
        body.chain = linked(body.chain, _DEATH, body.last, 0, body.events, silently)
        self.note("ended" if silently else "died", body, "", None)
        if not silently:
            body.death = body.point
            for lane in body.outs:
                if lane.is_news:  # Who wants the news may be luck; so they are nothing that this agent has sent.
                    self._send_news(lane, body.death)
            for lane in list(body.outs):
                if not lane.is_news:
                    self.give_up(lane)
        body.done = True
        self.live -= 1
        for lane in body.lanes:
            lane.place = -1
            if not silently:
                self._empty(lane)
                self.lanes.pop(lane.name, None)
        for lane in body.outs:
            lane.open = False
        body.lanes.clear()
        body.outs.clear()
        self._publish(body)
        if not silently and SEPARATOR in body.name:
            self.graves[body.name] = body.death, int(body.chain), body.events
            del self.bodies[body.name]
            self.elsewhere[body.name] = body

    def _empty(self, lane: Lane) -> None:
        """Let what is under way on a lane vanish, and with it the ends of channels that it carries."""
        for item in lane.clear():
            self._vanish(item)

    def _vanish(self, item: Lambda) -> None:
        if item.ends is not None:
            for name, target, home in item.ends:
                self.lose(name, self.body(target, home))

    # -- News of deaths

    def watch(self, lane: Lane) -> None:
        """Let the source of a lane learn when its target dies."""
        target: Body = lane.target
        news: Lane = self.lane(f"{lane.name}!", target, lane.source)
        news.is_news = True
        self.attach(news)
        self._wake(lane.source)
        if target.is_here:
            self.tell_death(target, news)
        else:
            news.asked = True
            self.outbox.append((target, _WatchFor(target.name, news.name, lane.source.name, self.me)))

    def unwatch(self, lane: Lane) -> None:
        """Let the source of a lane no longer wait for news of its target."""
        news: Lane = self.lanes.pop(f"{lane.name}!", None)
        if news is not None:
            if news.place >= 0:
                drop_lane(lane.source, news)
            if news in news.source.outs:
                news.source.outs.remove(news)
            if not news.source.is_here:
                self.outbox.append((news.source, _UnwatchFor(news.source.name, news.name)))
            self._wake(lane.source)

    def tell_death(self, body: Body, news: Lane) -> None:
        """Let a lane have the news of a body's death, now or later."""
        if not body.done:
            body.outs.append(news)
        elif body.death is not None:
            self._send_news(news, body.death)

    def _send_news(self, news: Lane, death: Vector) -> None:
        self.deliver(news, new_lambda(death, 0, _DEATH, None, (), 0, None))
        if not news.target.is_here:  # Nothing more will be sent on it, and what comes of it is the other worker's.
            self.lanes.pop(news.name, None)

    def _take_news(self, body: Body, news: Lane) -> None:
        """Learn of a death: the channel that leads there is closed.

        Nobody notices but who still has such a channel: the news themselves are no event, and in no history.
        """
        lane: Lane
        for lane in list(body.outs):
            if news.name == f"{lane.name}!":
                lane.open = False
                lane.told = True
                body.outs.remove(lane)
                self.lanes.pop(lane.name, None)
        drop_lane(body, news)
        self.lanes.pop(news.name, None)

    # -- What is sent

    def check_sender(self, lane: Lane) -> None:
        """Refuse to send on a lane that is closed, or that isn't the acting agent's."""
        source: Body = lane.source
        if not self.acts(source) and self.acting is not source:
            who = "nobody acts now" if self.acting is None else f"{self.acting.name} acts now"
            raise UsageError(
                f"the channel from {source.name} to {lane.target.name} is {source.name}'s, and {who}",
                advice="an agent sends on channels of its own, in its own events",
            )
        if lane.told:
            raise ClosedError(
                f"{lane.target.name} is dead, which is known here, so nothing can be sent to it",
                participant=source.name,
                advice="ask channel.is_open first, or catch the error",
            )
        if not lane.open:
            raise ClosedError(f"the channel to {lane.target.name} is closed", participant=source.name)

    def seal(self, function: object, arguments: tuple[object, ...]) -> tuple[object, object, int, object]:
        """Return what a lambda carries, a hash of it, and the ends of channels in it."""
        try:
            return self._sealed(function, arguments)
        except BaseException:
            captured, self.captured = self.captured, []
            for name, target, home in captured:
                self.lose(name, self.body(target, home))
            raise

    def _sealed(self, function: object, arguments: tuple[object, ...]) -> tuple[object, object, int, object]:
        try:
            content = self.prints.get(function)
        except TypeError:  # It can't even be looked up, so it is no function.
            content = None
        if content is None:
            function, content = self._sealed_function(function)
        carried: object = arguments
        if arguments:
            number: cython.longlong
            for number in range(len(arguments)):
                each = arguments[number]
                if type(each) is float:
                    content = linked(content, 1, each, number, 0, 0)
                elif type(each) is int and -_SMALL < each < _SMALL:
                    content = linked(content, 2, 0.0, number, each & _CHAIN, 0)
                elif each is None or type(each) is bool:
                    content = linked(content, 3, 0.0, number, 0 if each is None else 1 + each, 0)
                else:
                    print_of_arguments, carried = _seal(arguments)
                    content = linked(content, 0, 0.0, number, print_of_arguments, 0)
                    break
        ends = None
        if self.captured:
            ends = tuple(self.captured)
            self.captured = []
        return function, carried, content, ends

    def _sealed_function(self, function: object) -> tuple[object, int]:
        if is_importable(function):
            content = self.prints[function] = _fingerprint(name_of(function).encode())
            return function, content
        carried, content, captured = sealed(function)
        return carried, linked(0, 0, 0.0, content, captured, 0)


@cython.cclass
class ChannelEnd:
    """The end of a channel that its source holds."""

    __slots__ = ("core", "lane")

    def send(self, function: object, *arguments: object) -> None:
        """Send a function to the agent at the other end, which is called with that agent and the arguments.

        Name a method of the agent (``Ping.ping`` or ``"ping"``) or give any function, a lambda too. What it carries is
        copied: numbers, text, tuples, lists, dicts, dataclasses, remote references.
        """
        lane: Lane = self.lane
        core: Traffic = self.core
        if not lane.open or lane.source is not core.acting:
            core.check_sender(lane)
        content = core.prints.get(function) if not arguments and type(function) is _Function else None
        if content is not None:
            core.emit(lane, _CALL, function, (), content, None)
            return
        core.carrier = lane.target
        try:
            function, carried, content, ends = core.seal(function, arguments)
        finally:
            core.carrier = None
        core.emit(lane, _CALL, function, carried, content, ends)
