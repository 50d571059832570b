"""An aiohttp client: requests at once and one after the other, and a WebSocket."""

import asyncio

import aiohttp


async def main() -> None:
    async with aiohttp.ClientSession("http://server:8080") as session:

        async def ask(name: str) -> dict[str, str]:
            async with session.get(f"/hello/{name}") as answer:
                return await answer.json()

        print(await asyncio.gather(*(ask(f"n{number}") for number in range(5))))
        print(await ask("last"))
        async with session.ws_connect("/chat") as socket:
            await socket.send_str("stressed")
            print((await socket.receive()).data)


asyncio.run(main())
