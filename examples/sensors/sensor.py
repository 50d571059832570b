"""Publishes a reading every second, and begins again when its connection is gone."""

import asyncio
import logging
import random
import socket

from amqtt.client import ClientError, ConnectError, MQTTClient
from amqtt.mqtt.constants import QOS_1

logging.disable(logging.CRITICAL)


async def main() -> None:
    name = socket.gethostname()
    client = MQTTClient(client_id=name, config={"auto_reconnect": False})
    await client.connect("mqtt://broker:1883/")
    for number in range(8):
        await asyncio.sleep(1)
        reading = 20 + random.gauss(0, 1)
        await client.publish(f"room/{name}", f"{number} {reading:.2f}".encode(), qos=QOS_1)
    await client.disconnect()


async def persistently() -> None:
    while True:
        try:
            return await main()
        except (ConnectError, ClientError, OSError) as error:
            print(f"{type(error).__name__}, again in 1 s")
            await asyncio.sleep(1)


asyncio.run(persistently())
