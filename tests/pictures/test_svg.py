"""What is written as SVG: texts that fit, numbers in one way, elements that are well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

from worldline.pictures.svg import document, element, fitted, number, shortened, text_at, text_width, way, wrapped


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
