"""A service that books seats, over TCP: ``SEAT NAME`` is answered ``yours`` or ``taken``.

It looks whether a seat is free, writes the booking down, and only then remembers it. Two that ask at about the same
time both get the seat: that is the mistake which the tests are to find. `careful` lets one after the other in.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

PORT = 7000


class Seats:
    """Which seats are booked, and for whom."""

    def __init__(self, careful: bool = False) -> None:
        self._names: dict[str, str] = {}
        self._lock = asyncio.Lock() if careful else None

    async def book(self, seat: str, name: str) -> str:
        """Book a seat unless it is taken."""
        async with AsyncExitStack() as stack:
            if self._lock is not None:
                await stack.enter_async_context(self._lock)
            if seat in self._names:
                return "taken"
            await write_down(seat, name)
            self._names[seat] = name
            return "yours"


async def write_down(seat: str, name: str) -> None:
    """Write a booking to a disk: that takes two milliseconds."""
    await asyncio.sleep(0.002)
    print(f"seat={seat} name={name}")


async def serve(careful: bool = False) -> None:
    """Answer requests for ever."""
    seats = Seats(careful)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            seat, name = line.decode().split()
            writer.write(f"{await seats.book(seat, name)}\n".encode())
        writer.close()

    async with await asyncio.start_server(answer, port=PORT) as server:
        await server.serve_forever()


async def ask(host: str, seat: str, name: str) -> str:
    """Ask a service for a seat, and return its answer."""
    reader, writer = await asyncio.open_connection(host, PORT)
    writer.write(f"{seat} {name}\n".encode())
    answer = (await reader.readline()).decode().strip()
    writer.close()
    return answer


if __name__ == "__main__":
    asyncio.run(serve())
