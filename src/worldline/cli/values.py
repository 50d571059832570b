"""Values of parameters, converted only where they have to be: typer loads pydantic for it, which takes 0.2 seconds.

What wasn't given is None or a default of ours, and what is given as a text is mostly meant as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Processed:
    """Takes the place of a parameter's `process_value`, and leaves to that what needs it."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter
        self._usual = parameter.process_value
        # If another version of typer doesn't say what a parameter is, all that is given is converted.
        self._is_text = getattr(getattr(parameter, "type_descriptor", None), "annotation", None) in (str, list[str])

    def __call__(self, context: Any, value: Any) -> Any:
        is_given = isinstance(value, str) or (isinstance(value, Sequence) and len(value) > 0)
        if not self._is_text if is_given else self._parameter.required:
            return self._usual(context, value)
        if value is None and self._parameter.multiple:
            value = ()
        callback = self._parameter.callback
        return value if callback is None else callback(context, self._parameter, value)


def spare(parameters: Sequence[Any]) -> None:
    """Convert the values of these only where they have to be."""
    for each in parameters:
        if not isinstance(each.process_value, Processed):
            each.process_value = Processed(each)
