"""Parts of a line of TTIR: its location, types, attributes, numbers."""

from __future__ import annotations

import re
import struct
from typing import Any

from sley.runtime.frameworks.from_triton.refusal import TritonRefused
from sley.runtime.frameworks.from_triton.ttir import Operation, TritonType

_ATTRIBUTE = re.compile(r"(\w+) = (array<[^>]*>|\"[^\"]*\"|[^,}]+)")
_FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def type_of(text: str) -> TritonType:
    """The type that a text names. Raises ``TritonRefused``."""
    text = text.strip()
    pointer = re.match(r"^!tt\.ptr<(\w+)(?:, \d+)?>$", text)
    if pointer:
        return TritonType(pointer[1], (), "pointer")
    descriptor = re.match(r"^(?:!tt\.tensordesc)?<(?:tensor<)?((?:\d+x)*)(\w+)>?>$", text)
    if descriptor:
        return TritonType(descriptor[2], _sides(descriptor[1]), "descriptor")
    tensor = re.match(r"^tensor<((?:\d+x)+)(.*)>$", text)
    if tensor:
        inner = type_of(tensor[2])
        return TritonType(inner.element, _sides(tensor[1]), inner.kind)
    if re.match(r"^(i|f|bf)\d+$|^f8\w+$|^index$", text):
        return TritonType("i64" if text == "index" else text)
    raise TritonRefused(f"{text!r} is no type of TTIR that is known")


def _sides(text: str) -> tuple[int, ...]:
    return tuple(int(side) for side in text.split("x") if side)


def split_location(line: str) -> tuple[str, str]:
    """A line, and what is in the ``loc(...)`` at its end."""
    if not line.endswith(")"):
        return line, ""
    depth, at = 0, len(line)
    while at:
        at -= 1
        depth += {")": 1, "(": -1}.get(line[at], 0)
        if not depth:
            break
    if line[:at].endswith("loc"):
        return line[: at - 3].rstrip(), line[at + 1 : -1]
    return line, ""


def split_types(text: str) -> tuple[str, str]:
    """What is before the last colon that is in no bracket, and behind it."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in ">)]}" and text[at - 1 : at + 1] != "->":
            depth += 1
        elif text[at] in "<([{":
            depth -= 1
        elif text[at] == ":" and not depth:
            return text[:at], text[at + 1 :].strip()
    return text, ""


def types_in(text: str) -> list[TritonType]:
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [type_of(part) for part in parts if part.strip()]


def result_types(operation: Operation, types: str) -> list[TritonType]:
    """As the operation's form says: behind an arrow, behind ``to``, or the only one."""
    for mark in (" -> ", " to "):
        if mark in types:
            return types_in(types.rpartition(mark)[2])
    found = types_in(types)
    if operation.name in ("arith.cmpi", "arith.cmpf"):
        return [found[0].of("i1")]
    if operation.name == "tt.load":
        return [found[0].pointee]
    if operation.name == "arith.select":
        return [found[-1]]
    if operation.name == "tt.make_tensor_descriptor":
        return [found[-1]]
    return found[:1]


def attributes_in(head: str) -> dict[str, Any]:
    return {name: _attribute(value.strip()) for name, value in _ATTRIBUTE.findall(head)}


def _attribute(text: str) -> Any:
    text = re.sub(r" : [a-z]\w+$", "", text)
    if text.startswith("array<"):
        return tuple(int(number) for number in text[text.index(":") + 1 : -1].split(",") if number.strip())
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text.strip('"')


def number_in(text: str, type: TritonType) -> int | float | None:
    """A constant, or None for elements that differ. Floats may be written as their bits."""
    if text in ("true", "false"):
        return int(text == "true")
    if type.is_integer:
        return int(text) if re.match(r"^-?\d+$", text) else None
    if re.match(r"^0x[0-9A-F]+$", text):
        bits = int(text, 16)
        width = _FLOATS.get(type.element)
        if width == 32 or type.element == "bf16":
            word = bits << 16 if type.element == "bf16" else bits
            return float(struct.unpack("<f", struct.pack("<I", word))[0])
        return float(struct.unpack("<e", struct.pack("<H", bits))[0]) if width == 16 else None
    try:
        return float(text)
    except ValueError:
        return None
