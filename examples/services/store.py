"""A stub of a database: accounts, one command per line, over TCP. What it writes down outlives a crash."""

import asyncio
import json
from pathlib import Path

FILE = Path("accounts.json")
accounts: dict[str, int] = json.loads(FILE.read_text()) if FILE.exists() else {}


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        name, amount = line.split()
        await asyncio.sleep(0.002)
        accounts[name.decode()] = accounts.get(name.decode(), 0) + int(amount)
        FILE.write_text(json.dumps(accounts))
        writer.write(b"%d\n" % accounts[name.decode()])
    writer.close()


async def main() -> None:
    async with await asyncio.start_server(handle, port=5000) as server:
        await server.serve_forever()


asyncio.run(main())
