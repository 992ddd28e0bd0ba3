"""Programs of the rotary embedding: pairs of lanes are turned by angles that a table gives for each position."""

from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Semaphore
from sley.runtime.device.program import Program

SLOTS, TABLES = 4, 2
"""Places of rows of x, and of both tables."""
EXCHANGE = 1

COSINE = Chain(multiply=Operand.LATE0, late0=Late.B)
"""x * cos, to the accumulators."""
SINE = Chain(
    binary=BinaryOp.SECOND,
    binary_operand=Operand.B,
    multiply=Operand.LATE0,
    late0=Late.A,
    late0_lanes=Lanes.EXCHANGE,
    binary2=BinaryOp.ADD,
    binary2_operand=Operand.LATE1,
    late1=Late.C,
)
"""sin * the other one of the pair, plus that."""


@dataclass(frozen=True)
class Turns:
    """``heads`` parts of ``size`` bytes each, which all are turned by the same table of as many bytes."""

    heads: int
    size: int
    blocks: int = 1


@dataclass(frozen=True)
class _Places:
    """Rows of a tile; its places in the scratchpad are ``step`` rows apart: x, then cos and sin."""

    step: int

    @classmethod
    def of(cls, config: ChipConfig) -> "_Places":
        rows = config.scratchpad_rows // (SLOTS + 2 * TABLES)
        return cls(min(rows, config.accumulator_rows, ((1 << 16) - 1) // config.row_bytes))

    def table(self, place: int) -> int:
        """First row of cos."""
        return (SLOTS + 2 * place) * self.step


def tiles_of(config: ChipConfig, size: int) -> int:
    """Tiles of a part, which blocks share."""
    return -(-size // (_Places.of(config).step * config.row_bytes))


@lru_cache(maxsize=256)
def rotary_program(config: ChipConfig, turns: Turns) -> Program:
    """The program; its arguments are the addresses of x, the result, cos and sin."""
    place, row = _Places.of(config), config.row_bytes
    tile = place.step * row
    k = KernelBuilder(f"rotary_{turns.heads}x{turns.size}", config)
    x, out, cos, sin = (k.arg(name) for name in ("x", "out", "cos", "sin"))
    free, full, done = k.semaphore("free", SLOTS), k.semaphore("full"), k.semaphore("done")
    table_free, table_full = k.semaphore("table_free", TABLES), k.semaphore("table_full")
    chains = [k.chain(chain) for chain in (COSINE, SINE)]
    k.set(Unit.VECTOR, exchange=EXCHANGE)
    left = k.reg("left", turns.size)
    if turns.blocks > 1:
        with k.scratch("offset") as (offset,):
            k.mul(offset, k.block[0], tile)
            for register in (x, out, cos, sin):
                k.add(register, register, offset)
            k.sub(left, left, offset)
    slot, table = k.reg("slot", 0), k.reg("table", place.table(0))
    with k.while_(ZERO, "<", left), k.scratch("bytes rows sines") as (bytes, rows, sines):
        k.min(bytes, left, tile)
        k.add(rows, bytes, row - 1)
        k.shr(rows, rows, row.bit_length() - 1)
        k.add(sines, table, place.step)
        k.set(Unit.LOAD, run_bytes=bytes, chunks=rows)
        k.set(Unit.STORE, run_bytes=bytes)
        k.load(cos, table, 1, wait=table_free)
        k.load(sin, sines, 1, signal=table_full)
        k.vector(0, 0, 0, wait=table_full)
        with k.scratch("from to") as (source, target):
            k.mov(source, x)
            k.mov(target, out)
            with k.loop(turns.heads):
                k.load(source, slot, 1, wait=free, signal=full)
                k.set(Unit.VECTOR, b_row=table)
                _vector(k, slot, ZERO, rows, chains[0], wait=True, semaphore=full)
                k.set(Unit.VECTOR, b_row=sines)
                _vector(k, slot, slot, rows, chains[1], wait=False, semaphore=done)
                k.store(target, slot, 1, wait=done, signal=free)
                k.add(source, source, turns.size)
                k.add(target, target, turns.size)
                _next(k, slot, place.step, 0, SLOTS * place.step)
        k.vector(0, 0, 0, signal=table_free)
        _next(k, table, 2 * place.step, place.table(0), place.table(TABLES))
        for register in (x, out, cos, sin):
            k.add(register, register, turns.blocks * tile)
        k.sub(left, left, turns.blocks * tile)
    k.end()
    return k.build()


def _vector(
    k: KernelBuilder,
    source: Register,
    target: Register,
    rows: Register,
    chain: int,
    *,
    wait: bool,
    semaphore: Semaphore,
) -> None:
    k.vector(
        source,
        target,
        rows,
        a_space=Space.SCRATCHPAD,
        a_type=ElementType.BF16,
        b_space=Space.SCRATCHPAD,
        b_type=ElementType.BF16,
        dtype=ElementType.FP32,
        out=ElementType.FP32 if wait else ElementType.BF16,
        chain=chain,
        wait=semaphore if wait else (),
        signal=() if wait else semaphore,
    )


def _next(k: KernelBuilder, register: Register, step: int, first: int, end: int) -> None:
    """To the next of the places ``first``, ``first + step``, ... below ``end``."""
    k.add(register, register, step)
    with k.scratch("end") as (limit,):
        k.mov(limit, end)
        with k.if_(register, "==", limit):
            k.mov(register, first)
