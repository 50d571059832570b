"""What is in the payloads of a topic, as a federation's file says it, for tools that show recordings.

To Worldline payloads are bytes. Tools such as Foxglove can show them if a recording says how they are encoded, and by
which schema. MCAP has a list of encodings that tools know, and of the encodings of schemas that go with each; others
are passed on as they are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from worldline.launch.file.startable import check_entry
from worldline.launch.file.toml_document import TomlPlace, TomlTable, quoted
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.message import check_name
from worldline.model.payload import to_json

LCM = "lcm"
"""What a recording calls the encoding of LCM messages, and of their definitions."""

SCHEMA_SIZE_MAX = 2**20
_TEXT_MAX = 255
_JSON = ".json"
# By how the payloads are encoded, and by the ending of the file: what such a schema is called.
_KNOWN = {
    "json": {_JSON: "jsonschema"},
    "msgpack": {_JSON: "jsonschema"},
    "cbor": {_JSON: "jsonschema"},
    "protobuf": dict.fromkeys((".desc", ".fds", ".binpb", ".pb", ".bin"), "protobuf"),
    "flatbuffer": {".bfbs": "flatbuffer"},
    "ros1": {".msg": "ros1msg"},
    "cdr": {".msg": "ros2msg", ".idl": "ros2idl"},
    "lcm": {".lcm": "lcm"},
}
_COMPILED = {
    ".proto": "compile it: protoc --include_imports --descriptor_set_out=NAME.desc NAME.proto",
    ".fbs": "compile it: flatc --schema --binary NAME.fbs makes NAME.bfbs",
}


@dataclass(frozen=True, kw_only=True)
class Topic:
    """How a topic's payloads are to be read. With a `type`, the schema is made from that class."""

    encoding: str
    schema_name: str = ""
    schema_encoding: str = ""
    schema: bytes = b""
    type: str | None = None
    directory: Path = Path()

    def loaded(self) -> Topic:
        """Return it with the schema of its type, which is imported for that."""
        if self.type is None:
            return self
        from worldline.launch.file.startable import load_object  # Here, since with it comes all that a program needs.

        kind = load_object(self.type, self.directory)
        if self.encoding == LCM:
            return lcm_topic(kind)
        name = self.schema_name or str(getattr(kind, "__name__", self.type.partition(":")[2]))
        schema = to_json(schema_of(kind, self.type))
        return Topic(encoding=self.encoding, schema_name=name, schema_encoding="jsonschema", schema=schema)


def schema_of(kind: Any, name: str) -> dict[str, Any]:
    """Return the JSON schema of a dataclass or struct, with an object at the top.

    Types inside are written where they are used, because many tools don't follow references; only a type that holds
    itself needs one.
    """
    try:
        (top,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, ValueError, NameError) as error:
        raise UsageError(
            f"can't make a JSON schema of {name}", advice="name a dataclass or a msgspec.Struct of plain fields"
        ) from error
    held: dict[str, Any] = {}
    made = _inlined(top, parts, (), held)
    if made.get("type") != "object":
        raise UsageError(
            f"{name} isn't an object in JSON", advice="name a dataclass or a msgspec.Struct, not one that is an array"
        )
    return {**made, "$defs": held} if held else made


