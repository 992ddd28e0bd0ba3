"""Programs that gather rows of a table by a list in memory, of byte offsets or of row numbers, on chips with lists."""

from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.device.program import Program

PLACES = 2
"""Of rows in the scratchpad: one is loaded while the other is stored."""
WORD_BYTES = 4


def words_of(config: ChipConfig, scaled: bool) -> int:
    """Words of a list that the accumulators hold; numbers of rows are kept beside the offsets that they become."""
    return config.accumulator_rows // (2 if scaled else 1) * config.array


@lru_cache(maxsize=256)
def gather_program(config: ChipConfig, count: int, row_bytes: int, pitch: int) -> Program:
    """The program; its arguments are the addresses of the table, of the result and of the list, of ``count`` words.
    ``pitch``: 1 if they are bytes, otherwise the bytes from one row of the table to the next, modulo 2^32."""
    return _Gather(config, count, row_bytes, pitch).program


class _Gather:
    """Writes the program. A part of the list, whole accumulator rows but for the last part, is gathered at once: slice
    after slice of its rows, if N rows are more than a place holds."""

    def __init__(self, config: ChipConfig, count: int, row_bytes: int, pitch: int) -> None:
        self.config, self.row_bytes = config, row_bytes
        self.k = k = KernelBuilder(f"gather_{count}x{row_bytes}_{pitch}", config)
        self.table, self.out, self.list = k.arg("table", strided=True), k.arg("out"), k.arg("list")
        k.free(*k.grid, *k.block)
        n, room = config.array, config.scratchpad_rows // PLACES
        self.room = room
        self.chunks = min(-(-row_bytes // config.row_bytes), room // n, 0xFFFF // config.row_bytes)
        self.slice = min(row_bytes, self.chunks * config.row_bytes)
        self.rows = min(room // self.chunks // n * n, -(-count // n) * n)
        self.listed = k.semaphore("listed")
        self._load_list(count)
        self.list_row = k.reg("list_row", self._scale(count, pitch) if pitch != 1 else 0)
        k.sync(wait=self.listed)
        self.loaded, self.free = k.semaphore("loaded"), k.semaphore("free", PLACES)
        self.place = k.reg("place", 0)
        k.set(Unit.LOAD, local_stride=self.chunks)
        k.set(Unit.STORE, local_stride=self.chunks, mem_stride=row_bytes)
        parts, rest = divmod(count, self.rows)
        with k.loop(parts):
            self._part(self.rows)
            k.add(self.list_row, self.list_row, self.rows // n)
            k.add(self.out, self.out, self.rows * row_bytes)
        if rest:
            self._part(rest)
        k.end()
        self.program = k.build()

    def _load_list(self, count: int) -> None:
        """Whole accumulator rows, and a run for what is left: memory behind the list may belong to nobody."""
        k, bytes_of_row = self.k, self.config.accumulator_row_bytes
        rows, rest = divmod(count, self.config.array)
        k.set(Unit.LOAD, run_bytes=bytes_of_row, mem_stride=bytes_of_row)
        with k.scratch("row") as (row,):
            k.mov(row, 0)
            k.load(self.list, row, rows, space=Space.ACCUMULATOR, signal=() if rest else self.listed)
            if rest:
                k.set(Unit.LOAD, run_bytes=rest * WORD_BYTES)
                k.add(row, row, rows)
                k.add(self.list, self.list, rows * bytes_of_row)
                k.load(self.list, row, 1, space=Space.ACCUMULATOR, signal=self.listed)

    def _scale(self, count: int, pitch: int) -> int:
        """Numbers of rows times the pitch, by doubling and adding from its highest bit down. Returns the first row of
        the offsets."""
        k, rows = self.k, -(-count // self.config.array)
        offsets = self.config.accumulator_rows // 2
        numbers, product = k.reg("numbers", 0), k.reg("product", offsets)
        scaled = k.semaphore("scaled")
        adds: list[bool] = []  # what is added: the numbers, or what there is so far
        for bit in bin(pitch)[3:]:
            adds += [False, True] if bit == "1" else [False]
        source = numbers
        for place, numbers_again in enumerate(adds):
            k.set(Unit.VECTOR, b_row=0 if numbers_again or place == 0 else offsets)
            ends = scaled if place == len(adds) - 1 else ()
            k.vector(source, product, rows, b_op=BinaryOp.ADD, wait=() if place else self.listed, signal=ends)
            source = product
        self.listed = scaled
        k.free(numbers, product)
        return offsets

    def _part(self, rows: int) -> None:
        """Gathers so many rows by the list from ``list_row`` on."""
        k = self.k
        slices, rest = divmod(self.row_bytes, self.slice)
        k.set(Unit.LOAD, list_row=self.list_row)
        with k.scratch("source target") as (source, target):
            k.mov(source, self.table)
            k.mov(target, self.out)
            with k.loop(slices):
                self._slice(source, target, rows, self.slice)
                k.add(source, source, self.slice)
                k.add(target, target, self.slice)
            if rest:
                self._slice(source, target, rows, rest)

    def _slice(self, source: Register, target: Register, rows: int, size: int) -> None:
        k = self.k
        k.set(Unit.LOAD, run_bytes=size, chunks=-(-size // self.config.row_bytes))
        k.set(Unit.STORE, run_bytes=size)
        k.load(source, self.place, rows, by_list=True, wait=self.free, signal=self.loaded)
        k.store(target, self.place, rows, wait=self.loaded, signal=self.free)
        with k.scratch("other") as (other,):
            k.mov(other, self.room)
            k.sub(self.place, other, self.place)
