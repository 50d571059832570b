"""The members of the crowd: three programs that step, answer and look ahead. Those that step offer snapshots."""

from __future__ import annotations

import sys
from contextlib import suppress

import worldline
from worldline import MS, Participant, RunEnded, payload

PATIENCE_S = 60.0  # The server may have been killed, too, and reads its whole journal before it listens.


def walk(me: Participant) -> None:
    """Take a step every millisecond, in a direction that depends on everything heard so far; can be restored."""
    place, heard = (0.0, 0) if me.restored is None else payload.from_json(me.restored)
    while not me.ended:
        if me.now % (20 * MS) == 0:
            me.snapshot(payload.to_json([place, heard]))
        place += me.random.uniform(-1, 1) + heard % 3 - 1
        me.publish("steps", payload.to_json({"place": place, "heard": heard}))
        report(me)
        for message in me.advance(by="1ms"):
            heard = (heard * 31 + len(message.payload)) % 1_000_003


def talk(me: Participant) -> None:
    """Answer every seventh message, and forget nothing."""
    total = 0.0
    for count, message in enumerate(me.messages(), 1):
        total += payload.from_json(message.payload).get("place", 0.5)
        if count % 7 == 0:
            me.publish(
                "words", payload.to_json({"count": count, "total": total, "mood": me.stream("mood").choice("abc")})
            )
        report(me)


def watch(me: Participant) -> None:
    """Look ahead, promise to keep quiet until then, and say now and then what was seen."""
    seen = 0
    while not me.ended:
        until = me.peek(me.now + 5 * MS)
        me.promise(max(until, me.now))
        seen += len(me.next(until=max(until, me.now + 1)))
        if seen % 11 == 0 and not me.ended:
            me.publish("words", payload.to_json({"seen": seen, "at": me.now}))
        report(me)


def report(me: Participant) -> None:
    """Say where it is, for the process that may kill it there."""
    if SHOWS:
        print(me.now, flush=True)


SHOWS = __name__ == "__main__"

if __name__ == "__main__":
    _, program, address, name = sys.argv
    with worldline.connect(address, name, patience_s=PATIENCE_S) as me, suppress(RunEnded):
        {"walk": walk, "talk": talk, "watch": watch}[program](me)
