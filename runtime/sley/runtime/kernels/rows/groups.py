"""What all programs on groups of rows are made of: groups of a block, chains, transposed loads, vector instructions."""

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Semaphores, Value
from sley.runtime.kernels.rows.passes import RowOperator
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, Rows

Part = tuple[int, int]
"""First element along K, and how many."""


class Groups:
    """The base of such programs. N matrix rows are a *group*; block b of B has groups b, b + B, ..."""

    temporary_bytes = 0
    """Of a block."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        self.config, self.operator, self.shape = config, operator, shape
        self.n, self.row_bytes = config.array, config.row_bytes
        self.k = k = KernelBuilder(f"{operator.name}_{shape.m}x{shape.k}", config)
        self.x, self.out, self.temporary = k.arg("x", strided=True), k.arg("out", strided=True), k.arg("temporary")
        self.arguments = [k.arg(name) for name in ("weight", "bias") if getattr(operator, name)]
        self.chains: list[int] = []
        self.after: list[int] = []
        self.known: dict[str, int] = {}
        self._start()
        self.out_left = k.reg("out_left", self.left)

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
                    (self.temporary, self.temporary_bytes),
                    (self.left, -self.n),
                ):
                    k.mul(offset, block, step)
                    k.add(register, register, offset)
        k.free(*k.grid, *k.block)

    def write_chains(self) -> None:
        """To the vector unit, where the program passes once."""
        k, operator = self.k, self.operator
        self.chains += [k.chain(p.chain) for p in operator.passes]
        self.after += [k.chain(p.after) if p.after else 0 for p in operator.passes]
        k.set(Unit.VECTOR, **{f"splat{i}": signed(splat) for i, splat in enumerate(operator.splats)})

    def next_rows(self) -> None:
        """To the next group of the block, of those that are loaded."""
        k, step = self.k, self.n * self.shape.blocks
        k.add(self.x, self.x, step * self.shape.pitch)
        k.sub(self.left, self.left, step)

    def next_result(self) -> None:
        """To the next group of the block, of those that are stored."""
        k, step = self.k, self.n * self.shape.blocks
        k.add(self.out, self.out, step * self.shape.out_pitch)
        k.sub(self.out_left, self.out_left, step)

    def load_transposed(
        self, source: Register, target: Register, rows: Value, part: Part, wait: Semaphores, signal: Semaphores
    ) -> None:
        """A part of each matrix row from ``source`` on, transposed, to rows from ``target`` on."""
        k, slab, (start, size) = self.k, SLAB_CHUNKS * self.n, part
        whole, rest = divmod(size, slab)
        with k.scratch("address row") as (address, row):
            k.add(address, source, 2 * start)
            k.mov(row, target)
            self.set_load(mem_stride=self.shape.pitch, local_stride=1, chunk_stride=self.n)
            if whole:
                self.set_load(run_bytes=2 * slab, chunks=SLAB_CHUNKS, count2=whole)
                self.set_load(mem_stride2=2 * slab, local_stride2=slab)
                k.load(address, row, rows, transpose=True, wait=wait, signal=() if rest else signal)
            if rest:
                self.set_load(run_bytes=2 * rest, chunks=-(-rest // self.n), count2=1)
                if whole:
                    k.add(address, address, 2 * slab * whole)
                    k.add(row, row, slab * whole)
                k.load(address, row, rows, transpose=True, wait=() if whole else wait, signal=signal)

    def set_load(self, **params: int) -> None:
        """Writes parameters of LOAD, but for those that ``known`` says have these values already. The queue of LOAD is
        as long as the sequencer can be ahead of it."""
        changed = {name: value for name, value in params.items() if self.known.get(name) != value}
        self.k.set(Unit.LOAD, **changed)

    def fold(self, index: int) -> None:
        """Behind the last row of a pass that reduces."""
        chain = self.operator.passes[index].chain
        self.k.vfold(VectorRow(chain.register), chain.reduce)

    def vector(
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
        """Rows of bf16 in the scratchpad, or of fp32 in the accumulators, through a chain whose B is bf16."""
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


def parts_of(size: int, count: int, unit: int) -> list[Part]:
    """At most ``count`` parts, all but the last one of whole units."""
    step = -(-size // (count * unit)) * unit
    return [(first, min(step, size - first)) for first in range(0, size, step)]


def signed(word: int) -> int:
    """A word as the number that an immediate is."""
    return word - (word >> 31 << 32)