def _inlined(schema: Any, parts: dict[str, Any], inside: tuple[str, ...], held: dict[str, Any]) -> Any:
    """Return a schema without references but those to a type that it is inside of, which are collected in `held`."""
    if isinstance(schema, list):
        return [_inlined(each, parts, inside, held) for each in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return {key: _inlined(value, parts, inside, held) for key, value in schema.items()}
    name = reference.removeprefix("#/$defs/")
    if name in inside:
        if name not in held:
            held[name] = None  # While it is made, so that it is made once.
            held[name] = _inlined(parts[name], parts, (*parts,), held)
        return {**schema}
    made = _inlined(parts[name], parts, (*inside, name), held)
    return {**made, **{key: value for key, value in schema.items() if key != "$ref"}}


def lcm_topic(kind: Any = None) -> Topic:
    """Return how a recording describes a topic with messages of an LCM type; or of one that isn't known."""
    if kind is None:
        return Topic(encoding=LCM)
    text = f"// fingerprint 0x{fingerprint(kind).hex()}\n{definition(kind)}"
    return Topic(encoding=LCM, schema_name=type_name(kind), schema_encoding=LCM, schema=text.encode())


# --- The table ---


def _text(place: TomlPlace) -> str:
    text = place.text()
    if not 0 < len(text) <= _TEXT_MAX or not text.isprintable() or text != text.strip():
        raise ConfigurationError(
            f"{shown(text)} isn't allowed here", advice=f"use 1 to {_TEXT_MAX} printable characters"
        )
    return text


def _type(place: TomlPlace) -> str:
    name = place.text()
    module, colon, kind = name.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *kind.split("."))):
        raise ConfigurationError(f"{shown(name)} isn't a Python class", advice='write "module:Class"')
    check_entry(name, _home(place))
    return name


def _home(place: TomlPlace) -> Path:
    return place.document.file.absolute().parent.resolve()


def _schema(place: TomlPlace) -> tuple[Path, bytes]:
    path = _home(place) / _text(place)
    if path.suffix in _COMPILED:
        raise ConfigurationError(f"{quoted(path.name)} is source text", advice=_COMPILED[path.suffix])
    try:
        with path.open("rb") as file:
            data = file.read(SCHEMA_SIZE_MAX + 1)
    except OSError as error:
        raise ConfigurationError(f"{quoted(str(path))} can't be read: {error.strerror or error}") from None
    if len(data) > SCHEMA_SIZE_MAX:
        raise ConfigurationError(f"{quoted(str(path))} is larger than {SCHEMA_SIZE_MAX // 2**20} MiB")
    if path.suffix == _JSON:
        _check_json(path, data)
    return path, data


def _check_json(path: Path, data: bytes) -> None:
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{quoted(path.name)} isn't JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ConfigurationError(
            f"{quoted(path.name)} doesn't describe an object", advice='tools need "type": "object" at its top'
        )


TOPIC = TomlTable(
    "[topics.NAME]",
    {"encoding": _text, "schema": _schema, "schema_name": _text, "schema_encoding": _text, "type": _type},
    either=(("schema", "type"), ("schema_encoding", "type")),
)


def read_topics(place: TomlPlace) -> dict[str, Topic]:
    """Read a table from topics to what is in their payloads."""

    def read(entry: TomlPlace) -> tuple[str, Topic]:
        return check_name(entry.steps[-1], "a topic"), _topic(entry)

    found = (entry.read(read) for _, entry in place.entries('[topics.pose] with encoding = "json"'))
    return dict(each for each in found if each is not None)


def _topic(place: TomlPlace) -> Topic:
    told = place.table(TOPIC)
    if "type" in place.value:
        encoding = told.get("encoding", "json")
        if encoding != LCM and "jsonschema" not in _KNOWN.get(encoding, {}).values():
            place.at("encoding").note(f"a type has a JSON schema, which doesn't go with {quoted(encoding)} (use json)")
        named = told.get("schema_name", "")
        return Topic(encoding=encoding, schema_name=named, type=told.get("type"), directory=_home(place))
    if "schema" not in place.value:
        for key in ("schema_name", "schema_encoding"):
            if key in place.value:
                place.at(key).note("there is no schema (name its file: schema = ...)")
        if not place.value:
            place.note('it says nothing (write encoding = "json", for instance)')
        return Topic(encoding=told.get("encoding", ""))
    return _with_schema(place, told)


