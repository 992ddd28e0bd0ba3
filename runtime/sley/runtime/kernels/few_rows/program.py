"""The program of a product of a few rows of int8 with packed weights.

Memory sets its pace: every weight is used once for each row. Rows stay in the scratchpad; the weights of N outputs, a
block, pass through slots, one run from memory each; N sums of each row, scaled, are a row of the result. Units overlap
by blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import SEMAPHORE_MAX, Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Semaphore
from sley.runtime.device.program import Program
from sley.runtime.errors import KernelError

HIGH = 128.0
"""What a unit of the high part of a row is worth, in units of the low part."""
_SUM_SLOTS = 4
_FP32 = ElementType.FP32
_INT32 = ElementType.INT32
_SPREAD = Chain(
    binary=BinaryOp.SECOND,
    binary2=BinaryOp.ADD,
    binary2_operand=Operand.LATE0,
    late0=Late.B,
    late0_lanes=Lanes.BROADCAST,
)
"""Lane r of B in all lanes of row r."""
_HIGH = Chain(multiply=Operand.SPLAT0)
_JOINED = Chain(binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
_SCALED = Chain(multiply=Operand.LATE0, multiply2=Operand.ROW1, late0=Late.B)


@dataclass(frozen=True)
class FewRows:
    """A problem: rows of the result, parts of int8 of each, outputs in blocks of N, inputs.

    A row of several parts is (128 · high + low); the rows of the low parts lie behind all those of the high ones.
    """

    rows: int
    parts: int
    blocks: int
    inputs: int

    def tiles(self, config: ChipConfig) -> int:
        """Scratchpad rows of activations."""
        return -(-self.inputs // config.fold_depth())


@lru_cache(maxsize=256)
def few_rows_program(config: ChipConfig, problem: FewRows) -> Program:
    """The program; its arguments are the addresses of x [parts · rows, inputs] int8, the scales of its rows [rows],
    the packed weights, the scales of outputs, and the result [rows, outputs], all fp32, the last two in whole blocks.

    Raises ``KernelError`` if it has no room.
    """
    return _FewRows(config, problem).program


class _FewRows:
    """Writes the program."""

    def __init__(self, config: ChipConfig, problem: FewRows) -> None:
        self.config, self.problem, self.n = config, problem, config.array
        self.tiles = problem.tiles(config)
        name = f"few_rows_{problem.rows}x{problem.parts}_{problem.blocks}x{problem.inputs}"
        self.k = k = KernelBuilder(name, config)
        self.x, self.scales = k.arg("x"), k.arg("scales")
        self.weights, self.factors, self.out = k.arg("weights"), k.arg("factors"), k.arg("out")
        k.free(*k.block, *k.grid)
        self._place()
        self.free, self.full = k.semaphore("free", self.slots), k.semaphore("full")
        self.factor_free, self.factor_full = k.semaphore("factor_free", self.factor_slots), k.semaphore("factor_full")
        self.sum_free, self.summed = k.semaphore("sum_free", _SUM_SLOTS), k.semaphore("summed")
        self.done = k.semaphore("done")
        self._load_rows()
        self._walk()
        k.end()
        self.program = k.build()

    def _place(self) -> None:
        """The scratchpad: rows of x in the first bank or banks, then slots of a block. Accumulators: scales of rows,
        spread over the lanes; sums; factors of blocks, from another bank on."""
        config, p = self.config, self.problem
        self.m = p.parts * p.rows
        bank = config.scratchpad_rows // config.scratchpad_banks
        self.block_rows = self.tiles * self.n
        self.first_slot = -(-self.tiles * self.m // bank) * bank
        self.slots = min((config.scratchpad_rows - self.first_slot) // self.block_rows, p.blocks, SEMAPHORE_MAX)
        self.scale_rows = -(-p.rows // self.n)
        self.spread = self.scale_rows
        self.sums = self.spread + p.rows
        self.factor_rows = config.accumulator_rows // 2
        self.factor_slots = min(self.slots + _SUM_SLOTS, SEMAPHORE_MAX)
        if self.slots < 1 or self.sums + _SUM_SLOTS * self.m > self.factor_rows:
            raise KernelError(
                f"a product of {self.m} rows with {p.inputs} inputs has no room on the chip "
                f"{config.name}: take fewer rows at a time"
            )

    def _load_rows(self) -> None:
        """x: chunk c of row r at c · rows + r. Scales of rows: one in all lanes of a row each."""
        k, p, config = self.k, self.problem, self.config
        self.x_full, ready = k.semaphore("x_full"), k.semaphore("scales")
        with k.scratch("row") as (row,):
            k.set(Unit.LOAD, run_bytes=4 * p.rows, chunks=self.scale_rows)
            k.mov(row, 0)
            k.load(self.scales, row, 1, space=Space.ACCUMULATOR, signal=ready)
            k.set(Unit.LOAD, run_bytes=p.inputs, mem_stride=p.inputs, chunks=self.tiles, chunk_stride=self.m)
            k.set(Unit.LOAD, local_stride=1)
            k.load(self.x, row, self.m, signal=self.x_full)
            spread, self.high, self.joined, self.scaled = (k.chain(c) for c in (_SPREAD, _HIGH, _JOINED, _SCALED))
            k.set(Unit.VECTOR, b_row=0, b_stride=1, a_stride=0, out_stride=1, splat0=_bits(HIGH))
            with k.scratch("to") as (to,):
                k.mov(to, self.spread)
                k.vector(row, to, p.rows, dtype=_INT32, out=_INT32, chain=spread, wait=ready)
        k.set(Unit.VECTOR, a_stride=1)
        k.set(Unit.LOAD, run_bytes=self.block_rows * config.row_bytes, chunks=self.block_rows, chunk_stride=1)
        k.set(Unit.STORE, run_bytes=4 * self.n, mem_stride=4 * self.n * p.blocks, local_stride=1)
        k.matmul(0, 0, 0, wait=self.x_full)

    def _walk(self) -> None:
        """Loads run as many blocks ahead as there are slots."""
        k, p = self.k, self.problem
        self.load_slot, self.read_slot = k.reg("load_slot", self.first_slot), k.reg("read_slot", self.first_slot)
        self.load_factor = k.reg("load_factor", self.factor_rows)
        self.read_factor = k.reg("read_factor", self.factor_rows)
        self.sum_slot, self.done_slot = k.reg("sum_slot", self.sums), k.reg("done_slot", self.sums)
        self.n_register, self.m_register = k.reg("n", self.n), k.reg("m", self.m)
        with k.loop(self.slots):
            self._load()
        with k.loop(p.blocks - self.slots):
            self._load()
            self._block()
        with k.loop(self.slots):
            self._block()

    def _load(self) -> None:
        """The next block, and its factors."""
        k, config = self.k, self.config
        block_bytes = self.block_rows * config.row_bytes
        k.load(self.weights, self.load_slot, 1, wait=self.free, signal=self.full)
        k.add(self.weights, self.weights, block_bytes)
        self._next(self.load_slot, self.first_slot, self.block_rows, self.slots)
        k.set(Unit.LOAD, run_bytes=config.accumulator_row_bytes, chunks=1)
        k.load(
            self.factors, self.load_factor, 1, space=Space.ACCUMULATOR, wait=self.factor_free, signal=self.factor_full
        )
        k.add(self.factors, self.factors, config.accumulator_row_bytes)
        self._next(self.load_factor, self.factor_rows, 1, self.factor_slots)
        k.set(Unit.LOAD, run_bytes=block_bytes, chunks=self.block_rows)

    def _block(self) -> None:
        """Sums of a block, their scales, and the way to memory."""
        k, tiles, m = self.k, self.tiles, self.m
        with k.scratch("row chunk") as (row, chunk):
            k.mov(row, self.read_slot)
            k.mov(chunk, 0)
            for tile in sorted({0, tiles - 1}):
                if tile and tiles > 2:
                    with k.loop(tiles - 2):
                        k.weights(row, self.n, step=self.n_register)
                        k.matmul(chunk, self.sum_slot, m, accumulate=True, step=self.m_register)
                ends = tile == tiles - 1
                k.weights(
                    row, self.n, step=self.n_register, wait=() if tile else self.full, signal=self.free if ends else ()
                )
                k.matmul(
                    chunk,
                    self.sum_slot,
                    m,
                    accumulate=tile > 0,
                    step=self.m_register,
                    wait=() if tile else self.sum_free,
                    signal=self.summed if ends else (),
                )
        self._next(self.read_slot, self.first_slot, self.block_rows, self.slots)
        self._next(self.sum_slot, self.sums, m, _SUM_SLOTS)
        self._scale()

    def _scale(self) -> None:
        k, p = self.k, self.problem
        k.vrow(VectorRow.SCALE, self.read_factor, wait=self.factor_full, signal=self.factor_free)
        self._next(self.read_factor, self.factor_rows, 1, self.factor_slots)
        wait: tuple[Semaphore, ...] = (self.summed,)
        source = self.done_slot
        with k.scratch("low") as (low,):
            if p.parts == 2:
                k.vector(source, source, p.rows, dtype=_INT32, out=_FP32, chain=self.high, wait=wait)
                k.add(low, source, p.rows)
                k.set(Unit.VECTOR, b_row=source)
                k.vector(low, source, p.rows, dtype=_INT32, out=_FP32, chain=self.joined)
                wait = ()
            k.set(Unit.VECTOR, b_row=self.spread)
            dtype = _INT32 if p.parts == 1 else _FP32
            k.vector(source, source, p.rows, dtype=dtype, out=_FP32, chain=self.scaled, wait=wait, signal=self.done)
        k.store(self.out, source, p.rows, space=Space.ACCUMULATOR, wait=self.done, signal=self.sum_free)
        k.add(self.out, self.out, 4 * self.n)
        self._next(self.done_slot, self.sums, self.m, _SUM_SLOTS)

    def _next(self, place: Register, first: int, step: int, count: int) -> None:
        """The slot behind ``place``, of so many."""
        k = self.k
        k.add(place, place, step)
        with k.scratch("end") as (end,):
            k.mov(end, first + count * step)
            with k.if_(place, "==", end):
                k.mov(place, first)


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))
