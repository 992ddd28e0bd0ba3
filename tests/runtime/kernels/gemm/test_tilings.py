"""Random tilings, not only those that a plan would choose: cut anyhow, the result is the same in every bit."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig, preset
from sley.abi.types import ElementType
from sley.driver import Driver
from sley.runtime import Buffer, Device
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.stored import Stored
from sley.runtime.kernels.gemm.tiling import Plan, Tiling
from sley.sim.engines.design_text import cached_rtlil
from sley.sim.engines.fast import FastTransport
from sley.sim.engines.model import ModelTransport
from sley.sim.engines.options import EngineOptions, default_engine
from sley.sim.testing.product import Product, random_product

Put = Callable[[Device, np.ndarray], Buffer]
Lay = Callable[..., Any]

SQUARE = preset("nano").replace(name="square", cores_x=2, cores_y=2)

needs_compiler = pytest.mark.skipif(default_engine() != "fast", reason="no C compiler")


def problem_of(case: Product) -> Problem:
    m, k = case.a.shape[-2:][:: -1 if case.trans_a else 1]
    n = case.b.shape[-2 if case.trans_b else -1]
    batch = max(x.shape[0] if x.ndim == 3 else 1 for x in (case.a, case.b))
    return Problem(
        m,
        n,
        k,
        ElementType.BF16 if case.a.dtype == np.uint16 else ElementType.INT8,
        case.trans_a,
        case.trans_b,
        Epilogue(
            ElementType.of(case.result),
            case.bias is not None,
            case.scale is not None,
            case.relu,
            case.beta is not None,
            isinstance(case.scale, np.ndarray),
        ),
        batch,
        batch > 1 and case.a.ndim == 2,
        batch > 1 and case.b.ndim == 2,
    )


def possible(problem: Problem) -> bool:
    """Whether there is such an epilogue: without a scale, sums of int8 stay what they are."""
    p = problem
    return p.epilogue.scale or p.dtype is ElementType.BF16 or p.epilogue.result is ElementType.INT32


def random_tiling(config: ChipConfig, problem: Problem, rng: np.random.Generator) -> Tiling:
    """Any tiling that fits, all blocks with work to do."""
    p, n, deep = problem, config.array, config.fold_depth(problem.dtype)
    tried = 0
    once = [""] + ["a"] * (p.batch == 1 or p.share_a) + ["b"] * (p.batch == 1 or p.share_b)

    def upto(limit: int) -> int:
        """Often small, and often all there is."""
        return limit if rng.random() < 0.2 else int(np.exp(rng.uniform(0, np.log(limit + 1))))

    while True:
        tried += 1
        resident = str(rng.choice(once))
        tile_m = p.m if resident == "a" else upto(p.m)
        tile_n = n * (-(-p.n // n) if resident == "b" else upto(-(-p.n // n)))
        x = int(rng.integers(1, min(config.cores, -(-p.n // tile_n)) + 1))
        y = int(rng.integers(1, min(config.cores // x, -(-p.m // tile_m)) + 1)) if p.batch == 1 else 1
        z = int(rng.integers(1, min(config.cores // (x * y), p.batch) + 1))
        gang = config.cores > 1 and resident != "b" and rng.random() < 0.5 and tried < 100
        if gang:
            x, y, z = config.cores_x, config.cores_y, 1
        depth, slots = -(-p.k // deep), int(rng.integers(2, 5))
        # Often as many chunks as slots: the last slot is then as large as the last chunk.
        chunk = deep * (-(-depth // slots) if rng.random() < 0.3 else upto(depth))
        tiling = Tiling(tile_m, tile_n, chunk, slots, (x, y, z), resident, gang)
        if resident == "a" and p.k > deep and not gang and rng.random() < 0.5:
            tiling = replace(tiling, chunk=deep, slots=2, margin=2 + upto(tile_n // n))
        if Placement.of(config, p, tiling).fits:
            return tiling


def check_random_tiling(device: Device, put: Put, lay: Lay, rng: np.random.Generator, largest: int) -> None:
    """Of dense arrays, or of views."""
    config = device.config
    m, n, k = (int(x) for x in np.exp(rng.uniform(0, np.log(largest + 1), 3)))
    case = random_product(config, rng, (m, n, k))
    problem = problem_of(case)
    if not possible(problem):
        return
    if rng.random() < 0.5:
        check_tiling(device, put, case, random_tiling(config, problem, rng))
        return
    expected = case.expected
    bits = [case.a, case.b, np.full_like(expected, 0x55) if case.c is None else case.c]
    arrays = [lay(device, rng, x, rows=True) for x in bits]
    a, b, c = (Stored.of("x", array.view) for array in arrays)
    problem = replace(problem, strides=Strides(a.row, b.row, c.row, a.batch, b.batch, c.batch))
    tiling = random_tiling(config, problem, rng)
    run(device, put, case, problem, tiling, [array.view for array in arrays])
    arrays[2].expect(expected, f"{problem} {tiling}")


def check_tiling(device: Device, put: Put, case: Product, tiling: Tiling) -> None:
    problem, expected = problem_of(case), case.expected
    out = put(device, np.full_like(expected, 0x55) if case.c is None else case.c)
    run(device, put, case, problem, tiling, [put(device, case.a), put(device, case.b), out])
    np.testing.assert_array_equal(out.numpy().view(expected.dtype), expected, err_msg=f"{problem} {tiling}")


def run(device: Device, put: Put, case: Product, problem: Problem, tiling: Tiling, arrays: list[Buffer]) -> None:
    a, b, out = arrays
    values = [value for value in (case.bias, case.scale, case.beta) if value is not None]
    more = [put(device, value) if isinstance(value, np.ndarray) else float(value) for value in values]
    launch(device.stream, problem, Plan(problem, tiling, 0), a, b, out, *more)


@pytest.fixture
def model(config: ChipConfig) -> Iterator[Device]:
    with Device(Driver(ModelTransport(config, 1 << 21), hang_cycles=5_000)) as opened:
        yield opened


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(config, id=name, marks=[] if name in ("nano", "base") else pytest.mark.slow)
        for name, config in {**PRESETS, "square": SQUARE}.items()
    ],
)
def compiled(request: pytest.FixtureRequest) -> Iterator[Device]:
    config: ChipConfig = request.param
    transport = FastTransport(cached_rtlil(config), config.bus_bytes, EngineOptions(memory=1 << 22))
    with Device(Driver(transport, hang_cycles=20_000)) as device:
        yield device


@pytest.mark.parametrize("seed", range(4))
def test_random_tilings(model: Device, put: Put, lay: Lay, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(10):
        check_random_tiling(model, put, lay, rng, 50)


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        "nano",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("edge", "base")),
        pytest.param("quad", marks=pytest.mark.campaign),
    ],
)
def test_margins(put: Put, name: str) -> None:
    """Chunks and macro tiles of many widths, the last chunk short or not: no chunk is loaded over another's weights,
    even if memory is fast and products of a column tile are slow."""
    rng, seen = np.random.default_rng(6), 0
    with Device.open(f"fast:{name}?memory=4M&latency=1&burst_gap=0", hang_cycles=20_000) as device:
        config, n = device.config, device.config.array
        while seen < 40:
            wide, margin, rows = (int(rng.integers(*ends)) for ends in ((2, 13), (2, 7), (1, 80)))
            bf16 = config.has(ElementType.BF16) and bool(rng.integers(2))
            deep = n if bf16 else config.fold_depth()
            columns, k = int(rng.integers(1, 3 * wide * n)), int(rng.integers(deep + 1, 6 * deep))
            case = random_product(config, rng, (rows, columns, k), bf16=bf16, trans=(False, False), batch=(0, 0))
            case = replace(case, bias=None)
            problem, grid = problem_of(case), (min(config.cores, -(-columns // (wide * n))), 1, 1)
            tiling = Tiling(rows, wide * n, deep, 2, grid, "a", margin=margin)
            if possible(problem) and Placement.of(config, problem, tiling).fits:
                check_tiling(device, put, case, tiling)
                seen += 1


@needs_compiler
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_random_tilings_compiled(compiled: Device, put: Put, lay: Lay, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        check_random_tiling(compiled, put, lay, rng, 80)
