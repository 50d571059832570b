"""Keeps a total on its disk, and says what it is once it has added to it."""

import socketserver
from pathlib import Path


class Adding(socketserver.StreamRequestHandler):
    """Adds the numbers that come in, one a line."""

    def handle(self):
        for line in self.rfile:
            total = int(Path("total").read_text()) + int(line)
            Path("new").write_text(str(total))  # What is missing: os.fsync, of the file and then of its folder.
            Path("new").replace("total")
            self.wfile.write(b"%d\n" % total)


with socketserver.TCPServer(("", 9000), Adding) as server:
    server.serve_forever()
