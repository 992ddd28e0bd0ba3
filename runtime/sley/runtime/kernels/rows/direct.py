"""Programs for operators whose last pass needs one number for each matrix row alone: it takes the rows as they lie."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import ZERO, Register
from sley.runtime.kernels.rows.groups import Groups, Part, parts_of
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, Rows

PLACES = 2
"""Of rows as they lie; the transposed ones have one, in two halves."""
ENDS = 4
"""Parts of the last group."""
FALLING = (3, 4, 5, 6, 7)
"""Chunks of the last units of a group, from the last one on: one is written while the next comes in."""

SPREAD = Chain(
    binary=BinaryOp.SECOND,
    binary_operand=Operand.B,
    other=Operand.LATE1,
    late1=Late.B,
    late1_lanes=Lanes.BROADCAST,
)
"""B, of which each row serves N rows because a late operand, which has no effect, is broadcast."""


def padded(config: ChipConfig, k: int) -> int:
    """Rows that k elements of a group take."""
    return -(-k // config.array) * config.array


def fits(config: ChipConfig, k: int, weight: bool) -> bool:
    """Whether a program has room for everything."""
    bank = config.scratchpad_rows // config.scratchpad_banks
    return (1 + PLACES + weight) * max(padded(config, k), bank) <= config.scratchpad_rows


class Direct(Groups):
    """Two passes. Scratchpad: the group transposed, for the first pass; N matrix rows as they lie, for the second one:
    chunk c of row i of the group in row c * N + i; the weight in the same order, each chunk N times."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n, size = self.k, self.n, shape.k
        self.step = max(padded(config, size), config.scratchpad_rows // config.scratchpad_banks)
        self.halves = parts_of(size, 2, n)
        self.ends = parts_of(size, ENDS, n)
        self.column_free, self.column_full = k.semaphore("column_free", len(self.halves)), k.semaphore("column_full")
        self.row_free, self.row_full = k.semaphore("row_free", PLACES), k.semaphore("row_full")
        self.done, self.ready = k.semaphore("done"), k.semaphore("ready")
        self.loading, self.computing = (k.reg(name, self.step) for name in ("loading", "computing"))
        self.weight = k.reg("weight_row", (1 + PLACES) * self.step) if self.arguments else None
        if self.weight is not None:
            self._load_weight(self.weight)
        always = {"mem_stride": shape.pitch, "local_stride": 1, "chunk_stride": n}
        always |= {"mem_stride2": 2 * SLAB_CHUNKS * n, "local_stride2": SLAB_CHUNKS * n}
        self.set_load(**always)
        self.known = always
        self.write_chains()
        k.set(Unit.VECTOR, c_stride=0)
        if self.weight is not None:
            self._spread(self.weight)  # while the first group is loaded, which fills the queue of LOAD
        self.round = k.reg("round", 0)
        self._load_next()
        with k.loop(self.groups):
            self._reduce()
            ends, done = k.label("ends"), k.label("done")
            with k.if_(self.round, "==", self.groups):
                k.jump(ends)
            self._scale([(0, size)], self.computing)
            k.jump(done)
            k.place(ends)
            self._scale(self.ends)
            k.place(done)
            self.next_result()
            self._load_next()
        k.end()
        self.program = k.build()

    def _load_weight(self, at: Register) -> None:
        """As it lies, where the first group comes to later."""
        k, chunks = self.k, padded(self.config, self.shape.k) // self.n
        with k.scratch("row") as (row,):
            k.mov(row, PLACES * self.step)
            k.set(Unit.LOAD, run_bytes=2 * self.shape.k, chunks=chunks)
            k.load(self.arguments[0], row, 1, signal=self.ready)

    def _spread(self, at: Register) -> None:
        k, rows = self.k, padded(self.config, self.shape.k)
        chain = k.chain(SPREAD)
        k.set(Unit.VECTOR, b_row=PLACES * self.step)
        self.vector(at, at, rows, chain, ElementType.BF16, wait=self.ready)
        self._use_weight(0)

    def _load_next(self) -> None:
        """The next group, if there is one. What is behind this in the program waits in the queue of LOAD."""
        k = self.k
        k.add(self.round, self.round, 1)
        with k.if_(self.round, "<", self.groups):
            self._load([(0, self.shape.k)])
        with k.if_(self.round, "==", self.groups):
            self._load(self.ends)

    def _load(self, parts: list[Part]) -> None:
        """The next group, transposed and as it is, the latter in parts."""
        k, n = self.k, self.n
        with k.scratch("rows at") as (rows, at):
            k.min(rows, self.left, n)
            for half in self.halves:
                pieces = self._pieces(half)
                for number, part in enumerate(pieces):
                    k.mov(at, part[0])
                    wait = () if number else self.column_free
                    signal = self.column_full if number == len(pieces) - 1 else ()
                    self.load_transposed(self.x, at, rows, part, wait, signal)
            self.set_load(count2=1)
            with k.scratch("address") as (address,):
                for number, (first, size) in enumerate(parts):
                    self.set_load(run_bytes=2 * size, chunks=-(-size // n))
                    k.add(address, self.x, 2 * first)
                    k.add(at, self.loading, first)
                    k.load(address, at, rows, wait=() if number else self.row_free, signal=self.row_full)
        self.next_rows()
        self._next_place(self.loading)

    def _pieces(self, half: Part) -> list[Part]:
        """Loads of a half. What follows the last one waits until its last unit is written, a row a cycle: the units
        fall as fast as they can without one waiting for another."""
        first, size = half
        if half != self.halves[-1]:
            return [half]
        pieces: list[Part] = []
        for chunks in FALLING:
            rows = size - self.n * max(0, -(-size // self.n) - chunks)
            pieces.insert(0, (first + size - rows, rows))
            size -= rows
            if size <= 0:
                return pieces
        return [(first, size), *pieces]

    def _reduce(self) -> None:
        """The first pass, and the number for each matrix row, to accumulator row 0."""
        with self.k.scratch("at") as (at,):
            for first, size in self.halves:
                self.k.mov(at, first)
                self.vector(
                    at, 0, size, self.chains[0], ElementType.FP32, wait=self.column_full, signal=self.column_free
                )
            self.fold(0)
            self.vector(at, 0, 1, self.after[0], ElementType.FP32)

    def _scale(self, parts: list[Part], target: Register | None = None) -> None:
        """The last pass and the results, in the parts that were loaded. Without a ``target`` they go where the
        transposed rows were: a part is stored from there while the next one is computed, in another bank."""
        k = self.k
        with k.scratch("at to") as (at, to):
            for first, size in parts:
                self._use_weight(first if len(parts) > 1 else None)
                k.add(at, self.computing, first)
                self._to(to, target, first)
                rows = padded(self.config, size)
                self.vector(at, to, rows, self.chains[1], ElementType.BF16, self.row_full, self.done)
            if len(parts) > 1:
                self._use_weight(0)
            for number, part in enumerate(parts):
                self._to(to, target, part[0])
                self._store(to, part, number == len(parts) - 1)
        self._next_place(self.computing)

    def _to(self, to: Register, target: Register | None, first: int) -> None:
        if target is None:
            self.k.mov(to, first)
        else:
            self.k.add(to, target, first)

    def _use_weight(self, first: int | None) -> None:
        if self.weight is not None and first is not None:
            self.k.set(Unit.VECTOR, b_row=(1 + PLACES) * self.step + first)

    def _store(self, at: Register, part: Part, last: bool) -> None:
        k, (first, size) = self.k, part
        with k.scratch("address rows") as (address, rows):
            k.min(rows, self.out_left, self.n)
            k.add(address, self.out, 2 * first)
            k.set(Unit.STORE, run_bytes=2 * size, mem_stride=self.shape.out_pitch, chunk_stride=self.n)
            k.store(address, at, rows, wait=self.done, signal=self.row_free if last else ())

    def _next_place(self, place: Register) -> None:
        """The one of the two places that it is not."""
        self.k.sub(place, ZERO, place)
        self.k.add(place, place, (1 + PLACES) * self.step)
