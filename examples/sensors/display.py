"""Shows what all sensors publish."""

import asyncio
import logging

from amqtt.client import MQTTClient
from amqtt.mqtt.constants import QOS_1

logging.disable(logging.CRITICAL)


async def main() -> None:
    client = MQTTClient(client_id="display", config={"auto_reconnect": False})
    await client.connect("mqtt://broker:1883/")
    await client.subscribe([("room/#", QOS_1)])
    while True:
        message = await client.deliver_message()
        print(message.topic, bytes(message.data).decode())


asyncio.run(main())
