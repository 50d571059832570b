"""An asyncio server that answers lines in capitals, after a job in a thread."""

import asyncio
import sys
import time


def work(line: bytes) -> bytes:
    time.sleep(0.002)
    return line.upper()


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write(await asyncio.to_thread(work, line))
        await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(handle, port=int(sys.argv[1]))
    async with server:
        await server.serve_forever()


asyncio.run(main())
