"""A chain of the vector unit, bit by bit, on whole instructions."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sley.abi.functions.own import OwnFunction
from sley.abi.functions.table import Function
from sley.abi.instructions import VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import UNIFORM, Chain, Condition, Lanes, Late, Operand
from sley.abi.vector.operations import PARTIALS, BinaryOp, Reduction
from sley.sim.golden import float32, functions
from sley.sim.golden.operations import GOLDEN, Words, fold, identity, join, multiply_int32


@dataclass
class RowRegisters:
    """Row registers, with the partial results of reductions that live in them until a fold.

    Attributes: ``rows`` [registers, N]; ``partials`` [registers, PARTIALS, N]; ``counts``: rows reduced since the
    last fold.
    """

    n: int
    rows: Words = field(init=False)
    partials: Words = field(init=False)
    counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.zeros((len(VectorRow), self.n), np.uint32)
        self.partials = np.zeros((len(VectorRow), PARTIALS, self.n), np.uint32)
        self.counts = [0] * len(VectorRow)

    def reduce(self, register: int, reduction: Reduction, x: Words, is_float: bool) -> None:
        """Rows x [rows, N], one after the other."""
        if reduction is Reduction.LAST:
            if len(x):
                self.rows[register] = x[-1]
            return
        partials, count = self.partials[register], self.counts[register]
        for row in x:
            old = partials[count % PARTIALS] if count >= PARTIALS else np.full(self.n, identity(reduction, is_float))
            partials[count % PARTIALS] = join(reduction, row, old, is_float)
            count += 1
        self.counts[register] = count

    def fold(self, register: int, reduction: Reduction, is_float: bool) -> None:
        """The result goes to the register, and the partials are forgotten."""
        missing = np.arange(PARTIALS) >= self.counts[register]
        partials = np.where(missing[:, None], identity(reduction, is_float), self.partials[register])
        self.rows[register] = fold(reduction, partials, is_float)
        self.counts[register] = 0


@dataclass(frozen=True)
class ChainInputs:
    """What an instruction's rows are made of.

    Attributes: ``a``, ``b``, ``c``: words [rows, N], of which ``b`` and ``c`` are None if they are not read; ``splats``
    [4]; ``iota``: base, growth from row to row and from lane to lane; ``exchange``: distance of exchanged lanes.
    """

    a: Words
    b: Words | None
    c: Words | None
    splats: tuple[int, ...]
    iota: tuple[int, int, int]
    exchange: int


def chain_rows(
    chain: Chain, inputs: ChainInputs, registers: RowRegisters, *, dtype: ElementType, out: ElementType
) -> tuple[Words, bool]:
    """x behind the last stage, [rows, N], and whether it is fp32; row registers are read, not written."""
    x, is_float = inputs.a, dtype is ElementType.FP32
    shape = x.shape
    late = {
        operand: _late(inputs, which, lanes)
        for operand, which, lanes in (
            (Operand.LATE0, chain.late0, chain.late0_lanes),
            (Operand.LATE1, chain.late1, chain.late1_lanes),
        )
        if chain.late_uses(operand)
    }

    def value(operand: Operand) -> Words:
        if operand in late:
            return late[operand]
        if operand is Operand.B:
            assert inputs.b is not None
            return inputs.b
        if operand is Operand.X:
            return x
        if operand >= Operand.ROW0:
            return np.broadcast_to(registers.rows[operand - Operand.ROW0], shape)
        number = inputs.splats[operand - Operand.SPLAT0] if operand in UNIFORM else 0
        return np.broadcast_to(np.uint32(number & 0xFFFFFFFF), shape)

    x = _binary(chain.binary, x, value(chain.binary_operand), is_float)
    if chain.add:
        x = _binary(BinaryOp.ADD, x, value(chain.add), is_float)
    if not is_float and chain.becomes_float(out):
        x, is_float = float32.from_int32(x.view(np.int32)), True
    if chain.multiply:
        x = (multiply_int32 if chain.integer_product else float32.multiply)(x, value(chain.multiply))
    if chain.relu:
        x = float32.relu(x) if is_float else np.maximum(x.view(np.int32), 0).view(np.uint32)
    if chain.keep:
        stays = late[Operand.LATE0] != 0 if chain.keep is Condition.LATE0_NOT_ZERO else _iota(inputs, shape) < 0
        x = np.where(stays, x, value(chain.other))
    if chain.function is not None:
        x = apply_function(chain.function, x)
    if chain.multiply2:
        x = float32.multiply(x, value(chain.multiply2))
    return _binary(chain.binary2, x, value(chain.binary2_operand), is_float), is_float


def convert(x: Words, is_float: bool, out: ElementType) -> NDArray[np.generic]:
    """What is written of x: words, bf16 and fp16 as ``np.uint16``, ``np.int8`` or ``np.uint8``."""
    if out is ElementType.BF16:
        return float32.to_bf16(x)
    if out is ElementType.FP16:
        return float32.to_fp16(x)
    if out is ElementType.FP32:
        return x
    integer = float32.to_int32(x) if is_float else x.view(np.int32)
    if out is ElementType.UINT8:
        return float32.saturate_uint8(integer)
    return float32.saturate_int8(integer) if out is ElementType.INT8 else integer.view(np.uint32)


def _binary(op: BinaryOp, x: Words, y: Words, is_float: bool) -> Words:
    return GOLDEN[op](np.ascontiguousarray(x), np.ascontiguousarray(y), is_float)


def apply_function(function: Function | OwnFunction, x: Words) -> Words:
    if isinstance(function, OwnFunction):
        result: Words = function.load_golden()(x)
        return result
    return functions.apply(function, x)


def _late(inputs: ChainInputs, which: Late, lanes: Lanes) -> Words:
    rows = {Late.A: inputs.a, Late.B: inputs.b, Late.C: inputs.c}[which]
    assert rows is not None
    count, n = rows.shape
    if lanes is Lanes.EXCHANGE:
        return rows[:, np.arange(n) ^ (inputs.exchange % n)]
    if lanes is Lanes.BROADCAST:
        return np.repeat(rows[np.arange(count), np.arange(count) % n][:, None], n, 1)
    return rows


def _iota(inputs: ChainInputs, shape: tuple[int, ...]) -> NDArray[np.int32]:
    base, row, lane = inputs.iota
    wide = base + row * np.arange(shape[0])[:, None] + lane * np.arange(shape[1])
    wrapped: NDArray[np.int32] = (wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    return wrapped
