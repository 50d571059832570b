"""A FastAPI application with an asynchronous and an ordinary endpoint, which runs in a thread."""

import asyncio
import time

from fastapi import FastAPI

app = FastAPI()
counts: dict[str, int] = {}


@app.post("/count/{name}")
async def count(name: str) -> dict[str, int]:
    before = counts.get(name, 0)
    await asyncio.sleep(0.005)
    counts[name] = before + 1
    return {"count": counts[name]}


@app.get("/slow")
def slow() -> dict[str, float]:
    time.sleep(0.25)
    return {"time": time.monotonic()}
