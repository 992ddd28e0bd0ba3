"""What all parts of a GEMM program share: names, semaphores, slots, the step to the next macro tile."""

from collections.abc import Callable

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.abi.parameters import PARAMS
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Register, Value
from sley.runtime.kernels.gemm.placement import Operand, Placement
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import Tiling
from sley.runtime.kernels.gemm.walk import TileWalk
from sley.runtime.kernels.sums_to_results import sums_to_results


class GemmEmitter:
    """The base of the parts that write a GEMM program.

    The *load* side runs up to ``slots`` - 1 chunks ahead of the *multiply* side: ``lag``, which is where that side is
    along K if it goes in more than one chunk, is negative until so many were loaded. Semaphores: ``free`` and
    ``full`` hand chunk slots over, ``acc_free`` and ``acc_done`` halves of the accumulators, ``out_free`` and
    ``out_done`` slots of results in the scratchpad, ``c_free`` and ``c_full`` the place of C for beta. Whatever an
    instruction waits for is signalled by one issued before it, so the queues may have any length.
    """

    first_m: Value
    first_n: Value
    loads: Register
    lag: Register
    lag_step: int
    slot: Register
    single: bool
    load: TileWalk
    multiply: TileWalk
    running: dict[str, Register]
    load_values: Register
    values: Register
    c: Register
    half: Register
    narrow: bool
    a_step: Register
    b_step: Register
    acc_step: Value

    def __init__(self, config: ChipConfig, problem: Problem, tiling: Tiling) -> None:
        self.config, self.problem, self.tiling = config, problem, tiling
        self.place = Placement.of(config, problem, tiling)
        self.fold = config.fold_depth(problem.dtype)
        self.chunks = -(-problem.k // tiling.chunk)
        self.ahead = tiling.slots - 1
        self.k = k = KernelBuilder(f"gemm_{problem.m}x{problem.n}x{problem.k}", config)
        epilogue = problem.epilogue
        more = [name for name in ("bias", "scale", "beta", "zero_point") if getattr(epilogue, name)]
        bound = problem.bias_bound
        self.arg = {
            name: k.arg(name, name in ("a", "b", "c"), bound if name == "bias" else None)
            for name in ("a", "b", "c", *more)
        }
        self.to_results = sums_to_results(k, epilogue)
        self.free, self.full = k.semaphore("free", tiling.slots), k.semaphore("full")
        self.acc_free, self.acc_done = k.semaphore("acc_free", 2), k.semaphore("acc_done")
        self.out_free, self.out_done = k.semaphore("out_free", 2 * epilogue.narrow), k.semaphore("out_done")
        self.c_free, self.c_full = k.semaphore("c_free", int(epilogue.beta)), k.semaphore("c_full")
        # Parameters of LOAD that are known to have these values.
        self.constant: dict[str, Value] = {
            param.name.lower(): info.reset for param, info in PARAMS.items() if Unit.LOAD in info.units
        }
        self.straight = True  # what is written now is executed once, in this order

    # Where things are

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Macro tiles across N, M and the batch."""
        p, t = self.problem, self.tiling
        return -(-p.n // t.tile_n), -(-p.m // t.tile_m), p.batch

    def _chunk_step(self, operand: Operand) -> int:
        """Bytes from one chunk to the next."""
        return self.tiling.chunk * (1 if operand.along_k else operand.stride) * self.problem.bytes

    def _tile_step(self, operand: Operand) -> int:
        """Bytes from one macro tile, across M or N, to the next."""
        tile = self.tiling.tile_m if operand.name == "a" else self.tiling.tile_n
        return tile * (operand.stride if operand.along_k else 1) * self.problem.bytes

    # Small pieces

    def _blocks(self, rd: Register, source: Register, size: int) -> None:
        """rd = source / size rounded up; size is a power of two."""
        self.k.add(rd, source, size - 1)
        self.k.shr(rd, rd, size.bit_length() - 1)

    def _count(self, rd: Register, size: Value, block: int) -> Value:
        """``size`` / ``block`` rounded up."""
        if not isinstance(size, Register):
            return -(-size // block)
        self._blocks(rd, size, block)
        return rd

    def _slot_row(self, rd: Register, operand: Operand, behind: int = 0) -> None:
        """rd = where the slot of an operand begins. ``behind``: how many rounds ago it was filled, where it matters."""
        k = self.k
        if self.single:
            k.mov(rd, operand.base)
            return
        if operand.shift:
            with k.scratch("shift") as (shift,):
                k.add(shift, self.slot, -behind)
                k.and_(rd, shift, 1)
                k.mul(rd, rd, operand.step + operand.shift)
                k.and_(shift, shift, 2)
                k.mul(shift, shift, operand.shift // 2)
                k.add(rd, rd, shift)
        else:
            k.mul(rd, self.slot, operand.step)
        if operand.base:
            k.add(rd, rd, operand.base)

    def _ring(self, register: Register, step: int, first: int, end: int) -> None:
        """To the next of the places ``first``, ``first + step``, ... below ``end``."""
        k = self.k
        k.add(register, register, step)
        with k.scratch("end") as (limit,):
            k.mov(limit, end)
            with k.if_(register, "==", limit):
                k.mov(register, first)

    def _advance(
        self,
        side: TileWalk,
        column: Callable[[], None],
        row: Callable[[], None],
        product: Callable[[], None],
    ) -> None:
        """To the block's next macro tile, if this chunk was the last of its macro tile: the next one to the right, or
        the first one of the next row, or of the next product of the batch."""
        k, t, p = self.k, self.tiling, self.problem
        done = k.label("advanced")
        if side.k is not None:
            with k.scratch("depth") as (size,):
                k.mov(size, p.k)
                k.branch(Op.BLT, side.k, size, done)
            k.mov(side.k, 0)
        if isinstance(side.n, Register):
            k.sub(side.n, side.n, t.tile_n * t.grid[0])
            with k.if_(ZERO, "<", side.n):
                column()
                k.jump(done)
            k.mov(side.n, self.first_n)
        if isinstance(side.m, Register):
            k.sub(side.m, side.m, t.tile_m * t.grid[1])
            with k.if_(ZERO, "<", side.m):
                row()
                k.jump(done)
            k.mov(side.m, self.first_m)
        if p.batch > t.grid[2]:
            product()
        k.place(done)

    def _next_values(self, register: Register) -> None:
        """To the next slot: in the other half, the same number or, back in the first half, the next one."""
        k, place = self.k, self.place
        k.add(register, register, place.half)
        with k.scratch("end") as (end,):
            k.mov(end, 2 * place.half)
            with k.if_(register, ">=", end):
                k.sub(register, register, 2 * place.half)
                self._ring(register, place.values_step, place.values_base, place.half)
