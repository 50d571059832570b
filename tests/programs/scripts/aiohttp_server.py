"""An aiohttp server with a route that waits, and a WebSocket."""

import asyncio

from aiohttp import WSMsgType, web


async def hello(request: web.Request) -> web.Response:
    await asyncio.sleep(0.01)
    return web.json_response({"hello": request.match_info["name"], "agent": request.headers["User-Agent"][:7]})


async def chat(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data[::-1])
    return socket


app = web.Application()
app.add_routes([web.get("/hello/{name}", hello), web.get("/chat", chat)])
web.run_app(app, port=8080, print=None)
