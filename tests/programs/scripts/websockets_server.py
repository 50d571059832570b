"""A WebSocket server that tells all what one says."""

import asyncio

from websockets.asyncio.server import ServerConnection, broadcast, serve

connected: list[ServerConnection] = []


async def handle(connection: ServerConnection) -> None:
    connected.append(connection)
    try:
        async for message in connection:
            broadcast(connected, message)
    finally:
        connected.remove(connection)


async def main() -> None:
    async with serve(handle, "", 8765) as server:
        await server.serve_forever()


asyncio.run(main())
