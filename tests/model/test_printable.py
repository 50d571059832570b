"""Texts of others do nothing but stand there, and ordinary ones stay as they are."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.lock import Abort
from worldline.lock.ledger import broken_off
from worldline.model.errors import shortened
from worldline.model.text import printable, printable_colors, printable_json, printable_lines

ORDINARY = [
    "",
    "plain",
    "Grüße, 世界",
    "an ideographic　blank",
    "👨‍👩‍👧 and می‌خواهم",
    "no-break\u00a0blank",
    "back\\slash",
]
CONTROLS = [chr(number) for number in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0x200B, 0xD800)]
BIDI = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_stay(text: str) -> None:
    assert {shown(text) for shown in (printable, printable_lines, printable_colors, printable_json)} == {text}


@pytest.mark.parametrize("character", [*CONTROLS, *BIDI], ids=ascii)
def test_whatever_a_terminal_might_obey_is_escaped(character: str) -> None:
    escaped = character.encode("unicode_escape").decode()
    assert printable(f"a{character}b") == f"a{escaped}b"
    assert printable_lines(character) == (character if character in "\n\t" else escaped)
    assert printable_colors(character) == (character if character == "\t" else escaped)


@given(st.text())
def test_no_control_is_left_and_twice_is_once(text: str) -> None:
    shown = printable(text)
    assert not [each for each in shown if unicodedata.category(each) in ("Cc", "Zl", "Zp", "Cs")]
    assert printable(shown) == shown
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[38:2::1:2:3mred", "\x1b[38:2::1:2:3mred"),
        ("\x1b[2J\x1b[31m", "\\x1b[2J\x1b[31m"),
        ("\x1b]8;;http://evil\x1b\\", "\\x1b]8;;http://evil\\x1b\\"),
        ("\x1b[" + "1;" * 60 + "m", r"\x1b[" + "1;" * 60 + "m"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_of_a_programs_escapes_colors_stay_and_nothing_else(text: str, shown: str) -> None:
    assert printable_colors(text) == shown


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3), max_leaves=5))
def test_json_says_the_same(value: object) -> None:
    written = json.dumps(value, ensure_ascii=False)
    shown = printable_json(written)
    assert json.loads(shown) == value
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", shown)


def test_what_a_peer_says_is_one_line_of_bounded_length() -> None:
    assert shortened("two\nlines\x1b[2J") == r"two\nlines\x1b[2J"
    error = broken_off(Abort("me", "bad\nworldline: forged\x1b[2J" + "x" * 1000, "its\rname", 5))
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert "\r" not in str(error)
    assert len(str(error)) < 600
