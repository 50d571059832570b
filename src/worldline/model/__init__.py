"""The model: time, messages and their order, keyed randomness, links and buffers, errors."""

from worldline.model import errors, payload
from worldline.model.clock import LocalClock, clock
from worldline.model.errors import (
    BrokenPromise,
    ConfigurationError,
    InternalError,
    Interrupted,
    LossError,
    ModelError,
    NonDeterminism,
    PeerError,
    Stuck,
    UsageError,
    WorldlineError,
)
from worldline.model.latency import exponential, fixed, normal, table, uniform
from worldline.model.links import (
    DISCARD,
    MAILBOX,
    UNBOUNDED,
    Buffer,
    Link,
    Network,
    Outage,
    Rule,
    hold,
    link,
    newest,
    oldest,
    partition,
)
from worldline.model.message import Message
from worldline.model.plan import Plan, plan
from worldline.model.randomness import Stream
from worldline.model.reading import as_time, parse_time
from worldline.model.time import FOREVER, HOUR, MINUTE, MS, NS, SECOND, TIME_MAX, US, format_time

__all__ = [
    "DISCARD",
    "FOREVER",
    "HOUR",
    "MAILBOX",
    "MINUTE",
    "MS",
    "NS",
    "SECOND",
    "TIME_MAX",
    "UNBOUNDED",
    "US",
    "BrokenPromise",
    "Buffer",
    "ConfigurationError",
    "InternalError",
    "Interrupted",
    "Link",
    "LocalClock",
    "LossError",
    "Message",
    "ModelError",
    "Network",
    "NonDeterminism",
    "Outage",
    "PeerError",
    "Plan",
    "Rule",
    "Stream",
    "Stuck",
    "UsageError",
    "WorldlineError",
    "as_time",
    "clock",
    "errors",
    "exponential",
    "fixed",
    "format_time",
    "hold",
    "link",
    "newest",
    "normal",
    "oldest",
    "parse_time",
    "partition",
    "payload",
    "plan",
    "table",
    "uniform",
]
