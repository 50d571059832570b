"""Payloads field by field."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.history.fields import (
    FieldDifference,
    field_differences,
    payload_text,
    steps_between,
    value_differences,
)
from worldline.model.payload import to_json, to_msgpack

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def bits(value: float) -> int:
    found: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return found if found >= 0 else -(found & (2**63 - 1))


@given(FINITE, FINITE)
def test_the_distance_of_floats_is_that_of_their_bits(a: float, b: float) -> None:
    assert steps_between(a, b) == abs(bits(a) - bits(b))


@pytest.mark.parametrize("encode", [to_json, to_msgpack])
def test_fields_are_named_by_their_paths(encode: object) -> None:
    a = encode({"part": 2, "at": [1.0, {"mm": 0.1 + 0.2}], "old": True})  # type: ignore[operator]
    b = encode({"part": 2, "at": [1.0, {"mm": 0.3}, 5], "new": "x"})  # type: ignore[operator]
    found = {difference.path: str(difference) for difference in field_differences(a, b)}
    assert found == {
        "at[1].mm": "at[1].mm: 0.30000000000000004 → 0.3 (1 unit in the last place)",
        "at[2]": "at[2]: (missing) → 5",
        "old": "old: true → (missing)",
        "new": 'new: (missing) → "x"',
    }


def frames(*named: tuple[str, float]) -> bytes:
    return to_json([{"frame": "world", "name": name, "x": x} for name, x in named])


def test_objects_of_lists_are_found_by_what_tells_them_apart() -> None:
    (moved,) = field_differences(frames(("arm", 1.0), ("hand", 2.0)), frames(("arm", 1.0), ("hand", 2.5)))
    assert str(moved).startswith("[hand].x: 2.0 → 2.5")
    (gone,) = field_differences(frames(("arm", 1.0), ("hand", 2.0)), frames(("hand", 2.0)))
    assert str(gone) == '[arm]: {"frame":"world","name":"arm","x":1.0} → (missing)'


@pytest.mark.parametrize(
    ("a", "b", "first"),
    [
        (frames(("arm", 1.0)), frames(("arm", 2.0)), "[0].x"),  # "world" would name it as well.
        (frames(("arm", 1.0), ("hand", 1.0)), frames(("hand", 1.0), ("arm", 1.0)), "[0].name"),
        (frames(("arm", 1.0), ("hand", 1.0)), frames(("leg", 1.0), ("foot", 1.0)), "[0].name"),
        (frames(("arm", 1.0), ("arm", 2.0)), frames(("arm", 1.0), ("arm", 3.0)), "[1].x"),
        (frames(("arm", 1.0), ("hand", 1.0)), to_json([3, 4]), "[0]"),
    ],
)
def test_they_are_found_by_their_places_if_names_do_not_help(a: bytes, b: bytes, first: str) -> None:
    assert field_differences(a, b)[0].path == first


def test_the_same_value_in_other_words_is_shown_as_texts() -> None:
    (difference,) = field_differences(b'{"a":1}', b'{"a": 1}')
    assert (difference.path, difference.a, difference.b) == ("", '{"a":1}', '{"a": 1}')


def test_a_number_and_a_text_of_it_differ() -> None:
    assert field_differences(b'{"a":1}', b'{"a":true}') == [FieldDifference("a", 1, True)]
    assert str(field_differences(b'{"a":1}', b'{"a":1.0}')[0]) == "a: 1 → 1.0"


def test_bytes_are_shown_from_where_they_differ() -> None:
    (difference,) = field_differences(bytes(100) + b"\xff\xfe", bytes(100) + b"\xff\x00\x01")
    assert str(difference) == (
        "payload: 00 00 00 00 00 00 00 ff fe at byte 93 of 102 → 00 00 00 00 00 00 00 ff 00 01 at byte 93 of 103"
    )


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "(empty)"),
        (b'{"a":1}', '{"a":1}'),
        (to_msgpack([1, "x"]), '[1,"x"]'),
        (b"plain words", "plain words"),
        (b"\xff\x00", "ff 00 (2 bytes)"),
        (b'"\x7f\xc2\x85"', r'"\x7f\x85"'),
        (b'"' + b"a" * 100 + b'"', '"' + "a" * 58 + "…"),
    ],
)
def test_a_payload_in_a_few_words(payload: bytes, text: str) -> None:
    assert payload_text(payload) == text


def test_a_text_that_is_missing_in_a_list_shifts_no_others() -> None:
    found = value_differences(["a", "b", "d", "e"], ["x", "a", "b", "c", "d", "f"])
    assert [str(each) for each in found] == ['[0]: (missing) → "x"', '[3]: (missing) → "c"', '[5]: "e" → "f"']
    assert [each.path for each in value_differences(["a", "b"], ["b"])] == ["[0]"]
