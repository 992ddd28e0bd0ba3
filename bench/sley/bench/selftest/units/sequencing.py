"""Cases of the sequencer: every scalar instruction, branches, loops; and the semaphores between units."""

from collections.abc import Callable, Iterator
from functools import partial

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import LOOP_DEPTH, SEMAPHORE_MAX, SEMAPHORES, Op, VectorRow
from sley.abi.types import ElementType
from sley.bench.selftest.units.case import ACCUMULATOR, Bed, Case
from sley.runtime.assembler.operands import Register

PAIRS = ((13, 5), (-7, 3), (0x7FFFFFFF, 2), (-(1 << 31), 1), (0x12345678, -0x6789ABCE), (5, 5), (-1, 37))
ARITHMETIC = ("add", "sub", "mul", "min", "max", "and_", "or_", "shl", "shr", "sar")
BRANCHES = (Op.BEQ, Op.BNE, Op.BLT, Op.BGE)


def sequencer_cases(config: ChipConfig) -> Iterator[Case]:
    """What registers hold becomes rows of the accumulators."""
    for name in ARITHMETIC:
        yield Case("scalar", name.rstrip("_"), partial(_arithmetic, name=name))
    for op in BRANCHES:
        yield Case("scalar", op.name.lower(), partial(_branch, op=op))
    yield Case("scalar", "nested loops", _loops)
    yield Case("scalar", "registers of the block", _block)
    for first in range(1, SEMAPHORES, 5):
        name = f"{first} to {first + 4} count to {SEMAPHORE_MAX}"
        yield Case("semaphores", name, partial(_count, first=first))
    yield Case("semaphores", "from unit to unit", _chain)


def show(bed: Bed, register: Register, row: int) -> None:
    """A register, added to row 0 in all lanes, as a row behind the middle of the accumulators."""
    k = bed.k
    k.vrow(VectorRow.BIAS, register, splat=True)
    with k.scratch("zero to") as (zero, target):
        k.mov(zero, 0)
        k.mov(target, bed.half[ACCUMULATOR] + row % bed.half[ACCUMULATOR])
        bed.step(k.vector, zero, target, 1, dtype=ElementType.INT32, bias=True)


def _arithmetic(bed: Bed, name: str) -> None:
    """With a register and with an immediate as the second operand."""
    k = bed.k
    function: Callable[..., None] = getattr(k, name)
    for number, (x, y) in enumerate(PAIRS):
        with k.scratch("x y result") as (a, b, result):
            k.mov(a, x)
            k.mov(b, y)
            function(result, a, b)
            function(b, a, y)
            k.mul(b, b, 3)
            k.add(result, result, b)
            show(bed, result, number)


def _branch(bed: Bed, op: Op) -> None:
    k = bed.k
    for number, (x, y) in enumerate(((1, 2), (2, 1), (-1, 1), (1, -1), (4, 4))):
        with k.scratch("x y result") as (a, b, result):
            k.mov(a, x)
            k.mov(b, y)
            k.mov(result, 7)
            there = k.label(f"there{number}")
            k.branch(op, a, b, there)
            k.mov(result, 1000)
            k.place(there)
            show(bed, result, number)


def _loops(bed: Bed) -> None:
    k = bed.k
    with k.scratch("result") as (result,):
        k.mov(result, 1)

        def nest(depth: int) -> None:
            with k.loop(depth + 1):
                if depth < LOOP_DEPTH:
                    nest(depth + 1)
                k.mul(result, result, 3)
                k.add(result, result, depth)

        nest(1)
        show(bed, result, 0)


def _block(bed: Bed) -> None:
    for number, register in enumerate((*bed.k.block, *bed.k.grid)):
        show(bed, register, number)


def _count(bed: Bed, first: int) -> None:
    """Five semaphores, each signalled and waited for as often as it counts; END finds all at zero. The first of the
    core is in every step."""
    k = bed.k
    others = [k.semaphore(f"semaphore {number}") for number in range(1, SEMAPHORES)]
    with k.scratch("result") as (result,):
        k.mov(result, 0)
        for number, semaphore in enumerate(others[first - 1 : first + 4], first):
            with k.loop(SEMAPHORE_MAX):
                k.sync(signal=semaphore)
            with k.loop(SEMAPHORE_MAX):
                k.sync(wait=semaphore)
                k.add(result, result, number)
        show(bed, result, 0)


def _chain(bed: Bed) -> None:
    """Load, matrix, vector and store wait for each other; nothing waits in the sequencer."""
    k, config = bed.k, bed.config
    n, half = config.array, bed.half[ACCUMULATOR]
    loaded, multiplied, added = (k.semaphore(name) for name in ("loaded", "multiplied", "added"))
    first, middle = k.reg("first", 0), k.reg("middle", half)
    with k.scratch("from") as (place,):
        k.mov(place, bed.source)
        k.set(Unit.LOAD, run_bytes=config.row_bytes, chunks=1, mem_stride=config.row_bytes, local_stride=1)
        k.add(place, place, config.row_bytes)
        k.load(place, first, n, signal=loaded)
        k.weights(first, n, wait=loaded)
        k.matmul(first, middle, min(n, half), signal=multiplied)
        k.vector(middle, middle, min(n, half), wait=multiplied, relu=True, signal=added)
        k.set(Unit.STORE, run_bytes=config.accumulator_row_bytes, mem_stride=config.accumulator_row_bytes)
        k.mov(place, bed.target)
        k.store(place, middle, 1, space=ACCUMULATOR, wait=added, signal=bed.done)
    k.sync(wait=bed.done)
