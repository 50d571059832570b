"""A client of the gRPC service."""

import asyncio

from grpclib.client import Channel, UnaryStreamMethod
from grpclib.encoding.base import CodecBase


class Plain(CodecBase):
    __content_subtype__ = "plain"

    def encode(self, message, message_type):
        return message

    def decode(self, data, message_type):
        return data


async def main() -> None:
    async with Channel("server", 50051, codec=Plain()) as channel:
        greet = UnaryStreamMethod(channel, "/Greeter/Greet", bytes, bytes)
        print(await greet(b"you"))


asyncio.run(main())
