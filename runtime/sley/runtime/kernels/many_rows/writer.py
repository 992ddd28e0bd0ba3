"""What the parts of the program of a product of many rows share: registers, semaphores, steps."""

from __future__ import annotations

import numpy as np

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register, Semaphore, Semaphores
from sley.runtime.kernels.many_rows.placement import Placement
from sley.runtime.kernels.many_rows.problem import Ending, ManyRows, Source


def bits(value: float) -> int:
    """The word of a number in fp32."""
    return int(np.float32(value).view(np.uint32))


class Writer:
    """A program that is being written.

    Attributes
    ----------
    k, config, problem, at: the builder, for what, and where things are.
    n, pitch, block_bytes: lanes; bytes of a row of the result, and of a block of weights.
    half: the first row of the half of the accumulators that a group has. column: bytes of the groups before it in a
    row. token_row: the row, in each half, of the scales of the band. list_rows: of CACHED the rows of a list.
    turn: the row of the tables of a group. list_row, group_left, groups_left: of CACHED, see ``cached.begin``.
    """

    turn: Register
    list_row: Register
    group_left: Register
    groups_left: Register

    def __init__(self, k: KernelBuilder, config: ChipConfig, problem: ManyRows, at: Placement) -> None:
        self.k, self.config, self.problem, self.at = k, config, problem, at
        self.n, p = config.array, problem
        turns, cached = p.of_heads, p.ending is Ending.CACHED
        self.pitch = 4 * (p.width or self.n * p.groups)
        self.band_bytes = (p.blocks if turns else p.groups) * at.block_rows * config.row_bytes
        self.block_bytes = at.block_rows * config.row_bytes
        names = ["x", *(["scales"] if p.source is not Source.HEADS else []), "weights", "factors", "out"]
        names += ["next_scales", "inverses"] if p.gives_scales else []
        names += ["norm"] if p.ending is Ending.ADDED else []
        names += ["places"] if cached else []
        names += ["cosines", "sines"] if turns else []
        names += ["keys", "values"] if cached else []
        names += ["x_inverses"] if p.source in (Source.FLOATS, Source.NORMED) else []
        names += ["x_norm"] if p.source is Source.NORMED else []
        args = {name: k.arg(name, strided=name == "out" and (turns or p.width is not None)) for name in names}
        self.x, self.scales, self.weights = args["x"], args.get("scales"), args["weights"]
        self.factors, self.out = args["factors"], args["out"]
        self.next_scales, self.inverses = args.get("next_scales"), args.get("inverses")
        self.x_inverses, self.x_norm = args.get("x_inverses"), args.get("x_norm")
        self.norm, self.tables = args.get("norm"), [args[name] for name in ("cosines", "sines") if name in args]
        self.places, self.keys, self.values = args.get("places"), args.get("keys"), args.get("values")
        self._own_tokens()
        k.free(*k.block, *k.grid)
        self._semaphores()
        self.list_rows = -(-at.tokens // self.n)
        self.load_slot, self.read_slot = k.reg("load_slot", at.first_slot), k.reg("read_slot", at.first_slot)
        self.read_x = k.reg("read_x", 0)
        self.half, self.half_rows = k.reg("half", 0), k.reg("half_rows", at.half)
        self.column, self.token_row = k.reg("column", 0), k.reg("token_row")
        self.n_register, self.one = k.reg("n", self.n), k.reg("one", 1)
        if at.resident:
            self.operands_of_half = k.reg("operands", at.operands)
        self.loads_left = k.reg("loads_left", at.bands * p.groups)
        self.band_left = k.reg("band_left", p.groups)
        if p.source is Source.INT8:
            self.load_x, self.bands_left = k.reg("load_x", 0), k.reg("bands_left", at.bands)
        self.head_left = k.reg("head_left", p.pairs(config)) if turns else None
        if p.ending is Ending.TURNED:
            self.turn, self.table_bands = k.reg("turn", at.tables), k.reg("table_bands", at.bands)

    def _own_tokens(self) -> None:
        """Addresses of the first token of the block of the grid."""
        k, p = self.k, self.problem
        if p.cores == 1:
            return
        own = p.tokens // p.cores
        pitch = 2 * p.head if p.ending is Ending.TURNED else self.pitch
        steps = [(self.x, p.inputs), (self.out, pitch)]
        scales = (self.scales, self.next_scales, self.inverses)
        steps += [(register, 4) for register in scales if register is not None]
        steps += [(register, 2 * p.head) for register in self.tables]
        with k.scratch("first") as (first,):
            for register, step in steps:
                k.mul(first, k.block[0], own * step)
                k.add(register, register, first)

    def _semaphores(self) -> None:
        k, at = self.k, self.at
        self.x_full = k.semaphore("x_full")
        if self.problem.source is Source.INT8:
            self.x_free = k.semaphore("x_free", at.x_slots)
        else:
            self.given = k.semaphore("given")
        if self.problem.source in (Source.FLOATS, Source.NORMED):
            self.taken = k.semaphore("taken", 1)
        self.w_free, self.w_full = k.semaphore("w_free", at.slots), k.semaphore("w_full")
        self.sum_free, self.summed = k.semaphore("sum_free", 2), k.semaphore("summed")
        self.operands_full = k.semaphore("operands_full")
        self.operands_free = () if at.resident else (k.semaphore("operands_free", 2),)
        self.done = k.semaphore("done")
        if self.problem.ending is Ending.SCALED:
            self.products_free = k.semaphore("products_free", 2)
        if self.problem.of_heads:
            self.staged_free, self.tables_full = k.semaphore("staged_free", 2), k.semaphore("tables_full")
        if self.problem.ending is Ending.TURNED:
            self.tables_free = k.semaphore("tables_free", 1)
        if self.problem.ending is Ending.CACHED:
            self.listed = k.semaphore("listed")
        if self.problem.gives_scales:
            self.results_free, self.results = k.semaphore("results_free", 1), k.semaphore("results")

    # Loads

    def set_weights(self) -> None:
        """Load takes the weights of a group: a block, and the second one of a pair."""
        at, p = self.at, self.problem
        self.k.set(Unit.LOAD, run_bytes=self.block_bytes, chunks=at.block_rows, chunk_stride=1, count2=p.together)
        self.k.set(Unit.LOAD, mem_stride2=p.pairs(self.config) * self.block_bytes, local_stride2=at.block_rows)

    def set_store(self) -> None:
        """Store takes a block of the result."""
        p = self.problem
        if p.of_heads:
            self.k.set(Unit.STORE, run_bytes=2 * self.n, mem_stride=2 * p.head, local_stride=1)
        else:
            self.k.set(Unit.STORE, run_bytes=4 * self.n, mem_stride=self.pitch, local_stride=1)

    # The vector unit

    def operand(self, row: Register, number: int) -> None:
        """The row of an operand of this group."""
        k, at = self.k, self.at
        if at.resident:
            k.add(row, self.half, self.operands_of_half)
            k.add(row, row, number)
        else:
            k.add(row, self.half, at.operands + number)

    @property
    def operands_here(self) -> tuple[Semaphore, ...]:
        """What the first step of a group waits for besides its sums."""
        return () if self.at.resident else (self.operands_full,)

    def vector(
        self,
        chain: Chain,
        source: Register,
        out: Register,
        b: Register | None = None,
        *,
        integer: bool = False,
        bf16: bool = False,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """A row for each token of the band, in the accumulators. ``integer``: the source has sums of int8. ``bf16``: to
        the scratchpad."""
        if b is not None:
            self.k.set(Unit.VECTOR, b_row=b)
        dtype = ElementType.INT32 if integer else ElementType.FP32
        target = ElementType.BF16 if bf16 else ElementType.FP32
        number = self.k.chain(chain)
        self.k.vector(source, out, self.at.tokens, dtype=dtype, out=target, chain=number, wait=wait, signal=signal)

    # Steps

    def toggle(self) -> None:
        """The next group has the other half, and there, if all are here, the next operands."""
        k, at = self.k, self.at
        k.sub(self.half, self.half_rows, self.half)
        if at.resident:
            with k.if_(self.half, "==", 0):
                k.add(self.operands_of_half, self.operands_of_half, at.group_operands)

    def next(self, place: Register, first: int, step: int, count: int) -> None:
        """The slot behind ``place``, of so many."""
        k = self.k
        if count == 1:
            return
        k.add(place, place, step)
        with k.scratch("end") as (end,):
            k.mov(end, first + count * step)
            with k.if_(place, "==", end):
                k.mov(place, first)
