"""What programs that reduce along K are made of: rows transposed on their way in, and back through memory."""

from collections.abc import Sequence

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import ZERO, Register, Semaphore, Semaphores, Value
from sley.runtime.kernels.rows.groups import Groups, Part
from sley.runtime.kernels.rows.passes import RowOperator, fp32
from sley.runtime.kernels.rows.shape import SLOTS, SUMS, Placement, Rows


class Columns(Groups):
    """The base of such programs: scratchpad row k of a slot holds element k of each matrix row of a
    group, one in each lane.

    Semaphores, in the order of a piece's life: ``free`` (slots), ``full`` (loaded), ``done`` (computed), ``away``
    (transposed, in memory), ``back`` (in rows, in the slot).
    """

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        self.place = Placement.of(config, shape.k, operator.weight + operator.bias)
        self.temporary_bytes = self.place.piece * config.row_bytes
        super().__init__(config, operator, shape)
        k = self.k
        self.free, self.full = k.semaphore("free", SLOTS), k.semaphore("full")
        self.done, self.away, self.back = (k.semaphore(name) for name in ("done", "away", "back"))
        self.sums = operator.passes[0].sums
        self.sums_free, self.summed = k.semaphore("sums_free", SUMS * self.sums), k.semaphore("summed")
        self.sum_place = [k.reg(name, 0) for name in ("summing", "sum_read")] if self.sums else []

    def write_chains(self) -> None:
        super().write_chains()
        if not self.sums:
            return
        k = self.k
        ready, ones = k.semaphore("ones"), k.chain(Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT3))
        k.set(Unit.VECTOR, splat3=fp32(1.0))
        with k.scratch("row") as (row,):
            k.mov(row, self.config.scratchpad_rows - 1)
            self.vector(row, row, 1, ones, ElementType.BF16, signal=ready)
        k.matmul(0, 0, 0, wait=ready)

    # Pieces

    def load(self, source: Register, slot: Register, rows: Value, part: Part, wait: Semaphores = ()) -> None:
        """A part of each matrix row from ``source`` on, transposed, to its place in a slot."""
        with self.k.scratch("at") as (at,):
            self.k.add(at, slot, part[0])
            self.load_transposed(source, at, rows, part, wait, self.full)

    def load_values(self, at: Register, elements: int, offset: Register | None = None) -> None:
        """Weight and bias of ``elements`` elements, ``offset`` bytes behind their first, to rows from ``at`` on."""
        k = self.k
        rows = -(-elements // self.n)
        k.set(Unit.LOAD, run_bytes=2 * elements, chunks=rows, chunk_stride=1, count2=1)
        with k.scratch("address row") as (address, row):
            k.mov(row, at)
            for value in self.arguments:
                k.mov(address, value)
                if offset is not None:
                    k.add(address, address, offset)
                k.load(address, row, 1)
                k.add(row, row, rows)

    def widen_bias(self, at: Register, elements: int) -> None:
        """The bias, in the scratchpad from ``at`` on with the weight before it, to the accumulators, as fp32."""
        if not self.operator.bias:
            return
        k, rows = self.k, -(-elements // self.n)
        with k.scratch("row") as (row,):
            k.add(row, at, rows * self.operator.weight)
            self.vector(row, 0, rows, 0, ElementType.FP32)

    def sum_chunks(self, slot: Register, parts: Sequence[Part]) -> None:
        """Sums of the chunks of a piece, for the first pass; its parts come one after the other."""
        k, n = self.k, self.n
        self._next_place(self.sum_place[0])
        k.matmul(0, 0, 0, wait=self.sums_free)
        with k.scratch("chunk sum ones step") as (chunk, target, ones, step):
            k.mov(chunk, slot)
            k.add(target, self.sum_place[0], self.place.sums_row(n, 0))
            k.mov(ones, self.config.scratchpad_rows - 1)
            k.mov(step, n)
            for _, size in parts:
                k.matmul(0, 0, 0, wait=self.full)
                whole, rest = divmod(size, n)
                for count, rows in ((whole, n), (int(rest > 0), rest)):
                    if count:
                        with k.loop(count):
                            k.weights(chunk, rows, dtype=ElementType.BF16, step=step)
                            k.matmul(ones, target, 1, dtype=ElementType.BF16)
                            k.add(target, target, 1)
        k.matmul(0, 0, 0, signal=self.summed)

    def reduce_sums(self, size: int, signal: Semaphores = ()) -> None:
        """The first pass over these sums."""
        self._next_place(self.sum_place[1])
        with self.k.scratch("row") as (row,):
            self.k.add(row, self.sum_place[1], self.place.sums_row(self.n, 0))
            free = (self.sums_free, signal) if isinstance(signal, Semaphore) else self.sums_free
            rows = -(-size // self.n)
            self.vector(row, row, rows, self.chains[0], ElementType.FP32, self.summed, free, Space.ACCUMULATOR)

    def _next_place(self, place: Register) -> None:
        self.k.sub(place, ZERO, place)
        self.k.add(place, place, self.place.piece // self.n)

    def use_values(self, values: Register | None, first: int = 0) -> None:
        """The last pass finds there weight and bias of its rows from element ``first`` on."""
        k, row = self.k, first // self.n
        if values is None:
            return
        if self.operator.bias:
            k.set(Unit.VECTOR, c_row=row)
        if self.operator.weight:
            with k.scratch("row") as (at,):
                k.add(at, values, row)
                k.set(Unit.VECTOR, b_row=at)

    def compute(self, index: int, slot: Register, part: Part, wait: Semaphores = (), signal: Semaphores = ()) -> None:
        """A part of a piece in a pass."""
        k, last = self.k, index == len(self.operator.passes) - 1
        first, size = part
        with k.scratch("row") as (row,):
            k.add(row, slot, first)
            out = ElementType.BF16 if last else ElementType.FP32
            if not self.operator.keeps or index < len(self.operator.passes) - 2:
                self.vector(row, row, size, self.chains[index], out, wait, signal)
                return
            with k.scratch("kept") as (kept,):
                k.mov(kept, first)
                if last:
                    self.vector(kept, row, size, self.chains[index], out, wait, signal, Space.ACCUMULATOR)
                else:
                    self.vector(row, kept, size, self.chains[index], out, wait, signal)

    def join(self, index: int, slot: Register) -> None:
        """What follows the last row of a pass that reduces."""
        self.fold(index)
        if self.operator.passes[index].after:
            self.vector(slot, slot, 1, self.after[index], ElementType.FP32)

    def store_columns(self, slot: Register, part: Part, wait: Semaphores) -> None:
        """Results of a part, as they are, to the temporary array."""
        k, (first, size) = self.k, part
        with k.scratch("address row") as (address, row):
            k.add(address, self.temporary, first * self.row_bytes)
            k.add(row, slot, first)
            k.set(Unit.STORE, run_bytes=self.row_bytes, mem_stride=self.row_bytes, local_stride=1)
            k.store(address, row, size, wait=wait, signal=self.away)

    def load_rows(self, slot: Register, parts: Sequence[Part]) -> None:
        """Results come back: element c * N + j of matrix row i to lane j of row c * N + i of the slot."""
        k = self.k
        k.set(Unit.LOAD, run_bytes=self.row_bytes, mem_stride=self.row_bytes, chunks=1, count2=1)
        k.set(Unit.LOAD, local_stride=self.n)
        with k.scratch("address row") as (address, row):
            for first, size in parts:
                k.add(address, self.temporary, first * self.row_bytes)
                k.add(row, slot, first)
                k.load(address, row, size, transpose=True, wait=self.away, signal=self.back)

    def store_rows(
        self, target: Register, slot: Register, rows: Value, parts: Sequence[Part], signal: Semaphores
    ) -> None:
        """Rows of the result, from ``target`` on; then ``signal``."""
        k = self.k
        with k.scratch("address row") as (address, row):
            for number, (first, size) in enumerate(parts):
                k.set(Unit.STORE, run_bytes=2 * size, mem_stride=self.shape.out_pitch, chunk_stride=self.n)
                k.add(address, target, 2 * first)
                k.add(row, slot, first)
                k.store(address, row, rows, wait=self.back, signal=signal if number == len(parts) - 1 else ())

    # Small pieces

    def next_slot(self, slot: Register) -> None:
        k, step = self.k, self.place.step
        k.add(slot, slot, step)
        with k.scratch("end") as (end,):
            k.mov(end, SLOTS * step)
            with k.if_(slot, "==", end):
                k.mov(slot, 0)
