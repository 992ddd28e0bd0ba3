"""How a GEMM is cut into pieces, and where the pieces lie in a core."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.instructions import INTERLEAVE_CHUNKS, TRANSPOSE_CHUNKS, OperandType
from sley.runtime.gemm.problem import Problem, Result, fold


@dataclass(frozen=True)
class Tiling:
    """Sizes of one GEMM.

    ``tile_m`` x ``tile_n`` results make a macro tile, ``chunk`` elements of K are loaded at a time into one of
    ``slots`` places; ``grid`` blocks (across N, M and the batch) share the macro tiles. ``tile_n`` is a multiple of the
    array's columns, ``chunk`` of the fold.
    """

    tile_m: int
    tile_n: int
    chunk: int
    slots: int
    grid: tuple[int, int, int] = (1, 1, 1)


def interleaved(config: ChipConfig, problem: Problem) -> bool:
    """Whether rows along N (of A along M) must be loaded two by two: lanes hold two int8 of consecutive k."""
    return config.lane_elements == 2 and problem.dtype is OperandType.INT8


def up(size: int, unit: int) -> int:
    """``size`` rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


@dataclass(frozen=True)
class Placement:
    """Rows of the local memories that a tiling uses; sizes of one slot are *steps*.

    In slot s, fold f of row i of A is in scratchpad row ``s * a_step + f * a_pitch + i``; array row r of fold f of
    column tile p of B is in ``b_base + s * b_step + p * b_pitch + f * N + r``. Results that are made in the scratchpad
    have two slots, as have sums in the accumulators: sum i of column tile p is in ``half * h + p * tile_m + i``.
    Values of the bias are in the last accumulator rows.

    What units read at the same time lies in different banks, if there are enough.
    """

    a_pitch: int
    a_step: int
    b_pitch: int
    b_step: int
    b_base: int
    out_step: int
    out_base: int
    scratchpad_rows: int
    halves: int
    """Column tiles of results in a scratchpad row."""
    half: int
    bias_step: int
    bias_slots: int
    bias_base: int
    a_piece: int
    """Rows of A that one LOAD may bring."""
    b_piece: int
    """Elements of K, of B, that one LOAD may bring."""
    fits: bool

    @classmethod
    def of(cls, config: ChipConfig, problem: Problem, tiling: Tiling) -> "Placement":
        n, deep = config.array, fold(config, problem.dtype)
        epilogue, pairs = problem.epilogue, interleaved(config, problem)
        folds, wide = tiling.chunk // deep, tiling.tile_n // n
        a_pitch = up(tiling.tile_m, deep) if problem.trans_a else tiling.tile_m
        b_pitch = folds * n
        b_step = (up(wide, 2) if pairs and not problem.trans_b else wide) * b_pitch
        halves = config.lane_elements if epilogue.result is Result.INT8 and wide > 1 else 1
        results = -(-wide // halves)
        out_step = results * tiling.tile_m if epilogue.narrow else 0
        bank = config.scratchpad_rows // config.scratchpad_banks
        a_rows, b_rows, out_rows = tiling.slots * a_pitch * folds, tiling.slots * b_step, 2 * out_step
        if up(a_rows, bank) + up(b_rows, bank) + up(out_rows, bank) > config.scratchpad_rows:
            bank = 1
        b_base = up(a_rows, bank)
        out_base = b_base + up(b_rows, bank)
        half = config.accumulator_rows // 2
        bias_slots, bias_step = (tiling.slots + 2, results * halves) if epilogue.bias else (0, 0)
        bias_base = config.accumulator_rows - bias_slots * bias_step
        used = results * halves * tiling.tile_m
        fits = out_base + out_rows <= config.scratchpad_rows and used <= half and half + used <= bias_base
        if pairs and not problem.trans_b:
            fits = fits and tiling.tile_n <= INTERLEAVE_CHUNKS * deep
        return cls(
            a_pitch,
            a_pitch * folds,
            b_pitch,
            b_step,
            b_base,
            out_step,
            out_base,
            out_base + out_rows,
            halves,
            half,
            bias_step,
            bias_slots,
            bias_base,
            TRANSPOSE_CHUNKS // (2 if pairs else 1) * deep if problem.trans_a else tiling.tile_m,
            TRANSPOSE_CHUNKS * deep if problem.trans_b else tiling.chunk,
            fits,
        )
