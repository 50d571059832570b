"""What is shown reaches its reader whole, however slow that is; and nobody waits for it but the end."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator

import pytest

from tests.federation.transports import PATIENCE_S, Strand, eventually
from worldline.cli import run_federation as output_module
from worldline.cli.run_federation import Screen, ScreenOutput
from worldline.history import Status
from worldline.model import Interrupted, LossError


@pytest.fixture
def pipe() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """A pipe's two ends: a descriptor to read, a file to write."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        yield reading, file
    with contextlib.suppress(OSError):  # The test has closed it.
        os.close(reading)


def read_to_end(descriptor: int) -> bytes:
    data = b""
    while part := os.read(descriptor, 2**16):
        data += part
    return data


def test_who_prints_doesnt_wait_and_the_end_does(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    output = ScreenOutput(file)
    lines = [f"line {number} ü\n" for number in range(20_000)]  # Several times what a pipe holds.
    for line in lines:
        output.write(line)
    end = Strand(output.finish)
    assert not end.done
    reader = Strand(lambda: read_to_end(reading))
    end.result()
    file.close()
    assert reader.result() == "".join(lines).encode()


def test_a_file_that_doesnt_wait_is_waited_for(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    os.set_blocking(file.fileno(), False)
    output = ScreenOutput(file)
    output.write("x" * 300_000)
    reader = Strand(lambda: read_to_end(reading))
    output.finish()
    file.close()
    assert len(reader.result()) == 300_000


def test_who_could_print_for_ever_waits_when_too_much_is_kept(
    pipe: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_module, "KEPT_MAX", 2**20)
    reading, file = pipe
    output = ScreenOutput(file)
    output.wait_for_room()
    output.write("x" * 2**21)
    waiting = Strand(output.wait_for_room)
    reader = Strand(lambda: read_to_end(reading))
    waiting.result()
    output.finish()
    file.close()
    assert len(reader.result()) == 2**21


def test_waiting_can_be_given_up(pipe: tuple[int, io.TextIOWrapper]) -> None:
    _, file = pipe
    output = ScreenOutput(file)
    output.write("x" * 2**20)
    end = Strand(output.finish)
    output.give_up()
    end.result()


def test_a_reader_that_goes_ends_the_run(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    os.close(reading)
    screen = Screen("play", ["a"], file=file)
    screen.say("a", 0, "hello")
    eventually(lambda: screen.output.failure, PATIENCE_S)
    screen.say("a", 0, "and more, which goes nowhere")
    with pytest.raises(Interrupted, match="the reader closed the pipe"):
        screen.refresh(Status(0))
    with pytest.raises(Interrupted, match="the reader closed the pipe"), screen:
        screen.conclude("digest")


def test_a_full_disk_is_no_secret() -> None:
    with (
        open("/dev/full", "w") as full,  # noqa: PTH123
        pytest.raises(LossError, match="can't be written: No space left on device"),
        Screen("play", ["a"], file=full) as screen,
    ):
        screen.conclude("digest")


def test_output_may_be_closed_or_in_memory() -> None:
    closed = ScreenOutput(None)
    closed.write("nowhere")
    closed.finish()
    assert not closed.isatty()
    kept = io.StringIO()
    memory = ScreenOutput(kept)
    memory.write("here")
    memory.finish()
    assert kept.getvalue() == "here"


def test_what_an_encoding_lacks_is_written_all_the_same(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    file.reconfigure(encoding="ascii")
    output = ScreenOutput(file)
    output.write("Grüße")
    output.finish()
    file.close()
    assert read_to_end(reading) == rb"Gr\xfc\xdfe"


@pytest.mark.long
def test_what_is_held_comes_in_order_and_nobody_waits_for_it(
    pipe: tuple[int, io.TextIOWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_module, "KEPT_MAX", 2**20)
    monkeypatch.setattr(output_module, "_HELD_IN_MEMORY", 1000)
    reading, file = pipe
    output = ScreenOutput(file)
    output.write("before\n")
    output.wait_written()
    assert os.read(reading, 100) == b"before\n"
    output.hold()
    lines = [f"line {number} ü\n" for number in range(200_000)]  # More than may be kept for a slow reader.
    for line in lines:
        output.write(line)
        output.wait_for_room()
    os.set_blocking(reading, False)
    with pytest.raises(BlockingIOError):
        os.read(reading, 1)
    os.set_blocking(reading, True)
    shown = Strand(lambda: (output.show_held(), output.write("after\n"), output.finish(), file.close()))
    assert read_to_end(reading) == "".join([*lines, "after\n"]).encode()
    shown.result()


def test_what_is_still_held_in_the_end_is_shown(pipe: tuple[int, io.TextIOWrapper]) -> None:
    reading, file = pipe
    output = ScreenOutput(file)
    output.hold()
    output.write("held\n")
    output.finish()
    file.close()
    assert read_to_end(reading) == b"held\n"
