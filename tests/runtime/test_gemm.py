import os

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.driver.device import Driver
from sley.runtime import blas
from sley.runtime.device import Device
from sley.runtime.gemm.kernel import Epilogue, gemm_program
from sley.runtime.gemm.plan import BIAS_SLOTS, Regions, lower_bound, plan

ROUNDS = int(os.environ.get("SLEY_TEST_ROUNDS", "4"))
CORNERS = [(1, 1, 1), (1, 70, 1), (70, 1, 1), (1, 1, 70), (1, 70, 70), (70, 70, 1), (17, 33, 65), (64, 64, 64)]


def requantise(sums: np.ndarray, bias: np.ndarray, scale: float, relu: bool) -> np.ndarray:
    values = (sums + bias).astype(np.float32) * np.float32(scale)
    return np.clip(np.rint(np.maximum(values, 0) if relu else values), -128, 127).astype(np.int8)


def check(device: Device, m: int, n: int, k: int, seed: int) -> None:
    """Both kinds of result against numpy, bit by bit; neighbours of the result stay untouched."""
    random = np.random.default_rng(seed)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    bias = random.integers(-(2**20), 2**20, n, np.int32)
    relu, scale = bool(seed % 2), float(random.uniform(0.2, 4) / (64 * np.sqrt(k)))
    on_device = device.array(a), device.array(b)
    sums = a.astype(np.int32) @ b.astype(np.int32)
    outs = [
        (device.empty((m, n), np.int32), sums),
        (device.empty((m, n), np.int8), requantise(sums, bias, scale, relu)),
    ]
    memory, slack = device.driver.transport, {out.address + out.nbytes: -out.nbytes % 64 for out, _ in outs}
    for address, length in slack.items():
        memory.write_memory(address, b"Z" * length)
    blas.gemm(*on_device, out=outs[0][0])
    blas.gemm(*on_device, bias, scale, relu, out=outs[1][0])
    for out, expected in outs:
        assert np.array_equal(out.numpy(), expected), (m, n, k, seed, out.dtype)
    assert all(memory.read_memory(address, length) == b"Z" * length for address, length in slack.items())


@pytest.mark.parametrize("case", range(ROUNDS))
def test_random_shapes(device: Device, case: int) -> None:
    shape = np.random.default_rng(case).integers(1, 71 if device.config.array > 4 else 31, 3)
    check(device, *map(int, shape), seed=case)


@pytest.mark.parametrize("shape", CORNERS, ids=str)
def test_corners(device: Device, shape: tuple[int, int, int]) -> None:
    if device.config.array == 4 and shape[0] * shape[1] * shape[2] > 20_000:
        shape = (13, 21, 34)
    check(device, *shape, seed=sum(shape))


def test_extreme_values_do_not_wrap(device: Device) -> None:
    a, b = np.full((3, 300), -128, np.int8), np.full((300, 5), -128, np.int8)
    c = blas.gemm(device.array(a), device.array(b)).numpy()
    assert (c == 300 * 128 * 128).all()
    low = blas.gemm(device.array(a), device.array(b), scale=-1e9).numpy()
    assert (low == -128).all()


def test_rounding_is_half_to_even(device: Device) -> None:
    a = np.arange(-20, 20, dtype=np.int8).reshape(-1, 1)
    c = blas.gemm(device.array(a), device.array(np.ones((1, 1), np.int8)), scale=0.5).numpy()
    assert np.array_equal(c, np.rint(a / 2).astype(np.int8))


def test_queued_gemms_feed_each_other(device: Device) -> None:
    random = np.random.default_rng(5)
    x, w, v = (random.integers(-128, 128, shape, np.int8) for shape in ((9, 20), (20, 30), (30, 11)))
    hidden = blas.gemm(device.array(x), device.array(w), scale=1 / 300, relu=True)
    result = blas.gemm(hidden, device.array(v))
    sums = x.astype(np.int32) @ w.astype(np.int32)
    h = requantise(sums, np.zeros(30, np.int32), 1 / 300, True)
    assert np.array_equal(result.numpy(), h.astype(np.int32) @ v.astype(np.int32))


ODD_CHIPS = [
    ChipConfig(name="int8_16", array=16, scratchpad_rows=256, accumulator_rows=64),
    ChipConfig(name="two_banks", bf16=True, scratchpad_rows=32, scratchpad_banks=1, accumulator_rows=16, unit_queue=2),
    ChipConfig(name="row_of_3", array=8, cores_x=3, scratchpad_rows=128, accumulator_rows=32, queues=1),
]


@pytest.mark.parametrize("config", ODD_CHIPS, ids=lambda c: c.name)
def test_chips_that_are_no_preset(config: ChipConfig) -> None:
    model = pytest.importorskip("sley.sim.engines.model")
    with Device(Driver(model.ModelTransport(config, 1 << 20), hang_cycles=5_000)) as device:
        for case in range(3):
            check(device, *map(int, np.random.default_rng(case).integers(1, 41, 3)), seed=case)


@pytest.mark.parametrize("config", [*PRESETS.values(), *ODD_CHIPS], ids=lambda c: c.name)
@pytest.mark.parametrize("int8", [False, True])
def test_plans_fit_the_chip(config: ChipConfig, int8: bool) -> None:
    regions = Regions.of(config, int8)
    random = np.random.default_rng(3)
    shapes = [tuple(int(2**e) for e in random.uniform(0, 11, 3)) for _ in range(60)]
    for m, n, k in [*shapes, (1, 1, 1), (4096, 4096, 4096)]:
        cut = plan(config, m, n, k, int8)
        wide, rest = divmod(cut.tile_n, config.array)
        pairs, folds = -(-wide // config.lane_elements), cut.chunk // config.fold_depth
        assert rest == 0
        assert cut.chunk % config.fold_depth == cut.first_chunk % config.fold_depth == 0
        assert config.fold_depth <= cut.first_chunk <= cut.chunk
        assert cut.tile_m * folds <= regions.a_slot
        assert pairs * cut.chunk <= regions.b_slot
        assert cut.tile_m * wide + (BIAS_SLOTS * wide if int8 else 0) <= regions.half
        assert not int8 or cut.tile_m * pairs <= regions.out_slot
        assert cut.grid[0] * cut.grid[1] <= config.cores
        assert cut.grid[0] <= -(-n // cut.tile_n)
        assert cut.grid[1] <= -(-m // cut.tile_m)


def test_large_problems_use_all_cores() -> None:
    for int8 in (False, True):
        x, y = plan(PRESETS["quad"], 512, 512, 512, int8).grid
        assert x * y == 4


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda c: c.name)
def test_programs_fit_and_are_made_once(config: ChipConfig) -> None:
    for epilogue in (Epilogue(), Epilogue(int8=True), Epilogue(int8=True, relu=True)):
        program = gemm_program(config, epilogue)
        assert len(program.words) <= config.program_words
        assert gemm_program(config, epilogue) is program


def test_lower_bound() -> None:
    bound = lower_bound(PRESETS["base"], 256, 256, 256, int8_out=False)
    assert (bound.compute, bound.read, bound.write) == (32768, 4096, 8192)
    assert bound.cycles == 32768
    assert lower_bound(PRESETS["base"], 1, 512, 512, int8_out=True).cycles == 16 + 8192
