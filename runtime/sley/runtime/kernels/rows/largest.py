"""Programs of argmax: places count down along K, so the first of the largest elements has the largest place."""

from dataclasses import replace
from functools import lru_cache

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Space, VectorRow
from sley.abi.types import ElementType
from sley.abi.vector.chains import Chain, Lanes, Late, Operand
from sley.abi.vector.operations import BinaryOp, Reduction
from sley.runtime.assembler.operands import Register
from sley.runtime.device.program import Program
from sley.runtime.kernels.rows.groups import Groups
from sley.runtime.kernels.rows.passes import Pass, RowOperator, fp32
from sley.runtime.kernels.rows.shape import SLAB_CHUNKS, Rows

SLOTS = 3
_LARGEST, _PLACE = 0, 1
"""Row registers."""


def argmax_operator(k: int) -> RowOperator:
    """The maximum; the largest place of what equals it; that of NaNs, which equal nothing (B is x). Then k - place."""
    place = Chain(
        multiply=Operand.LATE0,
        late0=Late.C,
        late0_lanes=Lanes.BROADCAST,
        reduce=Reduction.MAX,
        register=_PLACE,
        silent=True,
    )
    index = Chain(
        binary=BinaryOp.SECOND,
        binary_operand=Operand.ROW1,
        binary2=BinaryOp.RSUB,
        binary2_operand=Operand.SPLAT0,
    )
    return RowOperator(
        "argmax",
        (
            Pass(Chain(reduce=Reduction.MAX, register=_LARGEST, silent=True)),
            Pass(replace(place, binary=BinaryOp.EQ, binary_operand=Operand.ROW0)),
            Pass(replace(place, binary=BinaryOp.NE, binary_operand=Operand.B), index),
        ),
        splats=(fp32(float(k)),),
    )


@lru_cache(maxsize=256)
def argmax_program(config: ChipConfig, shape: Rows) -> Program:
    """The program; its arguments are the addresses of x, the result (int32), and the places k, k - 1, ..., 1 as fp32.
    ``shape.out_pitch`` is 4."""
    return _Largest(config, argmax_operator(shape.k), shape).program


class _Largest(Groups):
    """Each pass loads the pieces of a group again. The vector unit takes a place in the accumulators with each slot;
    behind these are two rows for results."""

    def __init__(self, config: ChipConfig, operator: RowOperator, shape: Rows) -> None:
        super().__init__(config, operator, shape)
        k, n = self.k, self.n
        slab, room = SLAB_CHUNKS * n, min(config.scratchpad_rows // SLOTS, (config.accumulator_rows - 2) // SLOTS * n)
        self.piece = room // slab * slab or room // n * n
        self.whole, self.rest = divmod(shape.k, self.piece)
        self.free, self.full = k.semaphore("free", SLOTS), k.semaphore("full")
        self.out_free, self.done = k.semaphore("out_free", 2), k.semaphore("done")
        self.slot, self.at, self.place = k.reg("slot", 0), k.reg("at"), k.reg("place")
        self.result = k.reg("result", config.accumulator_rows - 2)
        self.rows = k.reg("rows")
        self.write_chains()
        with k.loop(self.groups):
            k.min(self.rows, self.left, n)
            for index in range(len(operator.passes)):
                self._pass(index)
                if index != 1:  # the second and the third find one place together
                    k.vfold(VectorRow(operator.passes[index].chain.register), Reduction.MAX)
            self._store()
            self.next_rows()
            self.next_result()
        k.end()
        self.program = k.build()

    def _pass(self, index: int) -> None:
        k = self.k

        def one(size: int) -> None:
            self.load_transposed(self.at, self.slot, self.rows, (0, size), self.free, self.full)
            if index:
                self._load_places(size)
            self.vector(self.slot, 0, size, self.chains[index], ElementType.FP32, wait=self.full, signal=self.free)
            k.add(self.at, self.at, 2 * self.piece)
            k.add(self.place, self.place, 4 * self.piece)
            k.add(self.slot, self.slot, self.piece)
            with k.scratch("end") as (end,):
                k.mov(end, SLOTS * self.piece)
                with k.if_(self.slot, "==", end):
                    k.mov(self.slot, 0)

        k.mov(self.at, self.x)
        k.mov(self.place, self.temporary)
        with k.loop(self.whole):
            one(self.piece)
        if self.rest:
            one(self.rest)

    def _load_places(self, size: int) -> None:
        """Those of a piece, with its slot; the vector unit waits for both."""
        k = self.k
        rows = -(-size // self.n)
        with k.scratch("row") as (row,):
            k.shr(row, self.slot, self.n.bit_length() - 1)
            self.known = {}
            k.set(Unit.LOAD, run_bytes=4 * size, chunks=rows, chunk_stride=1, count2=1)
            k.load(self.place, row, 1, space=Space.ACCUMULATOR, signal=self.full)
            k.set(Unit.VECTOR, b_row=self.slot, c_row=row)
            k.vector(0, 0, 0, wait=self.full)

    def _store(self) -> None:
        k, first = self.k, self.config.accumulator_rows - 2
        k.vector(
            self.slot,
            self.result,
            1,
            a_space=Space.SCRATCHPAD,
            a_type=ElementType.BF16,
            b_space=Space.SCRATCHPAD,
            b_type=ElementType.BF16,
            dtype=ElementType.FP32,
            out=ElementType.INT32,
            chain=self.after[2],
            wait=self.out_free,
            signal=self.done,
        )
        with k.scratch("bytes") as (size,):
            k.min(size, self.out_left, self.n)
            k.shl(size, size, 2)
            k.set(Unit.STORE, run_bytes=size)
            k.store(self.out, self.result, 1, space=Space.ACCUMULATOR, wait=self.done, signal=self.out_free)
        k.sub(self.result, self.result, first)
        self._other(self.result, first)

    def _other(self, result: Register, first: int) -> None:
        k = self.k
        k.mul(result, result, -1)
        k.add(result, result, first + 1)
