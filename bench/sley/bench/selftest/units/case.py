"""A case of a unit: a program that works on known contents of both local memories and writes back all of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.runtime import Buffer, Device, KernelBuilder, Program
from sley.runtime.assembler.operands import Register

SPECIAL = (0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x7F7FFFFF)
"""fp32 at its edges: zeros, ones, infinities, NaN, subnormals, the largest. As int32 they are extremes, too."""
SCRATCHPAD, ACCUMULATOR = Space.SCRATCHPAD, Space.ACCUMULATOR


class Bed:
    """A kernel whose local memories hold known rows, and what a case needs to add instructions to it.

    Attributes
    ----------
    k: the kernel. rows: of each memory that are known, and written back. half: rows from here on are results.
    source, target: registers with the addresses of what the rows were read from, and of the core's own result.
    done: a semaphore for the last instruction of a step, see ``step``.
    """

    def __init__(self, name: str, config: ChipConfig) -> None:
        self.config = config
        self.rows = known_rows(config)
        self.half = {space: rows // 2 for space, rows in self.rows.items()}
        self.k = k = KernelBuilder(name, config)
        self.source, self.target = k.arg("source"), k.arg("target")
        self.done = k.semaphore("done")
        self._count = k.reg("count")
        self._move_target()
        self._place = k.reg("place", self.source)
        for space, rows in self.rows.items():
            size = row_bytes(config, space)
            k.set(Unit.LOAD, run_bytes=size, mem_stride=size)
            k.mov(self._count, rows)
            self.step(k.load, self._place, 0, self._count, space=space)
            k.add(self._place, self._place, rows * size)

    def _move_target(self) -> None:
        """Each core of a gang writes to a place of its own."""
        k = self.k
        with k.scratch("core") as (core,):
            k.mul(core, k.block[1], k.grid[0])
            k.add(core, core, k.block[0])
            k.mul(core, core, out_bytes(self.config))
            k.add(self.target, self.target, core)

    def step(self, instruction: Callable[..., None], *operands: object, **flags: object) -> None:
        """An instruction of a unit, and nothing until it is done."""
        instruction(*operands, **flags, signal=self.done)
        self.k.sync(wait=self.done)

    def row(self, name: str, number: int) -> Register:
        """A register with the number of a row."""
        return self.k.reg(name, number)

    def finish(self) -> Program:
        """Writes all rows back and ends the program."""
        k = self.k
        for space, rows in self.rows.items():
            size = row_bytes(self.config, space)
            k.set(Unit.STORE, run_bytes=size, mem_stride=size, local_stride=1, count2=1)
            k.set(Unit.STORE, chunk_stride=1, mem_stride2=0, local_stride2=0)
            k.mov(self._count, rows)
            self.step(k.store, self.target, 0, self._count, space=space)
            k.add(self.target, self.target, rows * size)
        k.end()
        return k.build()


@dataclass(frozen=True)
class Case:
    """One operation of a unit; ``body`` adds it to a bed. ``gang``: cores must run it together."""

    unit: str
    name: str
    body: Callable[[Bed], None]
    gang: bool = False


def known_rows(config: ChipConfig) -> dict[Space, int]:
    """Rows of each memory that a case uses."""
    rows = max(config.array + 16, 32)
    return {
        SCRATCHPAD: min(rows, config.scratchpad_rows),
        ACCUMULATOR: min(rows, config.accumulator_rows),
    }


def row_bytes(config: ChipConfig, space: Space) -> int:
    return config.row_bytes if space is SCRATCHPAD else config.accumulator_row_bytes


def out_bytes(config: ChipConfig) -> int:
    """What one core writes."""
    return sum(rows * row_bytes(config, space) for space, rows in known_rows(config).items())


def contents(config: ChipConfig) -> NDArray[np.uint8]:
    """What the rows hold first: random bytes, and in the accumulators small numbers of both types, and extremes."""
    values = np.random.default_rng(7)
    rows = known_rows(config)
    scratchpad = values.integers(0, 256, rows[SCRATCHPAD] * config.row_bytes, np.uint8)
    words = rows[ACCUMULATOR] * config.array
    kinds = [
        values.integers(0, 1 << 32, words, np.uint32),
        values.integers(-50, 50, words, np.int32).view(np.uint32),
        (values.integers(-64, 64, words) / 8).astype(np.float32).view(np.uint32),
        values.choice(np.array(SPECIAL, np.uint32), words),
    ]
    accumulators = np.choose(values.integers(0, len(kinds), words), kinds).astype(np.uint32)
    accumulators[-config.array :] = list_offsets(config)
    return np.concatenate([scratchpad, accumulators.view(np.uint8)])


def list_offsets(config: ChipConfig) -> NDArray[np.uint32]:
    """The last known row of the accumulators: a list of byte offsets for N runs, none of which meets another."""
    order = 3 * np.arange(config.array) % config.array
    return (order * (config.accumulator_row_bytes + 3)).astype(np.uint32)


def run(device: Device, case: Case, source: Buffer) -> NDArray[np.uint8]:
    """What the case leaves in the rows of every core, [cores, bytes]."""
    config = device.config
    bed = Bed(case.name.replace(" ", "_"), config)
    case.body(bed)
    program = bed.finish()
    out = device.full((config.cores, out_bytes(config)), 0xA5, np.uint8)
    gang = config.cores > 1
    device.stream.launch(program, [source, out], (config.cores_x, config.cores_y), gang)
    return out.numpy()


def place(config: ChipConfig, byte: int) -> str:
    """Where a byte of a core's result is: memory, row, byte."""
    rows = known_rows(config)
    for space in rows:
        size = row_bytes(config, space)
        if byte < rows[space] * size:
            what = "scratchpad" if space is SCRATCHPAD else "accumulator"
            return f"{what} row {byte // size}, byte {byte % size}"
        byte -= rows[space] * size
    raise ValueError(f"byte {byte} is behind the last row")
