"""Deposits ten times, and tries again when the service doesn't answer. With ``--keys``, repetitions have a key."""

import asyncio
import sys
import uuid

import httpx


async def main() -> None:
    async with httpx.AsyncClient(base_url="http://api:8000", timeout=0.2) as client:
        for number in range(10):
            key = str(uuid.uuid4()) if "--keys" in sys.argv else ""
            while True:
                try:
                    answer = await client.post("/deposit/ann/1", params={"key": key})
                    answer.raise_for_status()
                    break
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)
            print(f"deposit {number + 1}: balance {answer.json()['balance']}")


asyncio.run(main())
