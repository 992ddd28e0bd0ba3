"""How a GEMM is cut into pieces, and where the pieces lie in a core."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sley.abi.config import ChipConfig
from sley.abi.instructions import TRANSPOSE_CHUNKS
from sley.abi.parameters import PARAMS, Param
from sley.abi.types import ElementType
from sley.runtime.kernels.gemm.problem import Problem

RUN_BITS = PARAMS[Param.RUN_BYTES].width

Sizes = TypeVar("Sizes", int, NDArray[np.int64])


@dataclass(frozen=True)
class Tiling:
    """Sizes of one GEMM.

    ``tile_m`` x ``tile_n`` results make a macro tile, ``chunk`` elements of K are loaded at a time into one of
    ``slots`` places; ``grid`` blocks (across N, M and the batch) share the macro tiles. ``tile_n`` is a multiple of the
    array's columns, ``chunk`` of the fold. An operand that is ``resident`` ("a" or "b") is loaded once, whole. The
    blocks of a ``gang``, one on each core, work side by side and share their loads: A along x, B along y.

    With a ``margin`` two slots of B do as well as three: from chunk to chunk each goes to and fro by so many column
    tiles, and is handed back when all but ``margin`` - 1 of a chunk's were multiplied. Not in a gang.
    """

    tile_m: int
    tile_n: int
    chunk: int
    slots: int
    grid: tuple[int, int, int] = (1, 1, 1)
    resident: str = ""
    gang: bool = False
    margin: int = 0


@dataclass(frozen=True)
class Plan:
    """A tiling, the problem it is for (the operands may be swapped), and its cycles by the estimate."""

    problem: Problem
    tiling: Tiling
    estimate: int


def tiling_text(plan: Plan) -> str:
    """A plan in one line."""
    t = plan.tiling
    parts = [f"{t.tile_m} x {t.tile_n}, K by {t.chunk}, {t.slots} slots", f"blocks {' x '.join(map(str, t.grid))}"]
    if t.gang:
        parts.append("gang")
    if t.resident:
        parts.append(f"{t.resident} resident")
    if t.margin:
        parts.append(f"margin {t.margin}")
    return ", ".join(parts)


def up(size: Sizes, unit: int) -> Sizes:
    """``size`` rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


def interleaved(config: ChipConfig, problem: Problem) -> bool:
    """Whether rows of k must be loaded two by two: lanes hold two int8 of consecutive k."""
    return config.lane_elements() == 2 and problem.dtype is ElementType.INT8


def most_chunks(config: ChipConfig, problem: Problem) -> tuple[int, int]:
    """Chunks of a run of A and of B that one LOAD takes if it transposes."""
    return TRANSPOSE_CHUNKS // (1 + interleaved(config, problem)), TRANSPOSE_CHUNKS


def piece_chunks(chunks: Sizes, most: int) -> Sizes:
    """Chunks of a piece of a run: as few pieces as possible, of one size. While a long unit leaves the transposer, a
    short one behind it could not keep memory busy."""
    pieces = -(-chunks // most)
    even: Sizes = -(-chunks // pieces)
    return even


def spare_folds(depth: Sizes, folds: Sizes, slots: Sizes) -> Sizes:
    """Folds that the last slot needs less than the others, of a K of ``depth`` folds: with as many chunks as slots
    nothing but the last chunk goes there."""
    chunks = -(-depth // folds)
    spare: Sizes = (chunks == slots) * (chunks * folds - depth)
    return spare


def margin_fits(config: ChipConfig, problem: Problem, tiling: Tiling) -> bool:
    """Whether B may have a margin: chunks of one fold, so that column tiles are multiplied in the order in which they
    lie, and macro tiles that are never wider than the one before. The place of bias and scale relies on whole slots."""
    p, t = problem, tiling
    narrowest = (p.n - 1) % t.tile_n // config.array + 1
    one_fold = t.chunk == config.fold_depth(p.dtype) < p.k
    return (
        one_fold
        and t.slots == 2
        and t.resident == "a"
        and p.batch == 1
        and not (p.trans_b or p.epilogue.value_rows)
        and 2 <= t.margin <= narrowest
    )


def half_rows(config: ChipConfig, problem: Problem) -> int:
    """Accumulator rows that the sums of a macro tile may take."""
    return config.accumulator_rows // (4 if problem.epilogue.beta else 2)
