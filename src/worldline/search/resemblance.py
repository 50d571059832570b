"""Tells whether two failures are the same: the same property or error, and a reason of the same shape.

A reason says who and how many: ``2 and 1 are inside``, ``without one: [0, 1]``. In a smaller network these are others,
so numbers, quoted texts and lists are all taken for the same, and so are one and many; what is left is its shape.
"""

from __future__ import annotations

import re

from worldline.model.blame import described, own_line
from worldline.model.errors import WorldlineError
from worldline.search.properties import Violation

_VALUE = "#"
_QUOTED = re.compile(r"(?<!\w)('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)")  # Not the one in "doesn't".
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?:(?:ns|us|ms|s|min|h)\b)?")
_WORD = re.compile(r"\b(?:None|True|False|inf|nan)\b")
_LIST = re.compile(r"\[[^\[\]{}]*\]|\{[^\[\]{}]*\}|\((?:# ?,? ?)*\)")
_SEVERAL = re.compile(r"#(?:(?:, and | and |, or | or |[-:;,/ ]+|[<=>-]+)#)+")
_PLURAL = {"are": "is", "were": "was", "have": "has", "do": "does"}
_VERB = re.compile(rf"\b({'|'.join(_PLURAL)})(?=\b|n't)")
_NOUN = re.compile(r"(?<=# )(\w+?)s\b|\b(\w+?)s(?=:? #)")


def shape_of(text: str) -> str:
    """Return a text with every value in it replaced by the same sign."""
    for value in (_QUOTED, _NUMBER, _WORD):
        text = value.sub(_VALUE, text)
    before = ""
    while text != before:  # From the innermost list to the outermost.
        before, text = text, _LIST.sub(_VALUE, _SEVERAL.sub(_VALUE, text))
    return _NOUN.sub(r"\1\2", _VERB.sub(lambda found: _PLURAL[found[1]], text))


def likeness_of(failure: WorldlineError) -> tuple[str, ...]:
    """Return what all failures of the same kind have in common."""
    if isinstance(failure, Violation):
        when = "during the run" if failure.facts["during"] else "at the end"
        return (str(failure.facts["property"]), when, shape_of(failure.problem))
    cause = failure.__cause__
    if cause is None:
        return (type(failure).__name__, shape_of(failure.problem))
    return (type(failure).__name__, type(cause).__name__, shape_of(described(cause)), str(own_line(cause)))
