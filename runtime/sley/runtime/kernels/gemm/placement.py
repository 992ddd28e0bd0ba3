"""Where the pieces of a GEMM lie in a core."""

from dataclasses import dataclass, replace

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS
from sley.runtime.kernels.gemm.problem import Problem
from sley.runtime.kernels.gemm.tiling import (
    RUN_BITS,
    Tiling,
    half_rows,
    interleaved,
    margin_fits,
    most_chunks,
    piece_chunks,
    spare_folds,
    up,
)


@dataclass(frozen=True)
class Operand:
    """A or B in memory, and in its slots in the scratchpad.

    ``along_k``: rows of the array in memory are along K; otherwise across, along M or N. ``stride``: elements from one
    such row to the next. In slot s, fold f of row i of A is in scratchpad row ``base + s * step + f * pitch + i``;
    array row r of fold f of column tile p of B is in ``base + s * step + p * pitch + f * N + r``. ``piece``: elements
    of a memory row that one LOAD may bring, to ``piece_rows`` local rows from the first to the next piece's. ``spare``:
    rows that the last slot does not need. ``shift``: rows by which a slot goes to and fro; they are behind each.
    """

    name: str
    along_k: bool
    transpose: bool
    interleave: bool
    stride: int
    resident: bool
    slots: int
    pitch: int
    step: int
    piece: int
    piece_rows: int
    spare: int
    shift: int = 0
    base: int = 0

    @classmethod
    def a(cls, config: ChipConfig, problem: Problem, tiling: Tiling) -> "Operand":
        p, deep, pairs = problem, config.fold_depth(problem.dtype), interleaved(config, problem)
        resident = tiling.resident == "a"
        folds = -(-(p.k if resident else tiling.chunk) // deep)
        pitch = up(tiling.tile_m, deep) if p.trans_a else tiling.tile_m
        most, _ = most_chunks(config, p)
        piece = piece_chunks(-(-tiling.tile_m // deep), most) * deep if p.trans_a else p.k
        interleave = pairs and p.trans_a
        slots = 1 if resident else tiling.slots
        step, spare = pitch * folds, pitch * spare_folds(-(-p.k // deep), folds, slots)
        lda = p.steps.lda
        return cls("a", not p.trans_a, p.trans_a, interleave, lda, resident, slots, pitch, step, piece, piece, spare)

    @classmethod
    def b(cls, config: ChipConfig, problem: Problem, tiling: Tiling) -> "Operand":
        p, n, deep = problem, config.array, config.fold_depth(problem.dtype)
        resident = tiling.resident == "b"
        interleave = interleaved(config, problem) and not p.trans_b
        folds = -(-(p.k if resident else tiling.chunk) // deep)
        pitch = folds * n
        wide = up(tiling.tile_n // n, 2) if interleave else tiling.tile_n // n
        _, most = most_chunks(config, p)
        chunks = piece_chunks(folds, most) if p.trans_b else INTERLEAVE_CHUNKS
        slots = 1 if resident else tiling.slots
        piece, rows, spare = chunks * deep, chunks * n, n * spare_folds(-(-p.k // deep), folds, slots)
        step, shift = wide * pitch, tiling.margin * pitch
        ldb = p.steps.ldb
        return cls("b", p.trans_b, p.trans_b, interleave, ldb, resident, slots, pitch, step, piece, rows, spare, shift)

    @property
    def rows(self) -> int:
        """Scratchpad rows of all slots."""
        return self.slots * (self.step + self.shift) - self.spare

    def strides(self, config: ChipConfig) -> tuple[int, int]:
        """Local rows from chunk to chunk, and from run (or unit of runs) to run, of its LOADs."""
        return (config.array, self.pitch) if self.transpose else (self.pitch, 1)


def _fills(config: ChipConfig, problem: Problem, tiling: Tiling) -> bool:
    """Whether every core has as many macro tiles as all others, so that all make the same loads."""
    across, down = config.cores_x, config.cores_y
    tiles_n, tiles_m = -(-problem.n // tiling.tile_n), -(-problem.m // tiling.tile_m)
    return tiling.grid == (across, down, 1) and tiles_n % across == 0 and tiles_m % down == 0


@dataclass(frozen=True)
class Placement:
    """Rows of the local memories that a tiling uses.

    Results that are made in the scratchpad have two slots, ``out_step`` rows apart, as have sums in the accumulators:
    sum i of column tile p is in ``half * h + p * tile_m + i``. ``halves``: column tiles of results in a scratchpad row.
    Bias and scale of a macro tile, a row of each for a column tile in turn, are behind the sums of both halves in turn,
    in ``value_slots`` slots of each from its row ``values_base`` on: while they are loaded the matrix unit writes to
    the other half. What units read at the same time lies in different banks, if there are enough.
    """

    a: Operand
    b: Operand
    out_step: int
    out_base: int
    c_base: int
    """Where rows of C lie that a factor beta is for: bf16 in the scratchpad."""
    beta_base: int
    """Accumulator rows of C times beta."""
    halves: int
    half: int
    values_step: int
    value_slots: int
    values_base: int
    fits: bool

    @classmethod
    def of(cls, config: ChipConfig, problem: Problem, tiling: Tiling) -> "Placement":
        a, b = Operand.a(config, problem, tiling), Operand.b(config, problem, tiling)
        epilogue, wide = problem.epilogue, tiling.tile_n // config.array
        halves = config.lane_elements() if epilogue.result.bits == 8 and wide > 1 else 1
        results = -(-wide // halves)
        out_step = results * tiling.tile_m if epilogue.narrow else 0
        c_rows = wide * tiling.tile_m if epilogue.beta and epilogue.narrow else 0
        bank = config.scratchpad_rows // config.scratchpad_banks
        if up(a.rows, bank) + up(b.rows, bank) + up(2 * out_step + c_rows, bank) > config.scratchpad_rows:
            bank = 1
        base = up(a.rows, bank)
        out_base = base + up(b.rows, bank)
        half = half_rows(config, problem)
        c_base = out_base + 2 * out_step
        values_step = results * halves * epilogue.value_rows
        value_slots = -(-(tiling.slots + 2) // 2)
        values_base = half - value_slots * values_step
        used = results * halves * tiling.tile_m
        fits = (
            c_base + c_rows <= config.scratchpad_rows
            and used <= values_base
            and (b.along_k or tiling.tile_n <= b.piece)
            and (
                problem.batch == 1 or tiling.grid[1] == 1 or tiling.gang
            )  # the walk from product to product is the same for all blocks
            and (not tiling.gang or (_fills(config, problem, tiling) and not tiling.margin))
            and (not tiling.margin or margin_fits(config, problem, tiling))
            and (not a.resident or problem.k * problem.bytes < 1 << RUN_BITS)
        )
        return cls(
            a,
            replace(b, base=base),
            out_step,
            out_base,
            c_base,
            2 * half,
            halves,
            half,
            values_step,
            value_slots,
            values_base,
            fits,
        )
