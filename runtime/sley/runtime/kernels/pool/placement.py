"""Where the pieces of pooling lie in a core."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.runtime.kernels.conv.placement import RUN_BITS, STRIDE_BITS, up
from sley.runtime.kernels.conv.tiling import Tiling, patches
from sley.runtime.kernels.pool.problem import Pool


@dataclass(frozen=True)
class PoolPlacement:
    """Rows of the local memories that a tiling uses.

    In slot s fold f of the pixel in place (y, x) of the patch is in scratchpad row ``s * a_step + f * patch + y *
    pitch + x``. Half h of fold f of output pixel i is accumulated in accumulator row ``h * half + f * pixels + i``, and
    its result is made in scratchpad row ``out_base + place * out_step + f * pixels + i``; there are two places.
    """

    pitch: int
    patch: int
    a_step: int
    out_base: int
    out_step: int
    half: int
    fits: bool

    @classmethod
    def of(cls, config: ChipConfig, problem: Pool, tiling: Tiling) -> "PoolPlacement":
        t = tiling
        y, x = patches(problem, t)
        patch = y.extent * x.extent
        a_step, sums = patch * t.folds, t.folds * t.pixels
        a_rows = a_step * t.slots
        bank = config.scratchpad_rows // config.scratchpad_banks
        if up(a_rows, bank) + 2 * sums > config.scratchpad_rows:
            bank = 1
        base = up(a_rows, bank)
        fits = (
            base + 2 * sums <= config.scratchpad_rows
            and sums * problem.halves(config) <= config.accumulator_rows
            and t.folds * config.row_bytes < 1 << RUN_BITS
            and max(y.stride * x.extent, x.stride, patch) < 1 << STRIDE_BITS
        )
        return cls(x.extent, patch, a_step, base, sums, sums, fits)
