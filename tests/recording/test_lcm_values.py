"""LCM messages are read by their definition as the classes of lcm-gen read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.launch.test_lcm_types import generate
from worldline.launch.file.topics import definition, fingerprint, lcm_topic
from worldline.recording.signals import lcm_reader

DEFINITION = """
/* Kinds of all sorts; int32_t not_this; */
package lab;

struct inner_t {
    int16_t pair[2];  // Two of them.
    string name;
}

struct all_t
{
    const int32_t ROWS = 2, COLUMNS=3;
    int8_t a; int16_t b; int32_t c;
    int64_t d;
    byte raw[c];
    float f;
    double g[ROWS][COLUMNS];
    boolean h;
    string texts[c];
    inner_t inner;
    lab.inner_t inners[c];
}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return generate(DEFINITION, tmp_path_factory.mktemp("lcm") / "types", "lab")


def message(lab: Any) -> Any:
    def inner(number: int) -> Any:
        made = lab.inner_t()
        made.pair, made.name = [number, -number], f"nämed {number}"
        return made

    made = lab.all_t()
    made.a, made.b, made.c, made.d = -1, 300, 2, 2**40
    made.raw, made.f, made.g, made.h = b"\x00\xff", 0.5, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], True
    made.texts, made.inner, made.inners = ["", "two"], inner(7), [inner(8), inner(9)]
    return made


EXPECTED = {
    "a": -1,
    "b": 300,
    "c": 2,
    "d": 2**40,
    "raw": [0, 255],
    "f": 0.5,
    "g": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "h": True,
    "texts": ["", "two"],
    "inner": {"pair": [7, -7], "name": "nämed 7"},
    "inners": [{"pair": [8, -8], "name": "nämed 8"}, {"pair": [9, -9], "name": "nämed 9"}],
}


def test_all_kinds_of_fields_are_read(lab: Any) -> None:
    assert lcm_reader("lab.all_t", DEFINITION)(message(lab).encode()) == EXPECTED


def test_the_definition_in_a_recording_is_enough(lab: Any) -> None:
    topic = lcm_topic(lab.all_t)
    assert lcm_reader(topic.schema_name, topic.schema.decode())(message(lab).encode()) == EXPECTED
    assert "struct inner_t" in definition(lab.all_t)


def test_what_isnt_such_a_message_is_refused(lab: Any) -> None:
    topic = lcm_topic(lab.all_t)
    read = lcm_reader(topic.schema_name, topic.schema.decode())
    whole = message(lab).encode()
    for payload in (
        b"",
        whole[:-1],
        whole + b"\0",
        lab.inner_t().encode(),
        whole[:11] + b"\x7f\xff\xff\xff" + whole[15:],
    ):
        with pytest.raises(ValueError, match=r"^it is"):
            read(payload)
    with pytest.raises(ValueError, match="no struct lab"):
        lcm_reader("lab.other_t", DEFINITION)


def test_any_bytes_are_read_or_refused(lab: Any) -> None:
    read = lcm_reader("lab.all_t", DEFINITION)
    whole = message(lab).encode()
    for place in range(len(whole)):
        for value in (0, 127, 255):
            try:
                read(whole[:place] + bytes([value]) + whole[place + 1 :])
            except ValueError:
                continue


def test_a_type_in_itself_is_read_without_a_loop(tmp_path: Path) -> None:
    module = generate("package tree;\nstruct t {\n int32_t n;\n tree.t parts[n];\n}\n", tmp_path / "tree", "tree")
    leaf, root = module.t(), module.t()
    root.n, root.parts = 2, [leaf, leaf]
    topic = lcm_topic(module.t)
    assert topic.schema.startswith(b"// fingerprint 0x" + fingerprint(module.t).hex().encode())
    empty = {"n": 0, "parts": []}
    assert lcm_reader("tree.t", topic.schema.decode())(root.encode()) == {"n": 2, "parts": [empty, empty]}
