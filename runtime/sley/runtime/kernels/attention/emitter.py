"""What all parts of an attention program share: names, semaphores, steps on their way from stage to stage."""

from collections.abc import Iterator
from contextlib import contextmanager

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register
from sley.runtime.kernels.attention.chains import SPLATS, Chains
from sley.runtime.kernels.attention.placement import Placement
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem

COUNT_BITS = 10
"""Of a step: its keys, and above them its queries, and above those whether it is the first of a tile."""
FIRST = 1 << 2 * COUNT_BITS


class Emitter:
    """The base of the parts that write an attention program.

    A *step* is a tile of queries with a block of keys, in one register: its keys, its queries, whether it is the
    tile's first; 0 is none. In round n step n is loaded, n - 1 scored and weighed, n - 2 summed up; ``ended`` is n - 3.
    ``parity``: n mod 2, of slots. ``relative``: of the scored step, its first key less its first query, less 1.
    Whatever an instruction waits for is signalled by one issued before it.
    """

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        self.config, self.problem = config, problem
        self.n, self.dim, self.folds = config.array, problem.dim, problem.dim // config.array
        self.place = Placement.of(config, problem.dim)
        name = f"attention_{problem.queries}x{problem.keys}x{problem.dim}"
        self.k = k = KernelBuilder(name, config)
        self.q, self.keys, self.values, self.out = (k.arg(name, strided=True) for name in ("q", "k", "v", "out"))
        self.temporary, factor = k.arg("temporary"), k.arg("factor")
        self.k_free, self.k_full = k.semaphore("k_free", 2), k.semaphore("k_full")
        self.v_free, self.v_full = k.semaphore("v_free", 2), k.semaphore("v_full")
        self.q_free, self.q_full = k.semaphore("q_free", 1), k.semaphore("q_full")
        self.s_free, self.s_full = k.semaphore("scores_free", 1), k.semaphore("scores_full")
        self.p_free, self.p_full = k.semaphore("weights_free", 2), k.semaphore("weights_full")
        self.o_ready, self.o_done = k.semaphore("sums_ready"), k.semaphore("sums_done")
        self.out_free, self.out_done = k.semaphore("out_free", 1), k.semaphore("out_done")
        self.stored, self.back = k.semaphore("stored"), k.semaphore("back")
        chains = Chains.of(problem.causal)
        self.highest, self.maximum, self.weigh = (k.chain(c) for c in (chains.highest, chains.maximum, chains.weights))
        self.factor, self.rescale, self.reciprocal = (
            [k.chain(c) for c in group] for group in (chains.factor, chains.rescale, chains.reciprocal)
        )
        self.ones, self.lowest = k.chain(chains.ones), k.chain(chains.lowest)
        k.set(Unit.VECTOR, splat0=factor, **{name: value - (1 << 32) * (value >> 31) for name, value in SPLATS.items()})
        if problem.causal:
            k.set(Unit.VECTOR, iota_row=1, iota_lane=-1)
        k.free(factor)
        self.loaded, self.scored, self.summed, self.ended = (
            k.reg(name, 0) for name in ("loaded", "scored", "summed", "ended")
        )
        self.parity = k.reg("parity", 0)
        self.relative = k.reg("relative") if problem.causal else None

    def count(self, to: Register, step: Register) -> None:
        """Keys of a step."""
        self.k.and_(to, step, (1 << COUNT_BITS) - 1)

    def queries(self, to: Register, step: Register) -> None:
        self.k.shr(to, step, COUNT_BITS)
        self.k.and_(to, to, (1 << COUNT_BITS) - 1)

    def groups(self, to: Register, step: Register) -> None:
        self.queries(to, step)
        self.k.add(to, to, self.n - 1)
        self.k.shr(to, to, self.n.bit_length() - 1)

    def slot(self, to: Register, first: int, size: int, other: bool = False) -> None:
        """First row of the slot of this round, or of the ``other`` one."""
        self.k.mul(to, self.parity, -size if other else size)
        self.k.add(to, to, first + (size if other else 0))

    @contextmanager
    def if_first(self, step: Register) -> Iterator[None]:
        """Runs the body if a step is the first of its tile."""
        with self.k.scratch("first") as (first,):
            self.k.mov(first, FIRST)
            with self.k.if_(step, ">=", first):
                yield

    def each_group(self, groups: Register) -> Iterator[int]:
        """The groups of a tile, unrolled; what is written behind is reached from each."""
        k, end = self.k, self.k.label("groups")
        for group in range(TILE_GROUPS):
            if group:
                with k.scratch("limit") as (limit,):
                    k.mov(limit, group + 1)
                    with k.if_(groups, "<", limit):
                        k.jump(end)
            yield group
        k.place(end)
