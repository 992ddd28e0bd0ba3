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
"""Parts of the first and the last group."""

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
        self.whole, self.ends = [(0, size)], parts_of(size, ENDS, n)
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
        self._load(self.ends)
        self.write_chains()
        k.set(Unit.VECTOR, c_stride=0)
        if self.weight is not None:
            self._spread(self.weight)
        round_ = k.reg("round", 1)
        with k.loop(self.groups):
            self._reduce()
            with k.if_(round_, "<", self.groups):
                self._load(self.whole)
            first, last, done = k.label("first"), k.label("last"), k.label("done")
            with k.scratch("one") as (one,):
                k.mov(one, 1)
                with k.if_(round_, "==", one):
                    k.jump(first)
            with k.if_(round_, "==", self.groups):
                k.jump(last)
            self._scale(self.whole, self.whole)
            k.jump(done)
            k.place(first)
            self._scale(self.ends, self.ends)
            k.jump(done)
            k.place(last)
            self._scale(self.ends, self.whole)
            k.place(done)
            self.next_result()
            k.add(round_, round_, 1)
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
        """Loads of a half. What follows the last one waits until its last unit is written, so that is one chunk."""
        first, size = half
        if half != self.halves[-1] or size <= self.n:
            return [half]
        rest = size - self.n * ((size - 1) // self.n)
        return [(first, size - rest), (first + size - rest, rest)]

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

    def _scale(self, parts: list[Part], loaded: list[Part]) -> None:
        """The last pass and the results, in parts; so many were loaded."""
        k = self.k
        with k.scratch("at") as (at,):
            for number, (first, size) in enumerate(parts):
                self._use_weight(first if len(parts) > 1 else None)
                k.add(at, self.computing, first)
                wait = self.row_full if number < len(loaded) else ()
                rows = padded(self.config, size)
                self.vector(at, at, rows, self.chains[1], ElementType.BF16, wait, self.done)
            if len(parts) > 1:
                self._use_weight(0)
            for number, part in enumerate(parts):
                self._store(at, part, number == len(parts) - 1)
        self._next_place(self.computing)

    def _use_weight(self, first: int | None) -> None:
        if self.weight is not None and first is not None:
            self.k.set(Unit.VECTOR, b_row=(1 + PLACES) * self.step + first)

    def _store(self, at: Register, part: Part, last: bool) -> None:
        k, (first, size) = self.k, part
        with k.scratch("address rows") as (address, rows):
            k.min(rows, self.out_left, self.n)
            k.add(address, self.out, 2 * first)
            k.add(at, self.computing, first)
            k.set(Unit.STORE, run_bytes=2 * size, mem_stride=self.shape.out_pitch, chunk_stride=self.n)
            k.store(address, at, rows, wait=self.done, signal=self.row_free if last else ())

    def _next_place(self, place: Register) -> None:
        """The one of the two places that it is not."""
        self.k.sub(place, ZERO, place)
        self.k.add(place, place, (1 + PLACES) * self.step)
