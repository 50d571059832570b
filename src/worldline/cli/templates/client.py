"""Asks the host `server` once a second."""

from __future__ import annotations

import asyncio


async def ask() -> bytes:
    reader, writer = await asyncio.open_connection("server", 8080)
    writer.write(b"hello\n")
    answer = await reader.readline()
    writer.close()
    return answer


async def main() -> None:
    while True:
        try:
            print("heard", (await ask()).decode().strip())
        except OSError as error:
            print("the server is gone:", type(error).__name__)
        await asyncio.sleep(1)


asyncio.run(main())
