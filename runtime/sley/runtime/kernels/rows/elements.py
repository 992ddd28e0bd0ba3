"""Programs of operators on single elements: tiles of rows as they lie, loaded, computed in place, and stored."""

from dataclasses import dataclass
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Semaphore
from sley.runtime.device.program import Program
from sley.runtime.kernels.rows.activations import Activation

SLOTS = 4
MOST_BYTES = (1 << 16) - 1
"""Of a run."""


@dataclass(frozen=True)
class Tiles:
    """Bytes of the tiles of a block: the first, how much each is larger than the one before, and the largest. Towards
    the end a tile is at most the ``1 / 2^fall`` part of what is left, but not below the first: what is loaded before
    the first row is computed, and stored behind the last one, is little."""

    first: int
    growth: int
    most: int
    fall: int = 2

    @classmethod
    def of(cls, config: ChipConfig) -> "Tiles":
        """For a chip."""
        row = config.row_bytes
        most = min(config.scratchpad_rows // SLOTS, config.accumulator_rows, MOST_BYTES // row, 448)
        return cls(min(most, 128) * row, 32 * row, most * row)


@lru_cache(maxsize=256)
def element_program(config: ChipConfig, activation: Activation, size: int, blocks: int = 1) -> Program:
    """The program for ``size`` bytes; its arguments are the addresses of x and the result."""
    tiles, row = Tiles.of(config), config.row_bytes
    k = KernelBuilder(f"{activation.name}_{size}", config)
    x, out = k.arg("x"), k.arg("out")
    free, full, done = k.semaphore("free", SLOTS), k.semaphore("full"), k.semaphore("done")
    chains = [k.chain(chain) for chain in activation.chains]
    for number, splat in enumerate(activation.splats):
        k.set(Unit.VECTOR, **{f"splat{number}": splat - (splat >> 31 << 32)})
    left = _share(k, x, out, size, row, blocks)
    tile, slot, step = k.reg("tile", tiles.first), k.reg("slot", 0), config.scratchpad_rows // SLOTS
    with k.while_(ZERO, "<", left), k.scratch("bytes rows") as (bytes, rows):
        k.shr(bytes, left, tiles.fall)
        k.and_(bytes, bytes, -row)
        k.max(bytes, bytes, tiles.first)
        k.min(bytes, bytes, tile)
        k.min(bytes, bytes, left)
        k.add(rows, bytes, row - 1)
        k.shr(rows, rows, row.bit_length() - 1)
        k.set(Unit.LOAD, run_bytes=bytes, chunks=rows)
        k.load(x, slot, 1, wait=free, signal=full)
        _compute(k, chains, slot, rows, full, done)
        k.set(Unit.STORE, run_bytes=bytes)
        k.store(out, slot, 1, wait=done, signal=free)
        for register in (x, out):
            k.add(register, register, bytes)
        k.sub(left, left, bytes)
        k.add(slot, slot, step)
        k.and_(slot, slot, config.scratchpad_rows - 1)
        k.add(tile, tile, tiles.growth)
        k.min(tile, tile, tiles.most)
    k.end()
    return k.build()


def _compute(
    k: KernelBuilder, chains: list[int], slot: Register, rows: Register, full: Semaphore, done: Semaphore
) -> None:
    for number, chain in enumerate(chains):
        first, last = number == 0, number == len(chains) - 1
        k.vector(
            slot,
            slot if last else 0,
            rows,
            a_space=Space.SCRATCHPAD,
            a_type=ElementType.BF16,
            b_space=Space.ACCUMULATOR,
            dtype=ElementType.FP32,
            out=ElementType.BF16 if last else ElementType.FP32,
            chain=chain,
            wait=full if first else (),
            signal=done if last else (),
        )


def _share(k: KernelBuilder, x: Register, out: Register, size: int, row: int, blocks: int) -> Register:
    """To the block's part, of whole rows; how many bytes it has."""
    share = -(-size // (row * blocks)) * row
    left = k.reg("left", share)
    if blocks > 1:
        with k.scratch("offset") as (offset,):
            k.mul(offset, k.block[0], share)
            k.add(x, x, offset)
            k.add(out, out, offset)
            k.sub(offset, ZERO, offset)
            k.add(offset, offset, size)
            k.min(left, left, offset)
    else:
        k.mov(left, size)
    return left
