"""Is a seat ever sold twice? The first test fails, and says how; the others pass."""

from __future__ import annotations

import asyncio

import booking

import worldline
from worldline.search import Story, always


@worldline.host
async def service() -> None:
    await booking.serve()


@worldline.host
async def careful() -> None:
    await booking.serve(careful=True)


async def both_ask(host: str) -> list[str]:
    """Let Ann ask for seat 7, and Bob a moment later."""
    await asyncio.sleep(1)
    ann = asyncio.create_task(booking.ask(host, "7", "ann"))
    await asyncio.sleep(0.01)
    bob = asyncio.create_task(booking.ask(host, "7", "bob"))
    return [await ann, await bob]


@worldline.test(seeds=200)
async def test_a_seat_is_sold_once(service):
    assert sorted(await both_ask(service.name)) == ["taken", "yours"]


@worldline.test(seeds=50, schedules="random")
async def test_a_careful_service_sells_it_once(careful):
    assert sorted(await both_ask(careful.name)) == ["taken", "yours"]


@always("no seat has two names")
def sold_once(story: Story) -> bool:
    booked = [line.text.split()[0] for line in story.noted(by="careful")]
    return len(booked) == len(set(booked))


@worldline.test(seeds=50, faults="partition=1", until="20s", properties=[sold_once])
async def test_a_partition_changes_nothing(careful):
    assert sorted(await both_ask(careful.name)) == ["taken", "yours"]
