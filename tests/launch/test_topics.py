"""What a file says about payloads: which encoding, which schema, and every mistake in that at its place."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from worldline.launch.file.setup import read_setup
from worldline.launch.file.topics import Topic, schema_of
from worldline.model import ConfigurationError, UsageError

PARTICIPANTS = '[[participants]]\nname = "a"\npublishes = ["pose"]\n[[participants]]\nname = "b"\npublishes = []\n'
POSE = b'{"type": "object", "title": "Pose", "properties": {"x": {"type": "number"}}}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (
        ("pose.schema.json", POSE),
        ("nameless.json", b'{"type": "object"}'),
        ("list.json", b"[]"),
        ("bad.json", b"{"),
        ("huge.json", b" " * (2**20 + 1)),
        ("scan.desc", b"\x0a\x00"),
        ("scan.proto", b"syntax"),
        ("Pose.msg", b"float64 x"),
        ("pose.idl", b"struct"),
        ("pose.lcm", b"struct"),
        ("pose.weird", b"?"),
        ("kinds.py", b"raise SystemExit('nobody may import this')\nPose = None"),
    ):
        (tmp_path / name).write_bytes(content)
    return tmp_path


def read(folder: Path, text: str) -> Topic:
    (folder / "cell.toml").write_text(f"{PARTICIPANTS}[topics.pose]\n{text}")
    return read_setup(folder / "cell.toml").topics["pose"]


@pytest.mark.parametrize(
    ("text", "encoding", "name", "kind"),
    [
        ('encoding = "json"', "json", "", ""),
        ('encoding = "lcm"', "lcm", "", ""),
        ('schema = "pose.lcm"\nencoding = "lcm"\nschema_name = "cell.pose_t"', "lcm", "cell.pose_t", "lcm"),
        ('schema = "pose.schema.json"', "json", "Pose", "jsonschema"),
        ('schema = "nameless.json"', "json", "nameless", "jsonschema"),
        ('schema = "pose.schema.json"\nschema_name = "P"\nencoding = "msgpack"', "msgpack", "P", "jsonschema"),
        ('schema = "scan.desc"\nencoding = "protobuf"\nschema_name = "f.Scan"', "protobuf", "f.Scan", "protobuf"),
        ('schema = "Pose.msg"\nencoding = "ros1"\nschema_name = "g/Pose"', "ros1", "g/Pose", "ros1msg"),
        ('schema = "Pose.msg"\nencoding = "cdr"\nschema_name = "g/msg/Pose"', "cdr", "g/msg/Pose", "ros2msg"),
        (
            'schema = "pose.idl"\nencoding = "cdr"\nschema_name = "g"\nschema_encoding = "omgidl"',
            *("cdr", "g", "omgidl"),
        ),
        (
            'schema = "pose.weird"\nencoding = "own"\nschema_name = "g"\nschema_encoding = "own-schema"',
            *("own", "g", "own-schema"),
        ),
    ],
)
def test_encodings_and_schemas_are_those_that_mcap_knows(
    folder: Path, text: str, encoding: str, name: str, kind: str
) -> None:
    topic = read(folder, text).loaded()
    assert (topic.encoding, topic.schema_name, topic.schema_encoding) == (encoding, name, kind)
    assert bool(topic.schema) == bool(kind)


def test_a_type_that_its_module_lacks_is_found_before_it_is_imported(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'topics.pose.type: kinds has no Pase \(did you mean "Pose"\?\)'):
        read(folder, 'type = "kinds:Pase"')


def test_a_type_isnt_imported_before_it_is_needed(folder: Path) -> None:
    topic = read(folder, 'type = "kinds:Pose"')
    assert (topic.encoding, topic.type, topic.schema) == ("json", "kinds:Pose", b"")


def test_changes_on_the_command_line_hold_here_too(folder: Path) -> None:
    (folder / "cell.toml").write_text(PARTICIPANTS)
    setup = read_setup(folder / "cell.toml", changes=["topics.pose.encoding=json"])
    assert setup.topics == {"pose": Topic(encoding="json")}


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "topics.pose: it says nothing"),
        ('encodign = "json"', 'topics.pose.encodign: there is no such key (did you mean "encoding"?)'),
        ("encoding = 5", "topics.pose.encoding: 5 isn't text"),
        ('encoding = " "', "topics.pose.encoding: ' ' isn't allowed here"),
        ('encoding = "a\\u001b"', "topics.pose.encoding: 'a\\x1b' isn't allowed here"),
        ('schema = "none.json"', 'topics.pose.schema: "FOLDER/none.json" can\'t be read: No such file'),
        ('schema = "."', 'topics.pose.schema: "FOLDER" can\'t be read: Is a directory'),
        ('schema = "bad.json"', 'topics.pose.schema: "bad.json" isn\'t JSON'),
        ('schema = "list.json"', 'topics.pose.schema: "list.json" doesn\'t describe an object'),
        ('schema = "huge.json"', 'topics.pose.schema: "FOLDER/huge.json" is larger than 1 MiB'),
        ('schema = "scan.proto"\nencoding = "protobuf"', 'topics.pose.schema: "scan.proto" is source text (compile'),
        ('schema = "scan.desc"\nencoding = "protobuf"', "topics.pose.schema: it may describe many messages"),
        ('schema = "scan.desc"\nschema_name = "x"', "topics.pose: it doesn't say how payloads are encoded"),
        (
            'schema = "scan.desc"\nencoding = "json"\nschema_name = "x"',
            "topics.pose.schema: the kind of schema can't be told",
        ),
        ('schema_name = "x"\nencoding = "json"', "topics.pose.schema_name: there is no schema"),
        ('type = "kinds"', "topics.pose.type: 'kinds' isn't a Python class"),
        ('type = "knids:Pose"', 'topics.pose.type: there is no module "knids"'),
        ('type = "kinds:Pose"\nencoding = "protobuf"', "topics.pose.encoding: a type has a JSON schema"),
        ('type = "kinds:Pose"\nschema = "nameless.json"', "topics.pose.schema: there is type too"),
        (
            'encoding = "json"\n[topics.psoe]\nencoding = "json"',
            'topics.psoe: no participant in this file uses "psoe" (did you',
        ),
        ('encoding = "json"\n[topics." x"]\nencoding = "json"', "topics.\" x\": ' x' can't name a topic"),
    ],
)
def test_a_mistake_is_reported_once_at_its_place(folder: Path, text: str, mistake: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(folder, text)
    (found,) = refused.value.facts["mistakes"]
    found = re.sub(r"^.*cell.toml: line [0-9]+: ", "", found).replace(str(folder), "FOLDER")
    assert found.startswith(mistake)


@dataclass
class Point:
    """A point."""

    x: float
    y: float = 0.0


class Pose(msgspec.Struct):
    at: Point
    names: list[str] = []
    later: Pose | None = None


class Row(msgspec.Struct, array_like=True):
    x: int


def test_schemas_of_classes_have_an_object_at_the_top_and_no_needless_references() -> None:
    schema = schema_of(Pose, "it:Pose")
    assert schema["type"] == "object"
    assert schema["properties"]["at"]["properties"]["x"] == {"type": "number"}
    assert schema["properties"]["later"]["anyOf"][0] == {"$ref": "#/$defs/Pose"}  # It holds itself.
    assert schema["$defs"]["Pose"]["type"] == "object"
    assert set(schema["$defs"]) == {"Pose", "Point"}
    assert "$" not in json.dumps(schema_of(Point, "it:Point"))


@pytest.mark.parametrize("kind", [int, Row, object, list[int], print])
def test_what_isnt_an_object_in_json_is_refused(kind: object) -> None:
    with pytest.raises(UsageError, match="it:Kind"):
        schema_of(kind, "it:Kind")


def test_a_type_is_loaded_from_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "kinds_of_mine.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Pose:\n    x: float\n"
    )
    topic = read(tmp_path, 'type = "kinds_of_mine:Pose"').loaded()
    assert (topic.schema_name, topic.schema_encoding) == ("Pose", "jsonschema")
    assert json.loads(topic.schema)["properties"] == {"x": {"type": "number"}}
    with pytest.raises(UsageError, match="kinds_of_mine has no Pase"):
        read(tmp_path, 'type = "kinds_of_mine:Pase"').loaded()
    sys.modules.pop("kinds_of_mine")
