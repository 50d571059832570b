"""A FastAPI service in front of the store."""

import asyncio
import uuid

from fastapi import FastAPI

app = FastAPI()
requests: dict[str, asyncio.Task[int]] = {}


async def add(name: str, amount: int) -> int:
    reader, writer = await asyncio.open_connection("store", 5000)
    writer.write(f"{name} {amount}\n".encode())
    balance = int(await reader.readline())
    writer.close()
    return balance


@app.post("/deposit/{name}/{amount}")
async def deposit(name: str, amount: int, key: str = "") -> dict[str, int]:
    """Deposit an amount. A client that repeats a request gives it the same key, and gets the same answer."""
    key = key or str(uuid.uuid4())
    if key not in requests:
        requests[key] = asyncio.create_task(add(name, amount))
    return {"balance": await asyncio.shield(requests[key])}
