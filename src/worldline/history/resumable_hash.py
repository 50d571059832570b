# cython: boundscheck=False, wraparound=False, cdivision=True
"""BLAKE2b that can be put away and taken up elsewhere.

A participant that is restored from its snapshot goes on with its digest, so the hash must be part of the snapshot; that
of `hashlib` can't be. This one follows RFC 7693, without a key, and comes to the same result. It is a few times slower,
and much slower as plain Python: only participants that offer snapshots use it.
"""

from __future__ import annotations

_BLOCK = 128
_ROUNDS = 12
_MASK = 2**64 - 1
_FIRST = 0x01010000  # No key, a fan-out and a depth of one.

_START = (
    *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
    *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
)
_ORDERS = (
    bytes((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
    bytes((14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)),
    bytes((11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)),
    bytes((7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)),
    bytes((9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)),
    bytes((2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)),
    bytes((12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)),
    bytes((13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)),
    bytes((6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)),
    bytes((10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)),
)


HashState = tuple[tuple[int, ...], int, bytes]
"""A hash that was put away: its eight words, how many bytes they stand for, and those that come next."""


class ResumableHash:
    """A running BLAKE2b; from a state, if one is given."""

    def __init__(self, digest_size: int, state: HashState | None = None) -> None:
        self._size = digest_size
        self._words = [0] * 8
        self._mixed = [0] * 16
        self._block = [0] * 16
        if state is None:
            state = ((_START[0] ^ _FIRST ^ digest_size, *_START[1:]), 0, b"")
        words, count, rest = state
        for place, word in enumerate(words):
            self._words[place] = word
        self._count = count  # Bytes that were mixed in.
        self._rest = rest  # Those that weren't yet: the last block is another case, so it waits.

    def update(self, data: bytes | memoryview) -> None:
        """Go on with these bytes."""
        unmixed = self._rest + bytes(data)
        start = 0
        while len(unmixed) - start > _BLOCK:
            self._count += _BLOCK
            self._mix_in(unmixed, start, False)
            start += _BLOCK
        self._rest = unmixed[start:]

    def digest(self) -> bytes:
        """Return the hash of everything so far."""
        last = ResumableHash(self._size, self.state())
        last._count += len(self._rest)
        last._mix_in(self._rest.ljust(_BLOCK, b"\0"), 0, True)
        return b"".join([word.to_bytes(8, "little") for word in last.state()[0]])[: self._size]

    def state(self) -> HashState:
        """Put it away. The hash itself can still go on."""
        return tuple(self._words), self._count, self._rest

    def _mix_in(self, data: bytes, start: int, is_last: bool) -> None:
        words, mixed, block = self._words, self._mixed, self._block
        for place in range(16):
            word = 0
            for step in range(8):
                word = word << 8 | data[start + 8 * place + 7 - step]
            block[place] = word
        for place in range(8):
            mixed[place] = words[place]
            mixed[place + 8] = _START[place]
        mixed[12] ^= self._count
        if is_last:
            mixed[14] ^= _MASK
        for number in range(_ROUNDS):
            order = _ORDERS[number % 10]
            for place in range(4):
                first, second = block[order[2 * place]], block[order[2 * place + 1]]
                _stir(mixed, place, place + 4, place + 8, place + 12, first, second)
            for place in range(4):
                first, second = block[order[2 * place + 8]], block[order[2 * place + 9]]
                _stir(mixed, place, (place + 1) % 4 + 4, (place + 2) % 4 + 8, (place + 3) % 4 + 12, first, second)
        for place in range(8):
            words[place] ^= mixed[place] ^ mixed[place + 8]


def _stir(mixed: list[int], a: int, b: int, c: int, d: int, first: int, second: int) -> None:
    va, vb, vc, vd = mixed[a], mixed[b], mixed[c], mixed[d]
    va = (va + vb + first) & _MASK
    vd ^= va
    vd = (vd >> 32 | vd << 32) & _MASK
    vc = (vc + vd) & _MASK
    vb ^= vc
    vb = (vb >> 24 | vb << 40) & _MASK
    va = (va + vb + second) & _MASK
    vd ^= va
    vd = (vd >> 16 | vd << 48) & _MASK
    vc = (vc + vd) & _MASK
    vb ^= vc
    vb = (vb >> 63 | vb << 1) & _MASK
    mixed[a], mixed[b], mixed[c], mixed[d] = va, vb, vc, vd
