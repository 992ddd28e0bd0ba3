"""Where an instruction finds the operands of a chain: A, B, C, and row registers.

An instruction reads A from either memory, B from either, and C from the one that B does not lie in. What it reads
nowhere, one row of a tile or one column, is in a row register: VROW takes it there from the accumulators, before an
instruction for each N columns, or, of columns, for each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import ADDER_OPS, BinaryOp
from sley.runtime.tile.ir import Op, Value, tile_shape, tile_type
from sley.runtime.tile.passes.chains import SPLATS, in_scratchpad
from sley.runtime.tile.types import TileType

REGISTERS = (Operand.ROW2, Operand.ROW1, Operand.ROW0, Operand.ROW3)
"""In the order in which they are taken."""
STAGES = ("binary", "add", "multiply", "relu", "function", "multiply2", "binary2")
OPERANDS = {"binary": "binary_operand", "binary2": "binary2_operand"}
"""Names of operands that are not those of their stages."""
REVERSED = {
    BinaryOp.ADD: BinaryOp.ADD,
    BinaryOp.SUB: BinaryOp.RSUB,
    BinaryOp.RSUB: BinaryOp.SUB,
    BinaryOp.MAX: BinaryOp.MAX,
    BinaryOp.MIN: BinaryOp.MIN,
}
"""What is the same with its operands exchanged."""
_BC = (Late.B, Late.C)
Source = Value | int | Operand | None
"""A tile, the bits of a number, ``X``, or nothing."""


@dataclass(frozen=True)
class Step:
    """What a stage does: ``kind`` is a stage that does it. ``code``: of a binary operation, or the function."""

    kind: str
    source: Source = None
    code: Any = None


@dataclass(frozen=True)
class Assigned:
    """A chain with its operands in the order of the IR: A, B and C as far as they are read, and those of
    ``registers``. ``widened``: those that must be fp32, and are bf16."""

    stages: Chain
    operands: tuple[Value, ...]
    splats: tuple[int, ...]
    registers: tuple[Operand, ...]
    widened: tuple[Value, ...]


def steps_of(op: Op) -> list[Step] | None:
    """What a chain of fp32 does to its operand A, one step a stage; none if it has a stage that is not for this."""
    stages: Chain = op.attributes["stages"]
    tiles = [value for value in op.operands if isinstance(value.type, TileType)]
    if op.attributes["slots"] or op.attributes["iota"] or op.attributes["computed"] is not ElementType.FP32:
        return None
    plain = replace(Chain(), **{name: getattr(stages, name) for name in _FIELDS})
    if not tiles or plain != stages or op.attributes.get("registers"):
        return None
    others = tiles[1:]
    b = others.pop(0) if stages.uses_b else None
    c = others.pop(0) if stages.uses_c else None
    of_late = {Late.A: tiles[0], Late.B: b, Late.C: c}

    def source(operand: Operand) -> Source:
        if operand in SPLATS:
            number: int = op.attributes["splats"][SPLATS.index(operand)]
            return number
        if operand in (Operand.LATE0, Operand.LATE1):
            return of_late[stages.late0 if operand is Operand.LATE0 else stages.late1]
        return b if operand is Operand.B else operand

    found = []
    for name in STAGES:
        code = getattr(stages, name)
        if code is None or (not code and name != "function"):
            continue
        operand = code if name in ("add", "multiply", "multiply2") else getattr(stages, OPERANDS.get(name, ""), None)
        kind = {"add": "binary", "binary2": "binary", "multiply2": "multiply"}.get(name, name)
        found.append(Step(kind, None if operand is None else source(operand), BinaryOp.ADD if name == "add" else code))
    return found


_FIELDS = (*STAGES, *OPERANDS.values(), "late0", "late1", "c_type")


def _is_number(source: Source) -> TypeGuard[int]:
    return isinstance(source, int) and not isinstance(source, Operand)


def staged(steps: Sequence[Step]) -> list[tuple[str, Step]] | None:
    """The first stage for each step that is behind the one of the step before; none if there is none for one."""
    found: list[tuple[str, Step]] = []
    stage = -1
    for step in steps:
        places = {"binary": ["binary", "binary2"], "multiply": ["multiply", "multiply2"]}.get(step.kind, [step.kind])
        if step.code is BinaryOp.ADD and _is_number(step.source):
            places = ["binary", "add", "binary2"]
        if step.kind == "binary" and step.code not in ADDER_OPS:
            places = ["binary"]
        place = next((STAGES.index(name) for name in places if STAGES.index(name) > stage), None)
        if place is None:
            return None
        stage = place
        found.append((STAGES[place], step))
    return found


def assign(a: Value, steps: Sequence[Step], shape: tuple[int, int], by_rows: bool) -> Assigned | None:
    """The chain that does these steps to tile ``a``, with the fewest operands in row registers; none if there is none.
    ``by_rows``: an instruction takes a row of the tiles, and columns can be in registers; else N columns, and rows
    can."""
    stages = staged(steps)
    if stages is None:
        return None
    ways = _search(a, stages, shape, by_rows)
    return min(ways, key=lambda made: (len(made.registers), len(made.widened)), default=None)


def _search(a: Value, stages: Sequence[tuple[str, Step]], shape: tuple[int, int], by_rows: bool) -> Iterator[Assigned]:
    """All ways."""
    starts = [(a, list(stages))]
    name, first = stages[0]
    if name == "binary" and isinstance(first.source, Value) and first.code in REVERSED and first.source is not a:
        starts.append((first.source, [(name, Step("binary", a, REVERSED[first.code])), *stages[1:]]))
    for start, each in starts:
        values = list(dict.fromkeys(step.source for _, step in each if isinstance(step.source, Value)))
        others = [value for value in values if value is not start]
        yield from _placed(start, each, others, {}, shape, by_rows)


def _placed(
    a: Value,
    stages: Sequence[tuple[str, Step]],
    left: list[Value],
    places: dict[Value, tuple[Operand | Late, bool]],
    shape: tuple[int, int],
    by_rows: bool,
) -> Iterator[Assigned]:
    """With places for what is left: B, C or a register, and whether it is widened."""
    if not left:
        made = _made(a, stages, places)
        if made is not None:
            yield made
        return
    value, *others = left
    type = tile_type(value)
    taken = {place for place, _ in places.values()}
    narrow, line = in_scratchpad(type.dtype), _line(value, shape)
    for place in (Late.B, Late.C):
        if place not in taken:
            for widened in (False, True) if narrow and line is not None else (False,):
                yield from _placed(a, stages, others, {**places, value: (place, widened)}, shape, by_rows)
    register = next((register for register in REGISTERS if register not in taken), None)
    if register is not None and line is not None and line == by_rows:
        yield from _placed(a, stages, others, {**places, value: (register, narrow)}, shape, by_rows)


def _line(value: Value, shape: tuple[int, int]) -> bool | None:
    """Whether it is one column of a tile of more; False if it is one row; None if it is neither."""
    rows, columns = tile_shape(value)
    if columns == 1 and rows == shape[0] > 1:
        return True
    return False if rows == 1 < shape[0] and columns == shape[1] > 1 else None


def _made(
    a: Value, stages: Sequence[tuple[str, Step]], places: dict[Value, tuple[Operand | Late, bool]]
) -> Assigned | None:
    """The chain; none if C lies where B does, there is no B for a C, or stages want more late operands than there
    are."""
    where = {place: (value, widened) for value, (place, widened) in places.items()}
    splats: list[int] = []
    fields: dict[str, Any] = {}
    late: dict[str, Any] = {}
    for name, step in stages:
        if name == "relu":
            fields[name] = True
            continue
        fields[name] = step.code
        operand: Operand | None = step.source if isinstance(step.source, Operand) else None
        if _is_number(step.source):
            if step.source not in splats:
                splats.append(step.source)
            if len(splats) > len(SPLATS):
                return None
            operand = SPLATS[splats.index(step.source)]
        elif isinstance(step.source, Value):
            place = Late.A if step.source is a else places[step.source][0]
            if name == "binary" and place is Late.B:
                operand = Operand.B
            elif isinstance(place, Operand):
                operand = place
            elif name == "binary":
                return None
            else:
                free = [field for field in ("late1", "late0") if field not in late]
                if not free:
                    return None
                late[free[0]] = place
                operand = Operand.LATE1 if free[0] == "late1" else Operand.LATE0
        if operand is not None:
            fields[name if name in ("add", "multiply", "multiply2") else OPERANDS[name]] = operand
    if Late.C in where:
        if Late.B not in where:
            return None
        in_b, in_c = (in_scratchpad(tile_type(value).dtype) and not wide for value, wide in (where[at] for at in _BC))
        if in_b == in_c:
            return None
        fields["c_type"] = tile_type(where[Late.C][0]).dtype if in_c else ElementType.INT8
    registers = tuple(place for place, _ in places.values() if isinstance(place, Operand))
    operands = [a, *(where[place][0] for place in _BC if place in where), *(where[place][0] for place in registers)]
    widened = tuple(value for value, (_, wide) in places.items() if wide)
    return Assigned(Chain(**fields, **late), tuple(operands), tuple(splats), registers, widened)
