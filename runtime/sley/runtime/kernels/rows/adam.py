"""Programs of an Adam step: parameters and both moments are fp32 in the accumulators, gradients bf16."""

from dataclasses import replace
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.functions.table import Function
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.device.program import Program

SLOTS = 2
STATE = ("parameter", "mean", "square")
FACTORS = ("mean_factor", "square_factor", "decay", "correction", "eps", "rate")
"""1 - beta1, 1 - beta2, beta2, 1 / sqrt(1 - beta2^t), eps, -rate / (1 - beta1^t)."""

_ADD_B = Chain(binary2=BinaryOp.ADD, binary2_operand=Operand.LATE0, late0=Late.B)
MEAN = replace(_ADD_B, binary=BinaryOp.SUB, binary_operand=Operand.B, multiply=Operand.SPLAT0)
"""A the gradient, B the mean: mean + (gradient - mean) * (1 - beta1)."""
SQUARES = Chain(multiply=Operand.X, multiply2=Operand.SPLAT1)
"""gradient^2 * (1 - beta2)."""
SQUARE = replace(_ADD_B, multiply=Operand.SPLAT2)
"""square * beta2 + that."""
ROOT = Chain(function=Function.SQRT, multiply2=Operand.SPLAT3, binary2=BinaryOp.ADD, binary2_operand=Operand.ROW0)
QUOTIENT = Chain(function=Function.RECIPROCAL, multiply2=Operand.LATE0, late0=Late.B)
"""mean / root."""
STEP = replace(_ADD_B, multiply=Operand.ROW1)
"""parameter - rate * quotient."""
CHAINS = (MEAN, SQUARES, SQUARE, ROOT, QUOTIENT, STEP)


@lru_cache(maxsize=256)
def adam_program(config: ChipConfig, size: int, blocks: int) -> Program:
    """The program for ``size`` elements; its arguments are the addresses of parameter, mean, square and gradient, then
    the factors."""
    n, places = config.array, len(STATE) + 1
    tile = min(config.accumulator_rows // (SLOTS * places), config.scratchpad_rows // SLOTS, 128)
    k = KernelBuilder(f"adam_{size}", config)
    arrays = [k.arg(name) for name in (*STATE, "gradient")]
    factors = {name: k.arg(name) for name in FACTORS}
    free, full, done = k.semaphore("free", SLOTS), k.semaphore("full"), k.semaphore("done")
    indices = [k.chain(chain) for chain in CHAINS]
    for number, name in enumerate(FACTORS[:4]):
        k.set(Unit.VECTOR, **{f"splat{number}": factors[name]})
    k.vrow(VectorRow.BIAS, factors["eps"], splat=True)
    k.vrow(VectorRow.SCALE, factors["rate"], splat=True)
    k.free(*factors.values(), *k.grid, *k.block[1:])
    left = _share(k, arrays, size, n, blocks)
    slot = k.reg("slot", 0)
    with k.while_(ZERO, "<", left), k.scratch("count rows bytes row") as (count, rows, size_bytes, row):
        k.min(count, left, tile * n)
        k.add(rows, count, n - 1)
        k.shr(rows, rows, n.bit_length() - 1)
        k.shl(size_bytes, count, 1)
        k.set(Unit.LOAD, run_bytes=size_bytes, chunks=rows)
        k.mul(row, slot, tile)
        k.load(arrays[-1], row, 1, wait=free)
        k.add(arrays[-1], arrays[-1], size_bytes)
        k.shl(size_bytes, count, 2)
        k.set(Unit.LOAD, run_bytes=size_bytes)
        k.set(Unit.STORE, run_bytes=size_bytes)
        k.mul(row, slot, places * tile)
        for number, array in enumerate(arrays[:-1]):
            last = number == len(STATE) - 1
            k.load(array, row, 1, space=Space.ACCUMULATOR, signal=full if last else ())
            k.add(row, row, tile)
        k.vector(0, 0, 0, wait=full)
        _compute(k, indices, slot, rows, tile, places)
        k.vector(0, 0, 0, signal=done)
        k.mul(row, slot, places * tile)
        for number, array in enumerate(arrays[:-1]):
            first, last = number == 0, number == len(STATE) - 1
            wait, signal = done if first else (), free if last else ()
            k.store(array, row, 1, space=Space.ACCUMULATOR, wait=wait, signal=signal)
            k.add(row, row, tile)
            k.add(array, array, size_bytes)
        k.sub(left, left, count)
        k.sub(slot, ZERO, slot)
        k.add(slot, slot, SLOTS - 1)
    k.end()
    return k.build()


def _compute(k: KernelBuilder, chains: list[int], slot: Register, rows: Register, tile: int, places: int) -> None:
    """All chains on a tile: parameter, mean, square and a place for what is between are one behind the other."""
    scratch = Space.SCRATCHPAD
    with k.scratch("gradient parameter mean square between") as (gradient, parameter, mean, square, between):
        k.mul(gradient, slot, tile)
        k.mul(parameter, slot, places * tile)
        for register, before in ((mean, parameter), (square, mean), (between, square)):
            k.add(register, before, tile)

        def work(index: int, a: Register, b: Value | None, out: Register, space: Space = Space.ACCUMULATOR) -> None:
            if b is not None:
                k.set(Unit.VECTOR, b_row=b)
            kind = ElementType.BF16 if space == scratch else ElementType.INT8
            k.vector(a, out, rows, a_space=space, a_type=kind, dtype=ElementType.FP32, chain=chains[index])

        work(0, gradient, mean, mean, scratch)
        work(1, gradient, None, between, scratch)
        work(2, square, between, square)
        work(3, square, None, between)
        work(4, between, mean, between)
        work(5, between, parameter, parameter)


def _share(k: KernelBuilder, arrays: list[Register], size: int, n: int, blocks: int) -> Register:
    """To the block's part; how many elements it has."""
    share = -(-size // (n * blocks)) * n
    left = k.reg("left", min(share, size))
    if blocks > 1:
        with k.scratch("first offset") as (first, offset):
            k.mul(first, k.block[0], share)
            for number, array in enumerate(arrays):
                k.mul(offset, first, 2 if number == len(STATE) else 4)
                k.add(array, array, offset)
            k.sub(first, ZERO, first)
            k.add(first, first, size)
            k.min(left, left, first)
    return left
