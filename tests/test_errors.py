"""All that a program may have to catch is in `worldline.errors`."""

from __future__ import annotations

import inspect
import pickle

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


def test_what_an_error_quotes_cant_begin_a_line() -> None:
    error = model_errors.UsageError("no\nforged", participant="ann\nforged", at=5, advice="try\n\x1b[2J\u202eforged")
    told = r"ann\nforged at 5ns: no\nforged (try\n\x1b[2J\u202eforged)"
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == told
    assert str(model_errors.ModelError("no").concerning("ann\nforged", 5)) == r"ann\nforged at 5ns: no"
    several = model_errors.ConfigurationError("a\nb\nc", mistakes=["a\nb", "c"])
    assert str(several) == "a\\nb\nc"
