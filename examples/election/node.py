"""A node of three that elect a leader, over TCP; it knows nothing of any simulation.

``python node.py PORT PEER:PORT ...``; with ``--careful``, a node notes its vote before it writes it to its disk.
"""

import asyncio
import random
import socket
import sys

CAREFUL = "--careful" in sys.argv
PORT, *PEERS = [word for word in sys.argv[1:] if not word.startswith("--")]


class Node:
    def __init__(self) -> None:
        self.voted = 0  # The last term in which it has voted.
        self.led = 0  # The last term that has a leader.

    async def vote(self, term: int) -> bool:
        if term <= self.voted:
            return False
        if CAREFUL:
            self.voted = term
        await asyncio.sleep(0.002)  # It writes its vote to its disk.
        self.voted = max(self.voted, term)
        return True

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        word, term = (await reader.readline()).decode().split()
        if word == "vote":
            writer.write(b"yes\n" if await self.vote(int(term)) else b"no\n")
        else:
            self.led = max(self.led, int(term))
        writer.close()

    async def ask(self, peer: str, text: str) -> bool:
        host, _, port = peer.partition(":")
        try:
            async with asyncio.timeout(0.1):
                reader, writer = await asyncio.open_connection(host, int(port))
                try:
                    writer.write(text.encode())
                    return await reader.readline() == b"yes\n"
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    async def ask_all(self, text: str) -> int:
        return sum(await asyncio.gather(*(self.ask(peer, text) for peer in PEERS)))

    async def run(self) -> None:
        await asyncio.start_server(self.handle, port=int(PORT))
        while not self.led:
            await asyncio.sleep(random.uniform(0.05, 0.3))
            term = self.voted + 1
            if self.led or not await self.vote(term):
                continue
            if await self.ask_all(f"vote {term}\n"):
                print(f"{socket.gethostname()} leads in term {term}")
                self.led = term
                await self.ask_all(f"leader {term}\n")
        await asyncio.sleep(1)


asyncio.run(Node().run())
