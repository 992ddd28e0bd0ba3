"""What programs that reduce along K are made of: rows transposed on their way in, and back through memory."""

from collections.abc import Sequence

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.runtime.assembler.kernel import KernelBuilder
from sley.abi.vector.chains import Chain, Operand
from sley.abi.vector.operations import BinaryOp
from sley.runtime.assembler.operands import ZERO, Register, Semaphore, Semaphores, Value
from sley.runtime.kernels.rows.passes import Pass, RowOperator, fp32
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, SLOTS, SUMS, Placement, Rows

Part = tuple[int, int]
"""First element along K, and how many."""


class Columns:
    """The base of such programs. N matrix rows are a *group*: scratchpad row k of a slot holds element k of each, one
    in each lane.

    Semaphores, in the order of a piece's life: ``free`` (slots), ``full`` (loaded), ``done`` (computed), ``away``
    (transposed, in memory), ``back`` (in rows, in the slot).
    """

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        self.config, self.operator, self.shape = config, operator, shape
        self.n, self.row_bytes = config.array, config.row_bytes
        self.place = Placement.of(config, shape.k, operator.weight + operator.bias)
        self.k = k = KernelBuilder(f"{operator.name}_{shape.m}x{shape.k}", config)
        self.x, self.out, self.temporary = k.arg("x", strided=True), k.arg("out", strided=True), k.arg("temporary")
        self.arguments = [k.arg(name) for name in ("weight", "bias") if getattr(operator, name)]
        self.free, self.full = k.semaphore("free", SLOTS), k.semaphore("full")
        self.done, self.away, self.back = (k.semaphore(name) for name in ("done", "away", "back"))
        self.sums = operator.passes[0].sums
        self.sums_free, self.summed = k.semaphore("sums_free", SUMS * self.sums), k.semaphore("summed")
        self.sum_place = [k.reg(name, 0) for name in ("summing", "sum_read")] if self.sums else []
        self.chains: list[int] = []
        self.after: list[int] = []
        self._start()

    def write_chains(self) -> None:
        """To the vector unit, where the program passes once."""
        k, operator = self.k, self.operator
        self.chains += [k.chain(p.chain) for p in operator.passes]
        self.after += [k.chain(p.after) if p.after else 0 for p in operator.passes]
        k.set(Unit.VECTOR, **{f"splat{i}": _signed(splat) for i, splat in enumerate(operator.splats)})
        if self.sums:
            ones = k.chain(Chain(binary=BinaryOp.SECOND, binary_operand=Operand.SPLAT3))
            k.set(Unit.VECTOR, splat3=fp32(1.0))
            with k.scratch("row") as (row,):
                k.mov(row, self.config.scratchpad_rows - 1)
                self._vector(row, row, 1, ones, ElementType.BF16, signal=self.summed)
            k.matmul(0, 0, 0, wait=self.summed)

    def _start(self) -> None:
        """To the first group of the block; ``self.groups`` of them are its own."""
        k, shape = self.k, self.shape
        groups, block = -(-shape.m // self.n), k.block[0]
        self.groups = k.reg("groups", groups // shape.blocks)
        if groups % shape.blocks:
            with k.scratch("more") as (more,):
                k.mov(more, groups % shape.blocks)
                with k.if_(block, "<", more):
                    k.add(self.groups, self.groups, 1)
        self.left = k.reg("left", shape.m)  # matrix rows from this group on
        if shape.blocks > 1:
            with k.scratch("offset") as (offset,):
                for register, step in (
                    (self.x, self.n * shape.pitch),
                    (self.out, self.n * shape.out_pitch),
                    (self.temporary, self.place.piece * self.row_bytes),
                    (self.left, -self.n),
                ):
                    k.mul(offset, block, step)
                    k.add(register, register, offset)
        k.free(*k.grid, *k.block[1:])

    # Pieces

    def load(self, source: Register, slot: Register, rows: Value, part: Part, wait: Semaphores = ()) -> None:
        """A part of each matrix row from ``source`` on, transposed, to a slot."""
        k, slab, (start, size) = self.k, SLAB_CHUNKS * self.n, part
        whole, rest = divmod(size, slab)
        with k.scratch("address row") as (address, row):
            k.add(address, source, 2 * start)
            k.add(row, slot, start)
            k.set(Unit.LOAD, mem_stride=self.shape.pitch, local_stride=1, chunk_stride=self.n)
            if whole:
                k.set(Unit.LOAD, run_bytes=2 * slab, chunks=SLAB_CHUNKS, count2=whole)
                k.set(Unit.LOAD, mem_stride2=2 * slab, local_stride2=slab)
                signal = () if rest else self.full
                k.load(address, row, rows, transpose=True, wait=wait, signal=signal)
            if rest:
                k.set(Unit.LOAD, run_bytes=2 * rest, chunks=-(-rest // self.n), count2=1)
                if whole:
                    k.add(address, address, 2 * slab * whole)
                    k.add(row, row, slab * whole)
                k.load(address, row, rows, transpose=True, wait=() if whole else wait, signal=self.full)

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
            self._vector(row, 0, rows, 0, ElementType.FP32)

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
            self._vector(row, row, rows, self.chains[0], ElementType.FP32, self.summed, free, Space.ACCUMULATOR)

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

    def compute(
        self, index: int, slot: Register, part: Part, wait: Semaphores = (), signal: Semaphores = ()
    ) -> None:
        """A part of a piece in a pass."""
        k, last = self.k, index == len(self.operator.passes) - 1
        first, size = part
        with k.scratch("row") as (row,):
            k.add(row, slot, first)
            out = ElementType.BF16 if last else ElementType.FP32
            if not self.operator.keeps or index < len(self.operator.passes) - 2:
                self._vector(row, row, size, self.chains[index], out, wait, signal)
                return
            with k.scratch("kept") as (kept,):
                k.mov(kept, first)
                if last:
                    self._vector(kept, row, size, self.chains[index], out, wait, signal, Space.ACCUMULATOR)
                else:
                    self._vector(row, kept, size, self.chains[index], out, wait, signal)

    def join(self, index: int, slot: Register) -> None:
        """What follows the last row of a pass that reduces."""
        p: Pass = self.operator.passes[index]
        self.k.vfold(VectorRow(p.chain.register), p.chain.reduce)
        if p.after:
            self._vector(slot, slot, 1, self.after[index], ElementType.FP32)

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

    def _vector(
        self,
        source: Register,
        target: Value,
        rows: int,
        chain: int,
        out: ElementType,
        wait: Semaphores = (),
        signal: Semaphores = (),
        space: Space = Space.SCRATCHPAD,
    ) -> None:
        self.k.vector(
            source,
            target,
            rows,
            a_space=space,
            a_type=ElementType.BF16 if space == Space.SCRATCHPAD else ElementType.INT8,
            b_space=Space.SCRATCHPAD,
            b_type=ElementType.BF16,
            dtype=ElementType.FP32,
            out=out,
            chain=chain,
            wait=wait,
            signal=signal,
        )


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)
