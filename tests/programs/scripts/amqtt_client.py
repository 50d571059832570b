"""An MQTT client that publishes, or hears, five readings."""

import asyncio
import logging
import sys

from amqtt.client import MQTTClient
from amqtt.mqtt.constants import QOS_1

logging.disable(logging.CRITICAL)


async def main() -> None:
    client = MQTTClient(client_id=sys.argv[1], config={"auto_reconnect": False})
    await asyncio.sleep(0.1)
    await client.connect("mqtt://broker:1883/")
    if sys.argv[1] == "reader":
        await client.subscribe([("room/#", QOS_1)])
        for _ in range(5):
            message = await client.deliver_message()
            print(message.topic, bytes(message.data))
    else:
        await asyncio.sleep(1)
        for number in range(5):
            await client.publish("room/1", b"%d degrees" % number, qos=QOS_1)
    await client.disconnect()


asyncio.run(main())
