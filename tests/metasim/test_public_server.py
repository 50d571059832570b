"""A metasim server with a public LCM: what its clients send and are delivered can be seen while it runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import lcm
import pytest

from tests.federation.transports import Strand
from worldline import MS, connect
from worldline.metasim.driving import Send, drive
from worldline.metasim.public.tcpq import TIME_CHANNEL, TcpqPort
from worldline.metasim.server import MetasimServer
from worldline.model import Message
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError

pytestmark = pytest.mark.usefixtures("tidy")
_PATIENCE_S = 30.0


class Ticker:
    """A simulator that publishes how much it has heard, once in 10 ms."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._now = 0
        self._heard = 0

    def begin(self, now: int, send: Send) -> None:
        self._send = send
        self._next = now + 10 * MS
        send(self._channel, b"0", now)

    def due(self) -> int:
        return self._next

    def advance_to(self, time: int) -> None:
        if time == self._next:
            self._send(self._channel, b"%d" % self._heard, time)
            self._next += 10 * MS

    def receive(self, messages: list[Message]) -> None:
        self._heard += len(messages)


def take_part(server: MetasimServer, name: str, channel: str, other: str) -> None:
    with connect(server.server, name, publishes=[channel], subscribes=[other]) as me:
        drive(me, Ticker(channel))


def clients(server: MetasimServer, a: str = "A", b: str = "B") -> list[Strand[None]]:
    return [
        Strand(partial(take_part, server, "plant", a, b), "plant"),
        Strand(partial(take_part, server, "pilot", b, a), "pilot"),
    ]


def test_a_log_shows_sends_and_deliveries(tmp_path: Path) -> None:
    logs, digests = [], []
    for number in range(2):
        path = tmp_path / f"{number}.lcmlog"
        with MetasimServer(["plant", "pilot"], 0.003, public=str(path)) as server:
            strands = clients(server)
            server.advance_to(0.05)
            outcome = server.finish()
            for strand in strands:
                strand.result()
        digests.append(outcome.digest)
        logs.append(path.read_bytes())
        assert server.public is not None
        assert server.public.lost == 0
    assert logs[0] == logs[1]
    assert digests[0] == digests[1]
    found = [(event.timestamp, event.channel) for event in lcm.EventLog(str(tmp_path / "0.lcmlog"))]
    assert found[:6] == [
        *((0, "B/pilot"), (0, "B/pilot>plant"), (0, "A/plant"), (0, "A/plant>pilot")),
        *((10_000, "B/pilot"), (10_000, "B/pilot>plant")),
    ]


def test_where_it_rests_a_subscriber_has_seen_what_was_before() -> None:
    with MetasimServer(["plant", "pilot"], 0.003, serve_lcm="127.0.0.1:0") as server:
        assert server.public is not None
        assert server.public.url is not None
        port = TcpqPort(server.public.url, [TIME_CHANNEL, "A/plant>pilot"])
        assert server.public.wait_for_subscribers([TIME_CHANNEL, "A/plant>pilot"], _PATIENCE_S) == []
        strands = clients(server)
        server.advance_to(0.025)
        seen = []
        while len(seen) < 3:
            received = port.receive(_PATIENCE_S)
            assert received is not None
            seen += [received[1]] if received[0] != TIME_CHANNEL else []
        assert seen == [b"0", b"1", b"2"]
        server.finish()
        for strand in strands:
            strand.result()
        port.close()


def test_names_that_do_not_fit_are_refused_before_time_passes() -> None:
    with pytest.raises(ConfigurationError, match="can't name a participant on a public LCM"):
        MetasimServer(["arm/left"], 0.003, serve_lcm="127.0.0.1:0")
    long = "x" * 60
    server = MetasimServer(["plant", "pilot"], 0.003, serve_lcm="127.0.0.1:0")
    server.open()
    strands = clients(server, a=long)
    with pytest.raises(ConfigurationError, match=f"{long}/plant.* has 66 bytes"):
        server.advance_to(1.0)
    with pytest.raises(ConfigurationError, match="has 66 bytes"):
        server.finish()
    for strand in strands:
        with pytest.raises(WorldlineError, match="bytes"):
            strand.result()
    assert server.get_time() == 0.0


def test_what_can_not_be_opened_is_an_error_before_the_run() -> None:
    server = MetasimServer(["plant"], 0.003, public="/nowhere/run.lcmlog")
    with pytest.raises(UsageError, match="there is no folder"):
        server.open()
