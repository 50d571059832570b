"""LCM's own tools and libraries see what a run does: lcm-logger, lcm-logplayer, lcm-gen, plain LCM and Drake's."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lcm
import pytest

from tests.federation.transports import eventually
from tests.metasim.public.stage import loop, seen_by_participants
from worldline import run
from worldline.metasim.public import PublicLcm, TcpqBroker
from worldline.metasim.public.mirror import TIME_DEFINITION, encode_time
from worldline.metasim.public.tcpq import TIME_CHANNEL

_PATIENCE_S = 60.0
_BINARIES = Path(lcm.LCM_BIN_DIR)
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("tidy")]


def mirrored() -> list[tuple[str, bytes]]:
    return [(name, payload) for name, payload, *_ in seen_by_participants(loop())]


def test_lcm_logger_sees_everything(tmp_path: Path) -> None:
    path = tmp_path / "seen.lcmlog"
    with PublicLcm(serve="127.0.0.1:0") as mirror:
        logger = subprocess.Popen(
            [_BINARIES / "lcm-logger", f"--lcm-url={mirror.url}", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert mirror.wait_for_subscribers(["anything"], _PATIENCE_S) == []
        run(loop(), observer=mirror)
    logger.communicate(timeout=_PATIENCE_S)  # It ends when the broker does.
    found = [(event.channel, event.data) for event in lcm.EventLog(str(path))]
    assert [each for each in found if each[0] != TIME_CHANNEL] == mirrored()


def test_lcm_logplayer_plays_a_log(tmp_path: Path) -> None:
    path = tmp_path / "run.lcmlog"
    with PublicLcm(str(path)) as mirror:
        run(loop(), observer=mirror)
    logged = [(event.channel, event.data) for event in lcm.EventLog(str(path))]
    heard: list[tuple[str, bytes]] = []
    with TcpqBroker(heard=lambda *told: heard.append(told)) as broker:
        command = [_BINARIES / "lcm-logplayer", f"--lcm-url={broker.url}", "--speed=1000", path]
        subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE_S)
        eventually(lambda: len(heard) == len(logged))
    assert heard == logged


_PLAIN = """
import lcm, sys
messages = lcm.LCM(sys.argv[1])
def handle(channel, data):
    print(channel, data.decode(), flush=True)
messages.subscribe("(STATE|COMMAND)/[^>]*", handle)
for _ in range(int(sys.argv[2])):
    messages.handle()
"""

_DRAKE = """
import sys
from pydrake.lcm import DrakeLcm
messages = DrakeLcm(sys.argv[1])
count = 0
def handle(channel):
    def told(data):
        global count
        count += 1
        print(channel, data.decode(), flush=True)
    return told
for channel in ("STATE/plant", "COMMAND/controller"):
    messages.Subscribe(channel, handle(channel))
while count < int(sys.argv[2]):
    messages.HandleSubscriptions(100)
"""


@pytest.mark.parametrize("program", ["plain", "drake"])
def test_subscribers_of_both_libraries_see_the_sends(program: str) -> None:
    if program == "drake" and importlib.util.find_spec("pydrake") is None:
        pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
    expected = [(name, data) for name, data in mirrored() if ">" not in name]
    with PublicLcm(serve="127.0.0.1:0") as mirror:
        assert mirror.url is not None
        subscriber = subprocess.Popen(
            [sys.executable, "-c", {"plain": _PLAIN, "drake": _DRAKE}[program], mirror.url, str(len(expected))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert mirror.wait_for_subscribers(["STATE/plant", "COMMAND/controller"], _PATIENCE_S) == []
        run(loop(), observer=mirror)
        assert mirror.drain()
        output, _ = subscriber.communicate(timeout=_PATIENCE_S)
    lines = [(name, data.encode()) for name, _, data in (line.partition(" ") for line in output.splitlines())]
    # Drake hands over what comes in at once channel by channel.
    assert lines == expected if program == "plain" else sorted(lines) == sorted(expected)


def test_multicast_reaches_a_plain_subscriber() -> None:
    url = f"udpm://239.255.76.67:{20000 + os.getpid() % 20000}?ttl=0"
    try:
        subscriber = lcm.LCM(f"{url}&recv_buf_size=4194304")
    except RuntimeError:
        pytest.skip("this machine has no route for multicast, not even on loopback")
    heard: list[tuple[str, bytes]] = []
    subscriber.subscribe(".*", lambda *told: heard.append(told)).set_queue_capacity(0)
    with PublicLcm(url) as mirror:
        for number in range(20):
            mirror.sent("a", number, "T", number, b"%d" % number, until=number)
        mirror.passed(20)
        assert mirror.drain()
    while len(heard) < 40 and subscriber.handle_timeout(int(_PATIENCE_S * 1000)):
        pass
    assert heard == [told for n in range(20) for told in ((TIME_CHANNEL, encode_time(n, n)), ("T/a", b"%d" % n))]


def test_the_time_is_a_message_that_generated_code_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "time.lcm").write_text(TIME_DEFINITION.replace("package worldline", "package worldline_public"))
    command = [_BINARIES / "lcm-gen", "-p", "--ppath", tmp_path, tmp_path / "time.lcm"]
    subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE_S)
    monkeypatch.syspath_prepend(tmp_path)
    time_t: Any = importlib.import_module("worldline_public").time_t
    decoded = time_t.decode(encode_time(10_000_000, 13_000_000))
    assert (decoded.sent_ns, decoded.at_ns) == (10_000_000, 13_000_000)
