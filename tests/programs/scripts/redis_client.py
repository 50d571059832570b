"""redis-py, ordinary and asynchronous."""

import asyncio

import redis
import redis.asyncio

client = redis.Redis(host="server", port=6379)
print(client.ping(), client.set("a", "1"), client.get("a"), [client.incr("n") for _ in range(3)])


async def main() -> None:
    async with redis.asyncio.Redis(host="server") as client:
        print(await asyncio.gather(*(client.incr("n") for _ in range(5))), await client.get("none"))


asyncio.run(main())
