"""Requests with httpx, asynchronous and ordinary."""

import asyncio

import httpx


async def main() -> None:
    async with httpx.AsyncClient(base_url="http://server:8000") as client:
        while True:
            try:
                print((await client.post("/count/a")).json())
                break
            except httpx.ConnectError:
                await asyncio.sleep(0.1)
        answers = await asyncio.gather(*(client.post("/count/b") for _ in range(3)), client.get("/slow"))
        print([answer.json() for answer in answers])


asyncio.run(main())
with httpx.Client() as client:
    print(client.get("http://server:8000/slow").json(), client.get("http://server:8000/none").status_code)
