"""An MQTT broker of amqtt."""

import asyncio
import logging

from amqtt.broker import Broker

logging.disable(logging.CRITICAL)
CONFIG = {
    "listeners": {"default": {"type": "tcp", "bind": "0.0.0.0:1883"}},
    "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
}


async def main() -> None:
    broker = Broker(CONFIG)
    await broker.start()
    await asyncio.sleep(60)


asyncio.run(main())
