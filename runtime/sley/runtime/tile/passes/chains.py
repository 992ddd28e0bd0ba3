"""Element-wise operations become chains: as many of them as one instruction of the vector unit does.

A chain has the stages of ``sley.abi.vector.chains`` in a fixed order, one or no operation in each. An operation joins
the chain that makes its operand if nobody else uses that, and a stage behind those that are taken does it; else it
begins a chain of its own. The first stage that fits is taken, which leaves the most to the next operation. Every
operation rounds as it would alone, so no bit depends on what was joined.

Before: ``binary``, ``unary``, ``where``, ``cast``, ``full``. After: ``chain``; what nobody uses is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Condition, Late, Operand
from sley.abi.vector.operations import ADDER_OPS, BinaryOp
from sley.runtime.tile.constants import word
from sley.runtime.tile.ir import Block, Function, Op, Value, tile_shape, tile_type, uses
from sley.runtime.tile.operations import BINARY, TileError, function_named
from sley.runtime.tile.types import TileType, broadcast, wide

ELEMENTWISE = ("binary", "unary", "where", "cast", "full", "splat", "mask")
CONSTANT = ("full", "splat")
BEGIN, BINARY_STAGE, ADD, MULTIPLY, RELU, WHERE, FUNCTION, MULTIPLY2, BINARY2, END = range(10)
SPLATS = (Operand.SPLAT0, Operand.SPLAT1, Operand.SPLAT2, Operand.SPLAT3)
SWAPPED = {"add": "add", "max": "max", "min": "min", "sub": "rsub", "rsub": "sub", "eq": "eq", "ne": "ne"} | {
    bits: bits for bits in ("and", "or", "xor")
}
"""What an operation is with its operands exchanged."""
_LATE = ((Operand.LATE0, "late0"), (Operand.LATE1, "late1"))


def in_scratchpad(type: ElementType) -> bool:
    """Whether tiles of a type are in the scratchpad; the others are in the accumulators."""
    return type in (ElementType.BF16, ElementType.INT8)


@dataclass(frozen=True)
class Open:
    """A chain that may grow. ``dtype``: what it holds now, in fp32 or int32; ``computed``: of its first stage;
    ``out``: what it writes. ``splats`` are bits, or indices. ``test``: the base, row and lane of its condition. ``a``:
    none of a tile of one value."""

    a: Value | None
    computed: ElementType
    dtype: ElementType
    out: ElementType
    shape: tuple[int, int]
    line: int
    stages: Chain = field(default_factory=Chain)
    stage: int = BEGIN
    b: Value | None = None
    c: Value | None = None
    splats: tuple[int | Value, ...] = ()
    test: tuple[Value, int, int] | None = None

    def op(self) -> Op:
        """The operation that it is."""
        operands = [self.a, *([self.b] if self.stages.uses_b else []), *([self.c] if self.stages.uses_c else [])]
        assert operands[1:].count(None) == 0
        indices = {slot: value for slot, value in enumerate(self.splats) if isinstance(value, Value)}
        operands += [*indices.values(), *(self.test[:1] if self.test else ())]
        attributes = {
            "stages": self.stages,
            "splats": tuple(0 if isinstance(splat, Value) else splat for splat in self.splats),
            "slots": tuple(indices),
            "iota": self.test[1:] if self.test else (),
            "computed": self.computed,
            "dtype": self.out,
            "shape": self.shape,
        }
        return Op("chain", [operand for operand in operands if operand], attributes, line=self.line)


def form_chains(function: Function) -> None:
    """Runs the pass, in place."""
    _Chains(function).block(function.body)


class _Chains:
    def __init__(self, function: Function) -> None:
        self.users = uses(function.body)
        self.open: dict[Value, Open] = {}
        self.constants: dict[Value, Op] = {}
        self.done: dict[Value, Value] = {}
        """What has been made of a value, of which a conversion from bf16 is the bf16 itself."""
        self.ops: list[Op] = []

    def block(self, block: Block) -> None:
        outer, self.ops = self.ops, []
        for op in block.ops:
            if op.name in CONSTANT:
                self.constants[op.result] = op
            elif op.name in ELEMENTWISE:
                self.elementwise(op)
            else:
                op.operands = [self.made(operand) for operand in op.operands]
                if op.body is not None:
                    for value in list(self.open):
                        self.made(value)
                    self.block(op.body)
                self.ops.append(op)
        block.ops, self.ops = self.ops, outer

    def elementwise(self, op: Op) -> None:
        """Adds the operation to a chain that is open, or opens one."""
        if op.result not in self.users:
            return
        for number, operand in enumerate(op.operands):
            chain = self.open.get(operand)
            if chain is None or any(user is not op for user in self.users[operand]):
                continue
            grown = self.grow(chain, op, number)
            if grown is not None:
                del self.open[operand]
                self.open[op.result] = grown
                return
        self.open[op.result] = self.begin(op)

    def begin(self, op: Op) -> Open:
        """A chain of this operation alone."""
        type = op.result.type
        assert isinstance(type, TileType)
        if op.name in CONSTANT:
            start = Open(None, type.dtype, type.dtype, type.dtype, type.shape, op.line, splats=(self.bits(op),))
            stages = Chain(binary=BinaryOp.SECOND, binary_operand=SPLATS[0])
            return replace(start, stages=stages, stage=BINARY_STAGE)
        constant = op.operands[0] if op.name == "cast" else None
        if constant in self.constants and tile_type(constant).dtype is ElementType.FP32:
            grown = self.grow(self.begin(self.shaped(constant, op)), op, 0)
            if grown is not None:
                return grown
        if op.name == "mask" and op.operands[1] in self.constants:
            grown = self.grow(self.begin(self.shaped(op.operands[1], op)), op, 1)
            if grown is not None:
                return grown
        order = [1] if op.name in ("where", "mask") else sorted(range(len(op.operands)), key=lambda n: self.rank(op, n))
        for number in order:
            if op.operands[number] in self.constants:
                continue
            operand = op.operands[number]
            a = self.made(operand)
            dtype = wide(tile_type(operand).dtype)
            if tile_type(operand).dtype is ElementType.INT8 and op.attributes["dtype"].is_float:
                dtype = ElementType.FP32
            start = Open(a, dtype, dtype, dtype, tile_shape(a), op.line)
            grown = self.grow(start, op, number)
            if grown is not None:
                return grown
        first = op.operands[1 if op.name in ("where", "mask") else 0]
        grown = self.begin_with_constant(op) if first in self.constants else None
        if grown is not None:
            return grown
        if op.name == "where" and op.operands[0] not in self.constants:
            return self.where_by_bits(op)
        raise TileError(f"line {op.line}: {op.name} of constants alone; compute it in Python")

    def where_by_bits(self, op: Op) -> Open:
        """A choice between two tiles that one instruction cannot read beside the condition: each of them or 0, and the
        bits of both together."""
        condition, x, y = op.operands
        kind, chosen = tile_type(condition), tile_type(op.result)
        zero, one = self.constant(0, kind.dtype), self.constant(1, kind.dtype)
        nothing = self.constant(0, chosen.dtype)
        otherwise = self.add("where", [condition, zero, one], kind)
        parts = [self.add("where", [condition, x, nothing], chosen), self.add("where", [otherwise, y, nothing], chosen)]
        both = Op("binary", parts, {"kind": "or"}, [op.result], line=op.line)
        for part in parts:
            self.users[part] = [both]
        return self.begin(both)

    def constant(self, value: float, dtype: ElementType) -> Value:
        made = Value(TileType(dtype, (1, 1)))
        self.constants[made] = Op("full", [], {"value": value, "dtype": dtype, "shape": (1, 1)}, [made])
        return made

    def add(self, name: str, operands: list[Value], type: TileType) -> Value:
        """An operation in front of the one at hand; its result is in memory behind it."""
        op = Op(name, operands, results=[Value(type)])
        self.users[op.result] = [op]
        self.open[op.result] = self.begin(op)
        return self.made(op.result)

    def begin_with_constant(self, op: Op) -> Open | None:
        """A chain whose first operand must be a tile of a constant; None if it cannot be."""
        number = 1 if op.name in ("where", "mask") else 0
        full = self.shaped(op.operands[number], op)
        self.open[full.result] = self.begin(full)
        a = self.made(full.result)
        dtype, shape = tile_type(a).dtype, tile_shape(a)
        return self.grow(Open(a, dtype, dtype, dtype, shape, op.line), op, number)

    def shaped(self, constant: Value, op: Op) -> Op:
        """The operation that makes a constant, of the shape of another one's result."""
        made, shape = self.constants[constant], tile_shape(op.result)
        attributes = dict(made.attributes) | ({"shape": shape} if made.name == "full" else {})
        type = TileType(tile_type(constant).dtype, shape)
        return Op(made.name, list(made.operands), attributes, [Value(type)], line=op.line)

    def rank(self, op: Op, number: int) -> tuple[int, int]:
        """Whole tiles first: the others are read again and again."""
        type = op.operands[number].type
        assert isinstance(type, TileType)
        return -type.shape[0] * type.shape[1], number

    def made(self, value: Value) -> Value:
        """The value in memory: ends the chain that makes it."""
        if value in self.done:
            return self.done[value]
        if value in self.open:
            chain = self.open.pop(value)
            if chain.stage == BEGIN and chain.out is chain.computed:
                assert chain.a is not None
                if in_scratchpad(tile_type(chain.a).dtype) and not self.must_be_made(value, tile_type(chain.a).dtype):
                    self.done[value] = chain.a
                    return chain.a
            op = chain.op()
            op.results = [value]
            self.ops.append(op)
        elif value in self.constants:
            constant = self.constants[value]
            full = Op(constant.name, list(constant.operands), dict(constant.attributes), line=constant.line)
            full.results = [Value(value.type)]
            op = self.begin(full).op()
            op.results = full.results
            self.ops.append(op)
            return full.result
        self.done[value] = value
        return value

    def must_be_made(self, value: Value, source: ElementType) -> bool:
        """Whether somebody uses a converted tile who cannot convert it when it is read."""
        able = (*ELEMENTWISE, "reduce") if source is ElementType.BF16 else ELEMENTWISE
        return any(user.name not in able for user in self.users[value])

    def bits(self, op: Op) -> int | Value:
        """Of the elements of a constant, or the index that they are."""
        return op.operands[0] if op.name == "splat" else word(op.attributes["value"], op.attributes["dtype"])

    # Growing

    def grow(self, chain: Open, op: Op, number: int) -> Open | None:
        """The chain with the operation behind it, its operand ``number`` being the chain's value; None if it cannot."""
        shape = tile_shape(op.result)
        if chain.shape != shape and (chain.stage != BEGIN or broadcast(chain.shape, shape) is None):
            return None
        if chain.out is not chain.dtype:
            return None
        chain = replace(chain, shape=shape)
        if op.name == "cast":
            return self.cast(chain, op.attributes["dtype"])
        if op.name == "unary":
            return self.unary(chain, op.attributes["kind"])
        if op.name == "where":
            return self.where(chain, op) if number == 1 else None
        if op.name == "mask":
            return self.mask(chain, op) if number == 1 else None
        same = op.operands[0] is op.operands[1]
        other = None if same else op.operands[1 - number]
        return self.binary(chain, op.attributes["kind"], other, number == 1)

    def cast(self, chain: Open, to: ElementType) -> Open | None:
        if chain.dtype is ElementType.INT32 and to.is_float:
            if chain.stage > ADD:
                return None  # an int32 becomes fp32 behind that stage, and nowhere else
            dtype = ElementType.FP32
            return replace(chain, dtype=dtype, out=to, stage=ADD if to is dtype else END)
        if to is chain.dtype:
            return chain
        if chain.computed is not chain.dtype and not chain.stages.becomes_float(to):
            return None  # nothing would make it fp32 before it is an integer again
        return replace(chain, out=to, stage=END)

    def unary(self, chain: Open, kind: str) -> Open | None:
        stages = chain.stages
        if kind == "relu" and chain.stage < RELU:
            return replace(chain, stages=replace(stages, relu=True), stage=RELU)
        if kind != "relu" and chain.stage < FUNCTION:
            return replace(chain, stages=replace(stages, function=function_named(kind)), stage=FUNCTION)
        return None

    def where(self, chain: Open, op: Op) -> Open | None:
        condition, _, other = op.operands
        if chain.stage >= WHERE or condition in self.constants:
            return None
        named = self.late(chain, condition, Operand.LATE0)
        if named is None:
            return None
        chain = replace(named[0], stages=replace(named[0].stages, keep=Condition.LATE0_NOT_ZERO))
        found = self.uniform(chain, other) or self.late(chain, other, Operand.LATE1)
        if found is None:
            return None
        chain, operand = found
        return replace(chain, stages=replace(chain.stages, other=operand), stage=WHERE)

    def mask(self, chain: Open, op: Op) -> Open | None:
        base, _, other = op.operands
        if chain.stage >= WHERE:
            return None
        found = self.uniform(chain, other) or self.late(chain, other, Operand.LATE1)
        if found is None:
            return None
        chain, operand = found
        stages = replace(chain.stages, keep=Condition.IOTA_NEGATIVE, other=operand)
        test = (base, op.attributes["row"], op.attributes["lane"])
        return replace(chain, stages=stages, stage=WHERE, test=test)

    def binary(self, chain: Open, kind: str, other: Value | None, right: bool) -> Open | None:
        if kind == "mul":
            return self.multiply(chain, other)
        kind = SWAPPED.get(kind, "") if right else kind
        code = BINARY.get(kind)
        if code is None or other is None:
            return self.alike(chain, code) if other is None else None
        if chain.stage < BINARY_STAGE:
            found = self.uniform(chain, other) or self.operand_b(chain, other)
            if found is not None:
                chain, operand = found
                return replace(
                    chain, stages=replace(chain.stages, binary=code, binary_operand=operand), stage=BINARY_STAGE
                )
        if chain.stage < ADD and code is BinaryOp.ADD:
            found = self.uniform(chain, other)
            if found is not None:
                return replace(found[0], stages=replace(found[0].stages, add=found[1]), stage=ADD)
        if code not in ADDER_OPS or chain.stage >= BINARY2:
            return None
        found = self.uniform(chain, other) or self.late(chain, other)
        if found is None:
            return None
        chain, operand = found
        return replace(chain, stages=replace(chain.stages, binary2=code, binary2_operand=operand), stage=BINARY2)

    def alike(self, chain: Open, code: BinaryOp | None) -> Open | None:
        """x and x: at the beginning, as both operands."""
        if code is None or chain.stage != BEGIN:
            return None
        if chain.b not in (None, chain.a):
            return None
        stages = replace(chain.stages, binary=code, binary_operand=Operand.B)
        return replace(chain, b=chain.a, stages=stages, stage=BINARY_STAGE)

    def multiply(self, chain: Open, other: Value | None) -> Open | None:
        if chain.stage >= MULTIPLY2 or (chain.dtype is ElementType.INT32 and chain.stage >= MULTIPLY):
            return None
        if chain.stages.integer_product:
            return None
        if other is None:
            found: tuple[Open, Operand] | None = (chain, Operand.X)
        else:
            found = self.uniform(chain, other) or self.late(chain, other)
        if found is None:
            return None
        chain, operand = found
        if chain.stage < MULTIPLY:
            whole = chain.dtype is ElementType.INT32
            stages = replace(chain.stages, multiply=operand, integer_product=whole)
            return replace(chain, stages=stages, stage=END if whole else MULTIPLY)
        return replace(chain, stages=replace(chain.stages, multiply2=operand), stage=MULTIPLY2)

    # Operands

    def uniform(self, chain: Open, value: Value) -> tuple[Open, Operand] | None:
        """The value as a splat, if it is a constant."""
        if value not in self.constants:
            return None
        bits = self.bits(self.constants[value])
        splats = chain.splats if bits in chain.splats else (*chain.splats, bits)
        if len(splats) > len(SPLATS):
            return None
        return replace(chain, splats=splats), SPLATS[splats.index(bits)]

    def operand_b(self, chain: Open, value: Value) -> tuple[Open, Operand] | None:
        place = self.made(value)
        if chain.b not in (None, place) or self.unreadable(chain, value):
            return None
        return replace(chain, b=place), Operand.B

    def unreadable(self, chain: Open, value: Value) -> bool:
        """Whether rows would be read as another type: those of the scratchpad become what the first stage has."""
        return (
            chain.computed is ElementType.INT32
            and tile_type(value).dtype is not ElementType.INT32
            and in_scratchpad(tile_type(self.made(value)).dtype)
        )

    def late(self, chain: Open, value: Value, wanted: Operand | None = None) -> tuple[Open, Operand] | None:
        """The value as a late operand: A, B, or C if that is in the other memory than B, and has whole rows."""
        free = [(late, name) for late, name in _LATE if not chain.stages.late_uses(late) and wanted in (None, late)]
        place = self.made(value)
        if not free or self.unreadable(chain, value):
            return None
        late, name = free[-1] if wanted is None else free[0]
        if chain.a is None:
            if tile_shape(place) != chain.shape:
                return None
            chain = replace(chain, a=place)
        if place is chain.a and tile_shape(place) == chain.shape:
            return replace(chain, stages=replace(chain.stages, **_source(name, Late.A))), late
        if chain.b in (None, place):
            return replace(chain, b=place, stages=replace(chain.stages, **_source(name, Late.B))), late
        assert chain.b is not None
        kind, other = tile_type(place).dtype, tile_type(chain.b).dtype
        if chain.c not in (None, place) or kind is ElementType.INT8 or in_scratchpad(kind) == in_scratchpad(other):
            return None
        stages = replace(chain.stages, c_type=kind if in_scratchpad(kind) else ElementType.INT8)
        return replace(chain, c=place, stages=replace(stages, **_source(name, Late.C))), late


def _source(name: str, late: Late) -> dict[str, Any]:
    """What a late operand is, as a field of a chain."""
    return {name: late}
