"""Answers with what it is sent, in capitals: an ordinary server, which knows nothing of Worldline."""

from __future__ import annotations

import asyncio


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def main() -> None:
    async with await asyncio.start_server(handle, port=8080) as server:
        await server.serve_forever()


asyncio.run(main())
