"""How long one that was killed takes until it goes on: two processes, of which one echoes what the other sends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import worldline
from worldline import MS, Network, Server, link, plan

EACH = 10  # Messages in each step, there and back.


def rejoin(messages: int) -> tuple[float, float]:
    """Return the seconds from the start of a process until it has said and received so many messages again.

    And how many of them it and the server have computed: on a busy machine, that says more.
    """
    steps = messages // (2 * EACH)
    with Server(plan(["echo", "source"], network=Network(default=link(MS))), on_loss="rejoin") as server:
        source = _start("source", server, steps)
        first = _start("echo", server, steps)
        _heard(first)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        began, computed = time.monotonic(), time.process_time()
        second = _start("echo", server, steps)
        theirs = _heard(second)
        seconds, computing = time.monotonic() - began, time.process_time() - computed + theirs
        for process in (source, second):
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        for process in (source, second):
            process.communicate()
        server.wait(60)
    return seconds, computing


def _start(name: str, server: Server, steps: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, json.dumps([name, str(server.address), steps])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _heard(process: subprocess.Popen[bytes]) -> float:
    """Wait until a child has come to the last steps; return for how long it has computed."""
    assert process.stdout is not None
    return float(process.stdout.readline())


def _be(name: str, address: str, steps: int) -> None:
    other = {"echo": "source", "source": "echo"}[name]
    with worldline.connect(address, name, publishes=[name], subscribes=[other]) as me:
        for step in range(steps + 2):
            if step == steps:
                os.write(1, b"%f\n" % time.process_time())
                os.read(0, 1)  # It is told to go on, or killed.
            if name == "source":
                for number in range(EACH):
                    me.publish(name, b"%90d" % number)
            for message in me.advance(by=MS):
                if name == "echo":
                    me.publish(name, message.payload)


if __name__ == "__main__":
    _be(*json.loads(sys.argv[1]))
