"""A WebSocket client that says something and hears what others say."""

import asyncio
import socket

from websockets.asyncio.client import connect


async def main() -> None:
    async with connect("ws://server:8765") as connection:
        await asyncio.sleep(0.5)
        await connection.send(f"I am {socket.gethostname()}")
        async with asyncio.timeout(2):
            heard = [await connection.recv() for _ in range(2)]
        print(heard)


asyncio.run(main())
