"""Plans of random convolutions fit a core, and so do their programs."""

import random
from dataclasses import replace

import pytest
from gemm_chips import CHIPS, MORE_CHIPS

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType
from sley.runtime import KernelError
from sley.runtime.kernels.conv.kernel import conv_program
from sley.runtime.kernels.conv.mapping import bundle_groups, parts_of
from sley.runtime.kernels.conv.placement import Placement
from sley.runtime.kernels.conv.plan import plan
from sley.runtime.kernels.conv.problem import Axis, Conv, Steps
from sley.runtime.kernels.conv.tiling import Patch, tiling_text
from sley.runtime.kernels.epilogue import Epilogue

INT8, BF16 = ElementType.INT8, ElementType.BF16


def random_axis(rng: random.Random) -> Axis:
    size, taps, dilation = (
        rng.choice([1, 2, 7, 15, 31, 56, 113]),
        rng.choice([1, 1, 3, 3, 7, 11]),
        rng.choice([1, 1, 3]),
    )
    before, behind = rng.randint(0, 6), rng.randint(0, 6)
    window, stride = (taps - 1) * dilation + 1, rng.choice([1, 1, 2, 3, 5])
    behind = max(behind, window - size - before)
    return Axis(size, (size + before + behind - window) // stride + 1, taps, stride, dilation, before)


def random_problem(rng: random.Random, config: ChipConfig) -> tuple[Conv, int]:
    """With all that needs instructions: gaps between rows, epilogues, batches, groups."""
    operands = rng.choice(config.operand_types)
    results = [INT8, ElementType.FP32, *([BF16] if config.has(BF16) else [])]
    epilogue = Epilogue(
        rng.choice(results), rng.random() < 0.8, True, rng.random() < 0.5, scale_rows=rng.random() < 0.8
    )
    y, x, groups = random_axis(rng), random_axis(rng), rng.choice([1, 1, 1, 2, 5, 32])
    channels, outputs = rng.choice([1, 3, 7, 33, 100, 515]), rng.choice([1, 3, 17, 64, 130])
    pixel, out = channels * groups * operands.bytes + rng.choice([0, 3]), outputs * groups * epilogue.result.bytes
    steps = Steps(pixel, pixel * x.size, out, out * x.out + 5, pixel * x.size * y.size, (out * x.out + 5) * y.out)
    products, batch = y.taps * x.taps * channels, rng.choice([1, 2, 5])
    problem = Conv(y, x, channels * groups, outputs * groups, products, steps, operands, epilogue, batch)
    return problem, groups


@pytest.mark.some(4)
@pytest.mark.parametrize("config", [*CHIPS, *MORE_CHIPS], ids=lambda config: config.name)
def test_random_problems_fit(config: ChipConfig) -> None:
    rng = random.Random(config.name)
    for _ in range(12):
        problem, groups = random_problem(rng, config)
        for part in parts_of(config, problem, groups):
            found = plan(config, part.problem)
            place, t = Placement.of(config, part.problem, found.tiling), found.tiling
            assert place.fits, tiling_text(t)
            assert found.estimate > 0
            assert len(conv_program(config, part.problem, t).words) <= config.program_words


def test_a_chip_that_is_too_small() -> None:
    tiny = PRESETS["nano"].replace(program_words=64)
    axis = Axis(9, 9, 3, pad=1)
    problem = Conv(axis, axis, 8, 8, 72, Steps(8, 72, 8, 72))
    with pytest.raises(KernelError, match=r"no tiling of a convolution with 3 x 3 taps fits nano: .* 64 program words"):
        plan(tiny, problem)


@pytest.mark.parametrize("tile", [1, 3, 4, 9])
@pytest.mark.parametrize("taps", [1, 3])
def test_places_of_a_patch(tile: int, taps: int) -> None:
    """Places before, inside and behind are those that the definition of the axis says."""
    for stride, dilation, pad in ((1, 1, 0), (2, 1, 1), (3, 2, 4)):
        axis = Axis(7, 9, 3, stride, dilation, pad)
        patch = Patch(axis, tile, taps)
        for start in patch.starts:
            for tap in patch.groups:
                before, inside, behind = patch.part(start, tap)
                assert before + inside + behind == patch.extent
                for place in range(patch.extent):
                    pixel = start * stride - pad + tap * dilation + place
                    assert (0 <= pixel < 7) == (before <= place < before + inside)


def test_a_bundle_takes_the_fewest_passes() -> None:
    base = PRESETS["base"]
    assert bundle_groups(base, INT8, 1, 1, 128) == 32  # depthwise: a fold, two column tiles
    assert bundle_groups(base, INT8, 32, 16, 8) == 1
    assert bundle_groups(base, INT8, 4, 4, 32) in (4, 8)
    assert bundle_groups(base, BF16, 1, 1, 128) == 1


def test_cores_share_loads_where_all_make_as_many() -> None:
    quad = PRESETS["quad"]
    axis = Axis(28, 28, 3, pad=1)
    problem = Conv(axis, axis, 128, 128, 9 * 128, Steps(128, 28 * 128, 128, 28 * 128))
    tiling = plan(quad, problem).tiling
    assert tiling.gang
    assert "gang" in tiling_text(tiling)
    assert (28 // tiling.rows % quad.cores_y, 8 // tiling.wide % quad.cores_x) == (0, 0)
    assert not plan(quad, replace(problem, outputs=16)).tiling.gang
