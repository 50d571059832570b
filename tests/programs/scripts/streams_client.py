"""An asyncio client that draws what it says, and tells a datagram socket what it has heard."""

import asyncio
import random
import uuid


async def main() -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("blocking", 99))
    reader, writer = await asyncio.open_connection("server", 8080)
    for _ in range(5):
        writer.write(f"{random.random()} {uuid.uuid4()} {loop.time()}\n".encode())
        transport.sendto(await reader.readline())
        tasks = {asyncio.create_task(asyncio.sleep(random.random() / 10, number)) for number in range(3)}
        done, _ = await asyncio.wait(tasks)
        print([task.result() for task in done])
    writer.close()
    transport.close()


asyncio.run(main())
