"""Anything that can be said: one Hypothesis strategy for each kind of event and answer."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from worldline.lock.events import (
    Abort,
    Advance,
    Down,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Next,
    Peek,
    Promise,
    Publish,
    Reached,
    Recalled,
    StartRun,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.model.links import Buffer
from worldline.model.message import Message
from worldline.model.time import FOREVER, TIME_MAX
from worldline.wire.handshake import Challenge, Deliver, Fail, Hello, Refused, Welcome

# Wider than what is a time, because the codec carries any number; what it means is judged elsewhere.
numbers = st.integers(-(2**62), 2**62)
times = st.one_of(st.integers(0, 300), st.integers(0, FOREVER))
durations = st.integers(0, TIME_MAX)
frame_sizes = st.integers(1, 2**31 - 1)
texts = st.text(max_size=20)
payloads = st.binary(max_size=60)
counts = st.dictionaries(texts, st.integers(0, 2**62), max_size=3)
messages = st.builds(Message, times, times, texts, times, st.integers(0, 1), texts, payloads)
subscriptions = st.builds(
    Subscription, texts, st.builds(Buffer, st.none() | st.integers(0, 9) | numbers, st.booleans())
)

EVENTS: dict[type, st.SearchStrategy[Any]] = {
    Join: st.builds(
        Join,
        st.none() | st.lists(texts, max_size=3).map(tuple),
        st.lists(subscriptions, max_size=3).map(tuple),
        numbers,
        st.booleans(),
    ),
    Publish: st.builds(Publish, texts, payloads, numbers),
    Promise: st.builds(Promise, numbers),
    Reached: st.builds(Reached, numbers),
    Subscribe: st.builds(Subscribe, subscriptions, numbers, numbers),
    Unsubscribe: st.builds(Unsubscribe, texts, numbers, numbers),
    Down: st.builds(Down, numbers, numbers, st.dictionaries(texts, numbers, max_size=3)),
    Invite: st.builds(Invite, texts, numbers),
    Stop: st.builds(Stop, numbers),
    Log: st.builds(Log, texts, texts),
    Advance: st.builds(Advance, numbers),
    Next: st.builds(Next, numbers, numbers),
    Peek: st.builds(Peek, numbers, numbers),
    Leave: st.builds(
        Leave,
        *(numbers, payloads, st.booleans(), counts, st.none() | numbers),
        st.lists(numbers, max_size=3).map(tuple),
        *(counts, counts, counts),
    ),
    Fail: st.builds(Fail, texts),
}
ANSWERS: dict[type, st.SearchStrategy[Any]] = {
    StartRun: st.builds(StartRun, texts, numbers, numbers, numbers, numbers),
    Grant: st.builds(Grant, texts, numbers, st.lists(messages, max_size=5), st.booleans()),
    Abort: st.builds(Abort, texts, texts, st.none() | texts, st.none() | numbers),
    Refused: st.builds(Refused, texts, texts),
    Deliver: st.builds(Deliver, st.lists(messages, max_size=5)),
    Recalled: st.builds(Recalled, numbers, numbers, payloads),
}
GREETINGS: dict[type, st.SearchStrategy[Any]] = {
    Challenge: st.builds(Challenge, texts, numbers, payloads),
    Hello: st.builds(Hello, numbers, texts, texts, payloads, payloads, st.dictionaries(texts, texts, max_size=3)),
    Welcome: st.builds(Welcome, payloads, durations, frame_sizes, st.none() | EVENTS[Join], durations),
}
events = st.one_of(*EVENTS.values())
answers = st.one_of(*ANSWERS.values())
