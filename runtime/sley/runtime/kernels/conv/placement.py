"""Where the pieces of a convolution lie in a core."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.parameters import PARAMS, Param
from sley.runtime.kernels.conv.problem import Conv
from sley.runtime.kernels.conv.tiling import Tiling, patches

RUN_BITS = PARAMS[Param.RUN_BYTES].width
STRIDE_BITS = PARAMS[Param.ACT_STRIDE].width - 1


def up(size: int, unit: int) -> int:
    """``size`` rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


@dataclass(frozen=True)
class Placement:
    """Rows of the local memories that a tiling uses.

    In slot s fold f of the pixel in place (y, x) of the patch is in scratchpad row ``s * a_step + f * patch + y *
    pitch + x``; the weights of fold f and tap t of column tile p begin at ``b_base + s * b_step + (p * folds + f) *
    taps * N + t * N``. Sums of pixel i of column tile p are in accumulator row ``half * h + p * pixels + i``. Bias and
    scale of a macro tile, a row of each for a column tile in turn, are at the end of its half. Results that are made in
    the scratchpad have two places, ``out_step`` rows apart; ``halves`` column tiles share a row.
    """

    pitch: int
    patch: int
    a_step: int
    b_step: int
    b_base: int
    out_base: int
    out_step: int
    halves: int
    half: int
    values: int
    """Rows of the bias, and as many of the scale."""
    values_base: int
    fits: bool
    apart: bool
    """Whether activations, weights and results are in different banks."""

    @classmethod
    def of(cls, config: ChipConfig, problem: Conv, tiling: Tiling) -> "Placement":
        p, t, n = problem, tiling, config.array
        y, x = patches(p, t)
        patch = y.extent * x.extent
        a_step, b_step = patch * t.folds, t.wide * t.folds * t.taps_y * t.taps_x * n
        halves = config.lane_elements() if p.epilogue.result.bits == 8 and t.wide > 1 else 1
        made = up(t.wide, halves)
        out_step = made // halves * t.pixels if p.epilogue.narrow else 0
        a_rows, b_rows, out_rows = a_step * t.slots, b_step * t.slots, 2 * out_step
        bank = config.scratchpad_rows // config.scratchpad_banks
        apart = up(a_rows, bank) + up(b_rows, bank) + up(out_rows, bank) <= config.scratchpad_rows
        if not apart:
            bank = 1
        b_base = up(a_rows, bank)
        out_base = b_base + up(b_rows, bank)
        half = config.accumulator_rows // 2
        values = made
        values_base = half - values * p.epilogue.value_rows
        run = t.folds * config.row_bytes
        fits = (
            out_base + out_rows <= config.scratchpad_rows
            and made * t.pixels <= values_base
            and max(run, t.taps_y * t.taps_x * n * config.row_bytes, t.wide * n * 4) < 1 << RUN_BITS
            and max(y.stride * x.extent, patch, b_step) < 1 << STRIDE_BITS
        )
        return cls(
            x.extent,
            patch,
            a_step,
            b_step,
            b_base,
            out_base,
            out_step,
            halves,
            half,
            values,
            values_base,
            fits,
            apart,
        )