def _with_schema(place: TomlPlace, told: dict[str, Any]) -> Topic:
    if "schema" not in told:  # It couldn't be read, which is one mistake.
        return Topic(encoding=told.get("encoding", ""))
    path, data = told["schema"]
    is_json = path.suffix == _JSON
    encoding = told.get("encoding", "json" if is_json else "")
    if "encoding" not in place.value and not is_json:
        place.note(f"it doesn't say how payloads are encoded (write encoding = ..., such as {', '.join(_KNOWN)})")
    known = _KNOWN.get(encoding, {})
    kind = told.get("schema_encoding", known.get(path.suffix, ""))
    if not kind and "schema_encoding" not in place.value and encoding:
        endings = f"; for {encoding} the ending is {' or '.join(known)}" if known else ""
        place.at("schema").note(f"the kind of schema can't be told (write schema_encoding = ...{endings})")
    name = told.get("schema_name", "")
    if not name and "schema_name" not in place.value:
        if kind and kind != "jsonschema":
            place.at("schema").note('it may describe many messages (write schema_name = "package.Message")')
        name = str(json.loads(data).get("title") or path.name.split(".")[0]) if is_json else path.stem
    return Topic(encoding=encoding, schema_name=name, schema_encoding=kind, schema=data)


# LCM types: their names, fingerprints and definitions, from the classes that lcm-gen makes.
#
# A recording says of a topic with such messages that its encoding is `lcm`, names the type, and has its definition as
# the schema, as it would stand in a .lcm file. To MCAP both are private encodings: tools that don't know them show
# bytes.


def is_lcm_type(kind: Any) -> bool:
    """Whether something is a class that lcm-gen has made."""
    return isinstance(kind, type) and all(hasattr(kind, name) for name in ("_get_packed_fingerprint", "__typenames__"))


def type_name(kind: Any) -> str:
    """Return the name of an LCM type with its package, ``drake.lcmt_robot_state``."""
    _check(kind)
    package, _, module = str(kind.__module__).rpartition(".")
    # lcm-gen makes a module for each type, in a package of the package's name; without one, it stands alone.
    path = package if module == kind.__name__ else kind.__module__
    return f"{path}.{kind.__name__}" if path and path != kind.__name__ else str(kind.__name__)


def fingerprint(kind: Any) -> bytes:
    """Return what every message of an LCM type begins with: a hash of its definition."""
    _check(kind)
    return bytes(kind._get_packed_fingerprint())


def definition(kind: Any) -> str:
    """Return the definition of an LCM type, as it could stand in a .lcm file; without its constants and comments.

    The types of its fields follow it, so that its messages can be read by that alone.
    """
    lines: list[str] = []
    last = ""
    for each in _with_parts(kind, {}).values():
        package, _, name = type_name(each).rpartition(".")
        head = [f"package {package};", ""] if package != last else []
        fields = zip(each.__slots__, each.__typenames__, each.__dimensions__, strict=True)
        members = [f"    {type_} {field}{_dimensions(sizes)};" for field, type_, sizes in fields]
        lines += [*([""] if lines else []), *head, f"struct {name}", "{", *members, "}"]
        last = package
    return "\n".join([*lines, ""])


def _with_parts(kind: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Collect a type and those of its fields, by name, as far as the module that lcm-gen made knows them."""
    if type_name(kind) not in found:
        found[type_name(kind)] = kind
        for name in kind.__typenames__:
            part: Any = sys.modules.get(kind.__module__)
            for step in name.split("."):
                part = getattr(part, step, None)
            if isinstance(part, ModuleType):  # Without a package, a type is in a module of its own name.
                part = getattr(part, name, None)
            if is_lcm_type(part):
                _with_parts(part, found)
    return found


def _dimensions(sizes: list[int | str] | None) -> str:
    return "".join(f"[{size}]" for size in sizes or ())


def _check(kind: Any) -> None:
    if not is_lcm_type(kind):
        raise UsageError(f"{shown(kind)} isn't an LCM type", advice="name a class that lcm-gen has made")
