"""The names of those who are made during a run: their maker's name stands before their own.

So nobody has to number newcomers for all, only its own, and names are the same whoever runs what. A whole lineage would
make a long name, though, and generations are without end. Where the name would be longer than names may be, and
from there on in all later generations, a hash stands for the maker's: ``place/~hash/own``. The place is the ancestor
from before the run, so a name still begins with where it belongs, and it ends with what its maker calls it. The hash
is of the maker's name, which has its own maker's hash in it: each birth takes the same time, however many went before.

Names are unique as far as hashes of 128 bits are: among 10¹² makers, two share one with a chance of 10⁻¹⁵. How such
names sort says nothing, but depends on nothing but names.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from worldline.model.message import NAME_LENGTH_MAX

SEPARATOR = "/"

_HASH_SIZE = 16
_SHORT = re.compile(rf"~[0-9a-f]{{{2 * _HASH_SIZE}}}")


def descendant(place: str, maker: str, own: str) -> str:
    """Return the name of whom somebody at a place has made, and calls by a name of its own."""
    whole = f"{maker}{SEPARATOR}{own}"
    if len(whole) <= NAME_LENGTH_MAX and not is_short(maker[len(place) + 1 :].partition(SEPARATOR)[0]):
        return whole
    hashed = blake2b(maker.encode(), digest_size=_HASH_SIZE, person=b"worldline").hexdigest()
    return f"{place}{SEPARATOR}~{hashed}{SEPARATOR}{own}"


def is_short(part: str) -> bool:
    """Whether this part of a name stands for the name of a maker. Nobody can be given it as a name."""
    return _SHORT.fullmatch(part) is not None
