"""Reads LCM messages by their definition, as it stands in a recording: no class that lcm-gen made is needed.

Pure. A definition is a .lcm file: packages, structs, constants. What can't be read by it, a message of another type for
instance, isn't guessed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FINGERPRINT = re.compile(r"// fingerprint 0x([0-9a-f]{16})")
_STATEMENT = re.compile(r"package\s+([\w.]+)\s*;|struct\s+(\w+)\s*\{(.*?)\}", re.DOTALL)
_CONSTANT = re.compile(r"(\w+)\s*=\s*(-?(?:0x[0-9a-fA-F]+|\d+))")
_MEMBER = re.compile(r"(\w+)\s*((?:\[\s*\w+\s*\]\s*)*)")
_NUMBERS = {
    "int8_t": "b",
    "int16_t": "h",
    "int32_t": "i",
    "int64_t": "q",
    "byte": "B",
    "float": "f",
    "double": "d",
    "boolean": "?",
}
_ELEMENTS_MAX = 2**24  # Of an array of structs without fields: all others need bytes of the message.


class LcmDefinitionError(ValueError):
    """A definition can't be read, or a message isn't of the type that it defines."""


class _Member(NamedTuple):
    name: str
    type: str
    sizes: Sequence[str | int]


Types = Mapping[str, Sequence[_Member]]


def lcm_reader(name: str, definition: str) -> Callable[[bytes], dict[str, Any]]:
    """Return what reads messages of the type of that name."""
    types = _types(definition)
    if name not in types:
        raise LcmDefinitionError(f"there is no struct {name} in the definition")
    said = _FINGERPRINT.search(definition)
    fingerprint = bytes.fromhex(said[1]) if said else None

    def read(payload: bytes) -> dict[str, Any]:
        if len(payload) < 8 or (fingerprint is not None and payload[:8] != fingerprint):
            raise LcmDefinitionError("it is a message of another type")
        try:
            value, end = _struct(types, name, payload, 8)
        except (struct.error, IndexError, UnicodeDecodeError, RecursionError, TypeError, KeyError) as error:
            raise LcmDefinitionError(f"it isn't a {name}") from error
        if end != len(payload):
            raise LcmDefinitionError(f"it isn't a {name}")
        return value

    return read


def _types(definition: str) -> Types:
    found: dict[str, list[_Member]] = {}
    package = ""
    for statement in _STATEMENT.finditer(_COMMENT.sub(" ", definition)):
        if statement[1] is not None:
            package = f"{statement[1]}."
            continue
        constants: dict[str, int] = {}
        members = found[package + statement[2]] = []
        for line in filter(None, map(str.strip, statement[3].split(";"))):
            kind, _, rest = line.partition(" ")
            if kind == "const":
                constants.update((each[1], int(each[2], 0)) for each in _CONSTANT.finditer(rest))
                continue
            if kind not in _NUMBERS and kind != "string" and "." not in kind:
                kind = package + kind
            for each in _MEMBER.finditer(rest):
                sizes = [
                    int(size) if size.isdecimal() else constants.get(size, size) for size in re.findall(r"\w+", each[2])
                ]
                members.append(_Member(each[1], kind, sizes))
    return found


def _struct(types: Types, name: str, data: bytes, at: int) -> tuple[dict[str, Any], int]:
    value: dict[str, Any] = {}
    for member in types[name]:
        sizes = [size if isinstance(size, int) else value[size] for size in member.sizes]
        value[member.name], at = _value(types, member.type, sizes, data, at)
    return value, at


def _value(types: Types, kind: str, sizes: Sequence[int], data: bytes, at: int) -> tuple[Any, int]:
    code = _NUMBERS.get(kind)
    if not sizes:
        if code is not None:
            form = f">{code}"
            return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
        if kind == "string":
            (size,) = struct.unpack_from(">i", data, at)
            end = at + 4 + size
            if size < 1 or end > len(data):
                raise IndexError
            return data[at + 4 : end - 1].decode(), end
        return _struct(types, kind, data, at)
    count = sizes[0]
    if not 0 <= count <= max(len(data), _ELEMENTS_MAX):
        raise IndexError
    if code is not None and len(sizes) == 1:
        form = f">{count}{code}"
        return list(struct.unpack_from(form, data, at)), at + struct.calcsize(form)
    elements = []
    for _ in range(count):
        if at > len(data):
            raise IndexError
        each, at = _value(types, kind, sizes[1:], data, at)
        elements.append(each)
    return elements, at
