"""Lines: how what a program prints, which comes in pieces, becomes lines of text."""

from __future__ import annotations


class LineSplitter:
    """Takes what is printed in one place as it comes. A line that grows beyond `longest` isn't waited for."""

    def __init__(self, longest: int | None = None) -> None:
        self._longest = longest
        self._rest = b""  # Of a line that hasn't ended.

    def feed(self, data: bytes) -> list[str]:
        """Take what was printed; return each line that has ended by it."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        texts = [_text(line) for line in lines]
        if self._longest is not None and len(self._rest) > self._longest:
            texts += self.finish()
        return texts

    def finish(self) -> list[str]:
        """Nothing more comes: return the line that hasn't ended, if there is one."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
