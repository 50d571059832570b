"""XML is read as Gazebo reads it, and hostile XML isn't."""

from __future__ import annotations

import os
import pickle

import pytest

from tests.world.sdf.files import LINK, Files, model, wrapped
from worldline.world.sdf import WorldFileError, read_world
from worldline.world.sdf import reader as xml_document


@pytest.mark.parametrize(
    "start",
    [
        "",
        '<?xml version="1.0" ?>\n',
        '\n  <?xml version="1.0" encoding="UTF-8"?>\n',
        "\ufeff",
        '<?xml version="1.0"?><!-- gz sim --levels world.sdf\n -- and more -->',
        "<!--\n<!-- nested --->",
        "<?php echo 1 ?>",
    ],
)
def test_gazebos_habits_are_accepted(files: Files, start: str) -> None:
    assert list(files.read(wrapped(model("m"), start)).models) == ["m"]


def test_comments_may_stand_anywhere_and_keep_the_lines(files: Files) -> None:
    body = f'{model("m")}<!-- a -- b\n <model name="n"> --\n--><nonsense/>'
    assert files.notes(body) == ["line 5: <nonsense> in <world> isn't supported"]


def test_prefixes_need_no_namespace(files: Files) -> None:
    body = model("m", f"{LINK}<gz:custom gz:x='1'>1</gz:custom>")
    assert files.notes(body) == ["line 3: <gz:custom> in <model> isn't supported"]


def test_declared_namespaces_are_no_matter(files: Files) -> None:
    content = wrapped(model("m")).replace("<sdf ", "<sdf xmlns:xacro='http://ros.org/wiki/xacro' ")
    assert files.read(content).notes == ()


def test_a_comment_in_character_data_is_text(files: Files) -> None:
    body = model("m", f"{LINK}<static><![CDATA[ 1<!-- x --> ]]></static>")
    files.refused(wrapped(body), 3, "is true or false, not '1<!-- x -->'")


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8", "UTF-8"), ("utf-16", "UTF-16"), ("latin-1", "ISO-8859-1"), ("cp1252", "windows-1252")],
)
def test_encodings(files: Files, encoding: str, declared: str) -> None:
    content = wrapped(model("Gerät"), f'<?xml version="1.0" encoding="{declared}"?>').encode(encoding)
    assert list(files.read(content).models) == ["Gerät"]


def test_other_encodings(files: Files) -> None:
    files.refused(wrapped("", '<?xml version="1.0" encoding="EBCDIC-CP-US"?>'), 1, "encoding ebcdic-cp-us")
    files.refused(wrapped("\n\n").encode() + b"\n\xff", 7, "isn't UTF-8")


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ("", 1, "no element found"),
        ("hello", 1, "syntax error"),
        ("<sdf>\n<world>\n</sdf>", 3, "mismatched tag"),
        ("<sdf>\n<world name='w'>", 2, "no element found"),
        ("<sdf>\n<!-- never closed", 2, "isn't closed by -->"),
        ("<sdf>\n\n<![CDATA[", 3, "isn't closed by"),
        ("<sdf>\n&nbsp;</sdf>", 2, "undefined entity"),
        ("<sdf>\x00</sdf>", 1, "not well-formed"),
        ("<sdf>&#0;</sdf>", 1, "invalid character"),
        ("<sdf/><sdf/>", 1, "junk after"),
        ("<sdf a='1' a='2'/>", 1, "duplicate attribute"),
        ("<robot name='r'/>", 1, "this is <robot>"),
        ("<sdf/>", 1, "no <world>"),
        ("<sdf>\n<world name='w'/>\n<world name='v'/></sdf>", 3, "second <world>"),
        ("<sdf>\n<world/></sdf>", 2, "<world> needs a name"),
    ],
)
def test_broken_files(files: Files, content: str, line: int, text: str) -> None:
    files.refused(content, line, text)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    "content",
    [
        f'<?xml version="1.0"?>\n<!DOCTYPE sdf [<!ENTITY l0 "ha">{LAUGHS}]>\n<sdf>&l11;</sdf>',
        '\n<!DOCTYPE sdf SYSTEM "file:///etc/passwd">\n<sdf/>',
        '\n<!DOCTYPE sdf [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<sdf>&x;</sdf>',
        '\n<!DOCTYPE sdf [<!ENTITY % x SYSTEM "http://localhost/"> %x;]>\n<sdf/>',
    ],
)
def test_document_types_are_refused(files: Files, content: str) -> None:
    files.refused(content, 2, "document type isn't allowed")


def test_depth_is_limited(files: Files) -> None:
    deep = "\n".join(["<sdf>"] + ["<a>"] * 200_000)
    files.refused(deep, 101, "nested more than 100 deep")


def test_the_number_of_elements_is_limited(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_document, "ELEMENTS_MAX", 5)
    files.refused("<sdf>\n<a/><a/><a/><a/>\n<a/></sdf>", 3, "more than 5 elements")


def test_size_is_limited(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_document, "FILE_SIZE_MAX", 100)
    files.refused("<sdf>" + " " * 100, None, "larger than")


def test_many_comments_that_are_never_closed_cost_no_time(files: Files) -> None:
    """A million of them, each searched for to the end of the file, would take hours."""
    files.refused("<sdf>" + "<!--" * 1_000_000, 1, "isn't closed")


def test_files_that_cannot_be_read(files: Files) -> None:
    with pytest.raises(WorldFileError, match="there is no such file") as caught:
        read_world(files.folder / "none.sdf")
    assert caught.value.exit_code == 2
    with pytest.raises(WorldFileError, match="it is a directory"):
        read_world(files.folder)
    with pytest.raises(WorldFileError, match="can't be read"):
        read_world(files.folder / "a\0b")
    if os.getuid():
        files.write("").chmod(0)
        with pytest.raises(WorldFileError, match="can't be read"):
            read_world(files.path)


def test_an_error_can_be_sent_to_another_process(files: Files) -> None:
    error = files.refused("<sdf/>", 1, "no <world>")
    sent = pickle.loads(pickle.dumps(error))
    assert (str(sent), sent.facts) == (str(error), {"file": str(files.path), "line": 1})
