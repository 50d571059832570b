"""All that a program may have to catch is in `worldline.errors`."""

from __future__ import annotations

import inspect

import worldline
import worldline.errors
from worldline import lock
from worldline.model import errors as model_errors


def test_errors_are_in_one_place() -> None:
    raised = [each for _, each in inspect.getmembers(model_errors, inspect.isclass)]
    raised += [lock.Crashed, lock.EmergencyStop, lock.RunEnded]
    assert {each.__name__: each for each in raised if issubclass(each, BaseException)} == {
        name: getattr(worldline.errors, name) for name in worldline.errors.__all__
    }
    assert worldline.__getattr__("errors") is worldline.errors
