"""Leaky twins of a SimPy model are caught: each depends on something that must not matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from worldline.targets.verifying import Verifier

MODEL = """
import os
import time
import simpy

GUESTS = ["ann", "robert", "jo", "elizabeth", "max"]


def guest(env, name, store):
    yield env.timeout({delay})
    yield store.put(name)


def host(env, store):
    for _ in GUESTS:
        yield store.get()


def model():
    env = simpy.Environment()
    store = simpy.Store(env)
    env.process(host(env, store))
    for name in {guests}:
        env.process(guest(env, name, store))
    return env
"""
SOUND = {"delay": "len(name)", "guests": "GUESTS"}
LEAKS = {
    "the order of a set shows in values alone": ({"delay": "1", "guests": "set(GUESTS)"}, "hash-seed"),
    "the clock decides": ({"delay": "time.perf_counter()", "guests": "GUESTS"}, "again"),
    "the folder decides": ({"delay": "len(os.getcwd())", "guests": "GUESTS"}, "folder"),
}


def ending(folder: Path, changes: dict[str, str], variant: str) -> int:
    file = folder / "party.py"
    text = MODEL
    for name, value in {**SOUND, **changes}.items():
        text = text.replace(f"{{{name}}}", value)
    file.write_text(text, encoding="utf-8")
    return Verifier(str(file), only=[variant]).run().exit_code


@pytest.mark.long
@pytest.mark.once
def test_a_sound_model_is_verified(tmp_path: Path) -> None:
    assert ending(tmp_path, {}, "hash-seed") == 0


@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak: str, tmp_path: Path) -> None:
    assert ending(tmp_path, *LEAKS[leak]) == 1
