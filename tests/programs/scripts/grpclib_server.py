"""A gRPC service without generated code: its messages are bytes."""

import asyncio

from grpclib.const import Cardinality, Handler
from grpclib.encoding.base import CodecBase
from grpclib.server import Server, Stream


class Plain(CodecBase):
    __content_subtype__ = "plain"

    def encode(self, message, message_type):
        return message

    def decode(self, data, message_type):
        return data


class Greeter:
    async def greet(self, stream: Stream) -> None:
        name = await stream.recv_message()
        for number in range(3):
            await asyncio.sleep(0.01)
            await stream.send_message(b"%d: hello %s" % (number, name))

    def __mapping__(self):
        return {"/Greeter/Greet": Handler(self.greet, Cardinality.UNARY_STREAM, bytes, bytes)}


async def main() -> None:
    server = Server([Greeter()], codec=Plain())
    await server.start("0.0.0.0", 50051)
    await server.wait_closed()


asyncio.run(main())
