"""What all pictures are made of: elements and texts, lines and room for labels, legends and ticks."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from worldline.pictures.sheet import legend, ticks_between
from worldline.pictures.svg import (
    PALETTE,
    LabelSpace,
    at_origin,
    between,
    distance,
    distance_from_line,
    document,
    element,
    fading,
    fitted,
    looks_of,
    number,
    on_curve,
    shortened,
    text_at,
    text_discs,
    text_width,
    toward,
    way,
    without_near,
    wrapped,
)


def test_texts_are_shortened_to_one_line_that_fits() -> None:
    assert shortened("a\n b\tc", 10) == "a b c"
    assert shortened("abcdefgh", 5) == "abcd…"
    assert fitted("word " * 20, 100, 10).endswith("…")
    for text in ("word " * 20, "\u4f60\u597d" * 20):
        assert 60 < text_width(fitted(text, 100, 10), 10) <= 100


def test_texts_are_wrapped_between_words() -> None:
    lines = wrapped("word " * 20 + "w" * 99, 100, 10)
    assert " ".join(lines[:-1]).split() == ["word"] * 20
    assert lines[-1] == fitted("w" * 99, 100, 10)
    assert all(text_width(line, 10) <= 100 for line in lines)
    assert len(lines) < 10


def test_numbers_are_written_in_one_way() -> None:
    assert [number(value) for value in (0, -0.0, -0.001, 1.5, 2.0, 1.239, 100)] == [
        "0", "0", "0", "1.5", "2", "1.24", "100",
    ]  # fmt: skip


def test_whatever_is_in_a_text_the_element_is_well_formed() -> None:
    read = ElementTree.fromstring(text_at(1, 2.5, "<b>&\"'\x00]]>", size=10, stroke_width=3, class_='a"b', fill=None))
    assert read.text == "<b>&\"'\ufffd]]>"
    assert read.attrib == {"x": "1", "y": "2.5", "font-size": "10", "stroke-width": "3", "class": 'a"b'}


def test_a_document_has_its_size_its_kind_and_a_white_ground() -> None:
    content = ["", element("path", d=way(((0, 0), (1.5, 2))))]
    read = ElementTree.fromstring(document(30, 20.5, content, kind="plot", title="A & B"))
    assert (read.get("viewBox"), read.get("class")) == ("0 0 30 20.5", "worldline-plot")
    title, ground, line = read
    assert title.text == "A & B"
    assert (ground.get("width"), ground.get("height"), ground.get("fill")) == ("30", "20.5", "#ffffff")
    assert line.get("d") == "M0 0L1.5 2"


def test_points_of_a_line_and_toward_another_point() -> None:
    assert toward((0.0, 0.0), (10.0, 0.0), 3.0) == (3.0, 0.0)
    assert toward((0.0, 0.0), (10.0, 0.0), 30.0) == (5.0, 0.0)
    assert distance((1.0, 1.0), (4.0, 5.0)) == 5.0
    assert between((0.0, 0.0), (4.0, 8.0), 0.25) == (1.0, 2.0)
    assert at_origin([(3.0, -1.0), (5.0, 4.0)]) == [(0.0, 0.0), (2.0, 5.0)]
    assert without_near([(0, 0), (0.1, 0), (1, 0), (1.1, 0)]) == [(0, 0), (1, 0), (1.1, 0)]
    assert toward((2.0, 2.0), (2.0, 2.0), 3.0) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("point", "expected"), [((5.0, 3.0), 3.0), ((-3.0, 4.0), 5.0), ((13.0, -4.0), 5.0), ((7.0, 0.0), 0.0)]
)
def test_a_line_ends_where_its_ends_are(point: tuple[float, float], expected: float) -> None:
    assert distance_from_line(point, (0.0, 0.0), (10.0, 0.0)) == expected
    assert distance_from_line((3.0, 4.0), (0.0, 0.0), (0.0, 0.0)) == 5.0


def test_a_curve_goes_from_end_to_end_and_half_of_the_way_to_its_bend() -> None:
    curve = ((0.0, 0.0), (5.0, 10.0), (10.0, 0.0))
    assert [on_curve(curve, share) for share in (0.0, 0.5, 1.0)] == [(0.0, 0.0), (5.0, 5.0), (10.0, 0.0)]


def test_kinds_differ_first_in_color_then_in_dashes() -> None:
    looks = looks_of(f"kind {number}" for number in range(4 * len(PALETTE)))
    assert len(set(looks.values())) == len(looks) == 4 * len(PALETTE)
    assert [look.color for look in looks.values()][: len(PALETTE)] == list(PALETTE)
    assert [look.dashes for look in looks.values()][: len(PALETTE) + 1] == [*[None] * len(PALETTE), "9 3"]


def test_a_fading_line_has_all_its_length_and_less_and_less_ink() -> None:
    parts = [ElementTree.fromstring(part) for part in fading((0.0, 0.0), (10.0, 0.0))]
    shades = [float(part.get("stroke-opacity", "")) for part in parts]
    assert shades == sorted(shades, reverse=True)
    assert shades[-1] < 0.2
    assert [part.get("d") for part in parts] == ["M0 0L2 0", "M2 0L4 0", "M4 0L6 0", "M6 0L8 0", "M8 0L10 0"]


def test_room_that_is_taken_is_not_free() -> None:
    room = LabelSpace()
    room.take(text_discs((100.0, 100.0), 60, 10))
    assert not room.is_free(text_discs((125.0, 104.0), 20, 10))
    assert room.is_free(text_discs((100.0, 116.0), 60, 10))
    assert room.is_free(text_discs((100.0, 140.0), 60, 10, (0.0, 1.0)))
    assert not room.is_free(text_discs((100.0, 120.0), 60, 10, (0.0, 1.0)))


def test_a_text_is_written_where_it_covers_neither_texts_nor_lines_or_else_only_lines() -> None:
    texts, lines = LabelSpace(), LabelSpace()
    lines.take([(10.0, -3.0, 2.0)])
    spots = [(0.0, 0.0), (50.0, 0.0)]

    def written(spots: list[tuple[float, float]]) -> str | None:
        text = texts.written("abc", spots, 10, avoiding=(lines, None), within=(0.0, 80.0))
        return ElementTree.fromstring(text).get("x") if text else None

    assert [written(spots) for _ in range(3)] == ["50", "0", None]
    assert written([(70.0, 0.0), (-1.0, 0.0)]) is None


def square(x: float, y: float) -> str:
    return element("rect", x=x, y=y, width=6, height=6)


@pytest.mark.parametrize(("width", "rows"), [(1_000.0, 1), (240.0, 2), (50.0, 3)])
def test_entries_are_in_as_many_rows_as_it_takes(width: float, rows: int) -> None:
    names = ["one", "another", "the last of three"]
    (drawn,), end = legend([(name, square) for name in names], 50.0, width)
    entries = list(ElementTree.fromstring(drawn))
    assert [text.text for _, text in entries] == names
    places = [(float(text.get("x", "")), float(text.get("y", ""))) for _, text in entries]
    assert len({y for _, y in places}) == rows
    assert end == 50.0 + 18.0 * rows
    for (sample, _), (x, y) in zip(entries, places, strict=True):
        assert (sample.get("x"), sample.get("y")) == (f"{x - 30:g}", f"{y - 4:g}")
    assert places[0] == (50.0, 50.0)
    assert len(set(places)) == 3
    assert legend([], 50.0, width) == ([], 50.0)


def test_ticks_are_round_and_no_more_than_wanted() -> None:
    ticks = ticks_between(-0.3, 1.2, 8)
    assert ticks.labels == ["−0.2", "0", "0.2", "0.4", "0.6", "0.8", "1", "1.2"]
    assert ticks.values == pytest.approx([-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1, 1.2])
    assert ticks.titled("x") == "x"
    assert ticks_between(0, 100, 5).labels == ["0", "20", "40", "60", "80", "100"]
    assert ticks_between(0, 100, 1.5).labels == ["0", "100"]


@pytest.mark.parametrize("size", [1e-90, 1e-9, 1e-3, 1.0, 7.3e4, 1e9, 1e90])
@pytest.mark.parametrize("begin", [-0.7, 0.0, 0.4])
def test_labels_mean_their_values_at_every_size(size: float, begin: float) -> None:
    ticks = ticks_between(begin * size, (begin + 1) * size, 7)
    assert 2 <= len(ticks.values) <= 8
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        assert begin * size - 1e-9 * size <= value <= (begin + 1.000001) * size
        assert len(label) <= 8
        meant = ticks.base + float(label.replace("−", "-")) * float(f"1e{ticks.exponent}")
        assert meant == pytest.approx(value, rel=1e-12)


def test_large_numbers_that_are_close_are_counted_from_the_first() -> None:
    ticks = ticks_between(1e9, 1e9 + 10, 5)
    assert ticks.labels == ["0", "2", "4", "6", "8", "10"]
    assert ticks.titled("t") == "t − 1000000000"
    assert ticks_between(-1e9, -1e9 + 10, 5).titled("t") == "t + 1000000000"
    assert ticks_between(0, 3e-9, 3).titled("t") == "t (× 1e-9)"


def test_where_nothing_is_long_there_is_one_tick() -> None:
    assert ticks_between(2.5, 2.5, 10).labels == ["2.5"]
