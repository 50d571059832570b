"""What a recording says of LCM messages: encoding, the type's name, and a definition that lcm-gen reads back."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import lcm
import pytest
from mcap.reader import make_reader

from tests.metasim.public.stage import loop
from worldline import run
from worldline.launch.file.topics import definition, fingerprint, lcm_topic, type_name
from worldline.model.errors import UsageError
from worldline.recording import Recorder, Schema

_DEFINITION = """\
package metasim_types;

struct reading_t
{
    int64_t utime;
    int32_t count;
    double values[count];
    string names[2][3];
    metasim_types.point_t origin;
}

struct point_t
{
    double xyz[3];
}
"""


def generate(text: str, folder: Path, package: str) -> Any:
    """Compile a definition, and return its package."""
    folder.mkdir()
    (folder / "types.lcm").write_text(text)
    command = [Path(lcm.LCM_BIN_DIR) / "lcm-gen", "-p", "--ppath", folder, folder / "types.lcm"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]
        return importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture
def types(tmp_path: Path) -> Any:
    return generate(_DEFINITION, tmp_path / "first", "metasim_types")


def test_a_type_has_its_name_and_fingerprint(types: Any) -> None:
    assert type_name(types.reading_t) == "metasim_types.reading_t"
    message = types.point_t()
    message.xyz = [1.0, 2.0, 3.0]
    assert message.encode().startswith(fingerprint(types.point_t))
    assert not message.encode().startswith(fingerprint(types.reading_t))


def test_a_type_without_a_package_has_its_bare_name(tmp_path: Path) -> None:
    module = generate("struct lonely_t\n{\n    int8_t x;\n}\n", tmp_path / "lonely", "lonely_t")
    assert type_name(module.lonely_t) == "lonely_t"
    assert definition(module.lonely_t) == "struct lonely_t\n{\n    int8_t x;\n}\n"


def test_the_definition_makes_the_same_type_again(types: Any, tmp_path: Path) -> None:
    text = definition(types.reading_t)
    assert text == f"{_DEFINITION}"
    before = fingerprint(types.reading_t)
    again = generate(text, tmp_path / "again", "metasim_types")
    assert again.reading_t is not types.reading_t
    assert fingerprint(again.reading_t) == before
    assert definition(again.reading_t) == definition(types.reading_t)


@pytest.mark.parametrize("kind", [int, object(), "drake.lcmt_robot_state"])
def test_others_are_refused(kind: object) -> None:
    with pytest.raises(UsageError, match="isn't an LCM type"):
        type_name(kind)


def test_a_recording_says_encoding_type_and_definition(types: Any, tmp_path: Path) -> None:
    topics = {"STATE": lcm_topic(types.point_t), "COMMAND": lcm_topic()}
    path = tmp_path / "run.mcap"
    recorder = Recorder(
        path,
        loop().plan(),
        encodings={name: topic.encoding for name, topic in topics.items()},
        schemas={
            name: Schema(topic.schema_name, topic.schema_encoding, topic.schema)
            for name, topic in topics.items()
            if topic.schema_name
        },
    )
    recorder.close(dropped=run(loop(), observer=recorder).dropped)
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    channels = {channel.topic: channel for channel in summary.channels.values()}
    assert channels["STATE"].message_encoding == channels["COMMAND"].message_encoding == "lcm"
    assert channels["COMMAND"].schema_id == 0
    schema = summary.schemas[channels["STATE"].schema_id]
    assert (schema.name, schema.encoding) == ("metasim_types.point_t", "lcm")
    assert definition(types.point_t) in schema.data.decode()
    assert fingerprint(types.point_t).hex() in schema.data.decode()
