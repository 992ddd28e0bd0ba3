"""The text of a tile IR function: one line an operation, the same for every chip.

::

    sley.tile 1
    kernel double(%x: fp32[4, 64; 64, 1], %y: fp32[4, 64; 64, 1]) grid 1, 1, 1 {
      %0: index = const() {value=0} @3
      %1: fp32[4, 64] = load(%x, %0, %0) {axes=(0, 1), fill=0.0, shape=(4, 64)} @3
      %2: fp32[4, 64] = binary(%1, %1) {kind='add'} @4
      store(%y, %0, %0, %2) {axes=(0, 1)} @4
    }

A loop's line ends with the parameters of its body and a brace. A second value of the same name, as of a loop over
``k`` in one over ``k``, is ``%k.2``. ``parse`` gives back what ``printed`` was given, and checks every operation.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from sley.abi.types import TYPES, ElementType
from sley.abi.vector.chains import Chain, chain_of
from sley.runtime.tile.ir import VERSION, Attribute, Block, Function, Op, Value
from sley.runtime.tile.operations import TileError, result_types
from sley.runtime.tile.types import INDEX, ArrayType, TileType, Type

_TYPES = {info.name: element for element, info in TYPES.items()}
_HEAD = re.compile(r"kernel (\w+)\((.*)\) grid (\d+), (\d+), (\d+) \{$")
_OP = re.compile(
    r"(?:(?P<results>%[^=]*?) = )?(?P<name>\w+)\((?P<operands>[^)]*)\)(?: \{(?P<attributes>.*?)\})?"
    r"(?: @(?P<line>\d+))?(?P<body> \((?P<parameters>.*)\) \{)?$"
)
_NAMED = re.compile(r"(%\w+(?:\.\d+)?): (index|\w+\[[^\]]*\])")


def printed(function: Function) -> str:
    """The text; values are numbered in their order, and so are those of one name from the second on."""
    names: dict[Value, str] = {}
    seen: Counter[str] = Counter()

    def name(value: Value) -> str:
        if value not in names:
            number = seen[value.name]
            seen[value.name] += 1
            names[value] = f"%{value.name}.{number + 1}" if value.name and number else f"%{value.name or number}"
        return names[value]

    def typed(values: list[Value]) -> str:
        return ", ".join(f"{name(value)}: {value.type}" for value in values)

    def lines(block: Block, indent: str) -> Iterator[str]:
        for op in block.ops:
            operands = ", ".join(map(name, op.operands))
            results = f"{typed(op.results)} = " if op.results else ""
            attributes = ", ".join(f"{key}={_shown(value)}" for key, value in sorted(op.attributes.items()))
            text = f"{indent}{results}{op.name}({operands})" + (f" {{{attributes}}}" if attributes else "")
            text += f" @{op.line}" if op.line else ""
            if op.body is None:
                yield text
            else:
                yield f"{text} ({typed(op.body.parameters)}) {{"
                yield from lines(op.body, indent + "  ")
                yield indent + "}"

    x, y, z = function.grid
    head = f"kernel {function.name}({typed(function.arrays)}) grid {x}, {y}, {z} {{"
    return "\n".join([f"sley.tile {VERSION}", head, *lines(function.body, "  "), "}"]) + "\n"


def _shown(value: Attribute) -> str:
    if isinstance(value, ElementType):
        return value.info.name
    if isinstance(value, Chain):
        return "chain" + repr(value.words()).replace(" ", "")
    return repr(value)


def parse(text: str) -> Function:
    """The function that a text is of. Raises ``TileError`` with the line for what means nothing."""
    rows = [(number, row.strip()) for number, row in enumerate(text.splitlines(), 1) if row.strip()]
    if not rows or rows[0][1] != f"sley.tile {VERSION}":
        raise TileError(f"line 1: a program begins with 'sley.tile {VERSION}'; this one is of another version, or none")
    head = _HEAD.match(rows[1][1]) if len(rows) > 1 else None
    if not head:
        raise TileError("line 2: expected kernel name(arrays) grid x, y, z {")
    values: dict[str, Value] = {}
    function = Function(
        head[1],
        _values(head[2], values, 2),
        (int(head[3]), int(head[4]), int(head[5])),
        Block(),
    )
    open_blocks = [function.body]
    loops: list[tuple[int, Op]] = []
    for number, row in rows[2:]:
        if row == "}":
            if not open_blocks:
                raise TileError(f"line {number}: one brace too many")
            open_blocks.pop()
            if loops:
                _check(loops.pop(), values)
            continue
        match = _OP.match(row)
        if not match or not open_blocks:
            raise TileError(f"line {number}: {row!r} is no operation")
        op = _op(match, values, number)
        open_blocks[-1].ops.append(op)
        if match["body"]:
            op.body = Block(_values(match["parameters"], values, number))
            open_blocks.append(op.body)
            loops.append((number, op))
        else:
            _check((number, op), values)
    if open_blocks:
        raise TileError(f"line {rows[-1][0]}: a block has no end")
    return function


def _op(match: re.Match[str], values: dict[str, Value], line: int) -> Op:
    operands = [name.strip() for name in match["operands"].split(",") if name.strip()]
    unknown = [name for name in operands if name not in values]
    if unknown:
        raise TileError(f"line {line}: {unknown[0]} has no value yet")
    used = [values[name] for name in operands]
    results = _values(match["results"] or "", values, line)
    return Op(match["name"], used, _attributes(match["attributes"] or "", line), results, line=int(match["line"] or 0))


def _check(placed: tuple[int, Op], values: dict[str, Value]) -> None:
    line, op = placed
    try:
        types = result_types(op)
    except TileError as error:
        raise TileError(f"line {line}: {error}") from None
    if types != [result.type for result in op.results]:
        raise TileError(f"line {line}: results of {op.name} are {', '.join(map(str, types)) or 'none'}")


def _values(text: str, values: dict[str, Value], line: int) -> list[Value]:
    made = []
    for name, type in _NAMED.findall(text):
        if name in values:
            raise TileError(f"line {line}: {name} has a value already")
        known, _, _ = name[1:].partition(".")
        values[name] = Value(_type(type, line), "" if known.isdecimal() else known)
        made.append(values[name])
    return made


def _type(text: str, line: int) -> Type:
    if text == "index":
        return INDEX
    element, inside = text[:-1].split("[")
    if element not in _TYPES:
        raise TileError(f"line {line}: no element type {element!r}; there are {', '.join(_TYPES)}")
    shape, *strides = (tuple(int(n) for n in part.split(",") if n) for part in inside.split(";"))
    if strides:
        return ArrayType(_TYPES[element], shape, strides[0])
    return TileType(_TYPES[element], (shape[0], shape[1]))


def _attributes(text: str, line: int) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for key, value in re.findall(r"(\w+)=((?:chain)?\([^)]*\)|'[^']*'|[^,]+)", text):
        if value in _TYPES:
            found[key] = _TYPES[value]
        elif value.startswith("chain"):
            found[key] = chain_of(ast.literal_eval(value[5:]))
        elif value in ("inf", "-inf", "nan"):
            found[key] = float(value)
        else:
            try:
                found[key] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                raise TileError(f"line {line}: {key}={value} is no attribute") from None
    return found
