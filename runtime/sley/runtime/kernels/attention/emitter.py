"""What all parts of an attention program share: names, semaphores, steps on their way from stage to stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sley.abi.config import ChipConfig
from sley.abi.faults import Unit
from sley.abi.instructions import Op
from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import ZERO, Label, Register
from sley.runtime.kernels.attention.chains import SPLATS, Chains
from sley.runtime.kernels.attention.placement import Placement
from sley.runtime.kernels.attention.problem import TILE_GROUPS, Problem

COUNT_BITS = 10
"""Of a step: its keys, above them its queries, above those its place at the diagonal, and whether it is the first."""
PLACE_BITS = 4
FIRST = 1 << 2 * COUNT_BITS + PLACE_BITS


class Emitter:
    """The base of the parts that write an attention program.

    A *step* is a tile of queries with a block of keys, in one register: its keys, its queries, whether it is the
    tile's first, and, if causal, by how many groups its first query is behind its first key; 0 is none. In round n step
    n is loaded, n - 1 scored and weighed, n - 2 summed up; ``ended`` is n - 3. ``parity``: n mod 2, of slots.
    Whatever an instruction waits for is signalled by one issued before it. ``folds``: products that a score takes.
    ``q_rows``: rows of the queries of a group.
    """

    def __init__(self, config: ChipConfig, problem: Problem) -> None:
        self.config, self.problem = config, problem
        self.n, self.dim = config.array, problem.dim
        self.folds = problem.dim * problem.kind.bytes // config.row_bytes
        self.q_rows = self.folds * self.n
        self.place = Placement.of(config, problem.dim, problem.kind)
        kind = "int8_" if problem.integers else ""
        name = f"attention_{kind}{problem.queries}x{problem.keys}x{problem.dim}"
        self.k = k = KernelBuilder(name, config)
        self.q, self.keys, self.values, self.out = (k.arg(name, strided=True) for name in ("q", "k", "v", "out"))
        self.temporary, factor = k.arg("temporary"), k.arg("factor")
        self.k_free, self.k_full = k.semaphore("k_free", 2), k.semaphore("k_full")
        self.v_free, self.v_full = k.semaphore("v_free", 2), k.semaphore("v_full")
        self.q_free, self.q_full = k.semaphore("q_free", 2), k.semaphore("q_full")
        self.s_free, self.s_full = k.semaphore("scores_free", TILE_GROUPS), k.semaphore("scores_full")
        self.p_free, self.p_full = k.semaphore("weights_free", 2), k.semaphore("weights_full")
        self.o_ready, self.o_done = k.semaphore("sums_ready"), k.semaphore("sums_done")
        self.out_free, self.out_done = k.semaphore("out_free", 1), k.semaphore("out_done")
        self.stored, self.back = k.semaphore("stored"), k.semaphore("back")
        chains = Chains.of(problem)
        self.highest, self.maximum, self.weigh = (k.chain(c) for c in (chains.highest, chains.maximum, chains.weights))
        self.factor, self.rescale = ([k.chain(c) for c in group] for group in (chains.factor, chains.rescale))
        self.reciprocal, self.result = k.chain(chains.reciprocal), k.chain(chains.result)
        self.ones, self.lowest = k.chain(chains.ones), k.chain(chains.lowest)
        k.set(Unit.VECTOR, splat0=factor, **{name: value - (1 << 32) * (value >> 31) for name, value in SPLATS.items()})
        if problem.causal:
            k.set(Unit.VECTOR, iota_row=1, iota_lane=-1)
        k.free(factor)
        self.loaded, self.scored, self.summed, self.ended = (
            k.reg(name, 0) for name in ("loaded", "scored", "summed", "ended")
        )
        self.parity = k.reg("parity", 0)
        self._skipped: Label | None = None

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

    def seen(self, to: Register, step: Register) -> None:
        """Keys that the first group of a causal step sees, from its first key on: 0 or less if it is behind them."""
        self.seen_folds(to, step)
        self.k.mul(to, to, self.n)

    def seen_folds(self, to: Register, step: Register) -> None:
        """The same in folds of N keys."""
        self.k.shr(to, step, 2 * COUNT_BITS)
        self.k.and_(to, to, (1 << PLACE_BITS) - 1)
        self.k.sub(to, to, TILE_GROUPS - 2)

    def slot(self, to: Register, first: int, size: int, other: bool = False) -> None:
        """First row of the slot of this round, or of the ``other`` one."""
        self.k.mul(to, self.parity, -size if other else size)
        self.k.add(to, to, first + (size if other else 0))

    @contextmanager
    def if_first(self, step: Register) -> Iterator[None]:
        """Runs the body if a step is the first of its tile."""
        with self._first(step, Op.BLT):
            yield

    @contextmanager
    def if_not_first(self, step: Register) -> Iterator[None]:
        """Runs the body if a step is not the first of its tile, or none."""
        with self._first(step, Op.BGE):
            yield

    @contextmanager
    def _first(self, step: Register, unless: Op) -> Iterator[None]:
        end = self.k.label("first or not")
        with self.k.scratch("first") as (first,):
            self.k.mov(first, FIRST)
            self.k.branch(unless, step, first, end)
        yield
        self.k.place(end)

    def absent_groups(self, groups: Register, empty: Callable[[], None]) -> None:
        """Runs the body for each group that a smaller tile has not."""
        k = self.k
        with k.scratch("absent") as (absent,):
            k.mov(absent, TILE_GROUPS)
            k.sub(absent, absent, groups)
            with k.loop(absent):
                empty()

    def each_group(
        self, groups: Register, limit: Register | None = None, step: Register | None = None
    ) -> Iterator[int]:
        """The groups of a tile, unrolled; ``next_group`` ends the body of each. ``limit`` becomes the keys that a group
        sees of a causal ``step``; groups that see none are left out."""
        k, end = self.k, self.k.label("groups")
        if not self.problem.causal or step is None:
            limit = None
        if limit is not None and step is not None:
            self.seen(limit, step)
        for group in range(TILE_GROUPS):
            if group:
                with k.scratch("more") as (more,):
                    k.mov(more, group + 1)
                    with k.if_(groups, "<", more):
                        k.jump(end)
            self._skipped = None
            if limit is not None:
                self._skipped = k.label("skipped")
                k.branch(Op.BGE, ZERO, limit, self._skipped)
            yield group
            if limit is not None:
                k.add(limit, limit, self.n)
        k.place(end)

    def next_group(self, *steps: tuple[Register, int], always: Callable[[], None] | None = None) -> None:
        """To the rows of the next group, also from one that was left out, for which ``always`` is done, too."""
        if self._skipped is not None:
            self.k.place(self._skipped)
        if always is not None:
            always()
        for register, step in steps:
            self.k.add(register, register, step)
