"""Products of views: operands and results with strides of their own, bit by bit, and nothing else is written."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

from sley.abi.config import PRESETS, ChipConfig
from sley.abi.types import ElementType
from sley.driver import Driver
from sley.runtime import Buffer, Device, blas
from sley.runtime.kernels.epilogue import Epilogue
from sley.runtime.kernels.gemm.launch import launch
from sley.runtime.kernels.gemm.placement import Placement
from sley.runtime.kernels.gemm.plan import plan
from sley.runtime.kernels.gemm.problem import Problem, Strides
from sley.runtime.kernels.gemm.stored import Stored
from sley.runtime.kernels.gemm.tiling import Plan, Tiling
from sley.sim.engines.model import ModelTransport
from sley.sim.golden import float32
from sley.sim.golden.gemm import gemm
from sley.sim.testing.product import random_bf16, random_product

Check = Callable[..., None]
Lay = Callable[..., Any]

TRANSPOSITIONS = list(product((False, True), repeat=2))
BATCHES = [(0, 0), (1, 1), (3, 3), (4, 0), (0, 4)]


@pytest.fixture
def device(config: ChipConfig) -> Iterator[Device]:
    with Device(Driver(ModelTransport(config, 1 << 21), hang_cycles=5_000)) as opened:
        yield opened


def types(config: ChipConfig) -> list[tuple[bool, str]]:
    """Operands of bf16 or not, and the results that they may have."""
    integer = [(False, result) for result in ("int32", "int8", "float32")]
    return (
        [*integer, *((True, result) for result in ("int8", "float32", "bfloat16"))]
        if config.has(ElementType.BF16)
        else integer
    )


@pytest.mark.some(8)
@pytest.mark.parametrize("trans", TRANSPOSITIONS, ids=str)
def test_types_batches_and_transpositions(device: Device, check: Check, trans: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(1 + 2 * trans[0] + trans[1])
    for (bf16, result), batch in product(types(device.config), BATCHES):
        sizes = tuple(int(x) for x in rng.integers(1, 24, 3))
        check(
            device, random_product(device.config, rng, sizes, bf16=bf16, result=result, trans=trans, batch=batch), rng
        )


@pytest.mark.some(12)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 37, 41), (37, 1, 41), (37, 41, 1), (1, 1, 67), (1, 67, 1), (67, 1, 1)]
)
def test_sizes_of_one(device: Device, check: Check, sizes: tuple[int, int, int], batch: tuple[int, int]) -> None:
    """Of one row, column or k what lies side by side may be either axis."""
    rng = np.random.default_rng(sum(sizes))
    for trans in TRANSPOSITIONS:
        check(device, random_product(device.config, rng, sizes, trans=trans, batch=batch), rng)


@pytest.mark.some(4)
@pytest.mark.parametrize("more", [0, 1])
def test_sizes_close_to_a_tile(device: Device, check: Check, more: int) -> None:
    rng, config = np.random.default_rng(more), device.config
    for bf16, trans in product((False, True) if config.has(ElementType.BF16) else (False,), TRANSPOSITIONS):
        deep = config.fold_depth(ElementType.BF16 if bf16 else ElementType.INT8)
        sizes = config.array * 2 + more, config.array + more, deep * 2 + more
        check(device, random_product(config, rng, sizes, bf16=bf16, trans=trans), rng)


@pytest.mark.some(4)
def test_primes(device: Device, check: Check) -> None:
    rng = np.random.default_rng(5)
    for trans in TRANSPOSITIONS:
        check(device, random_product(device.config, rng, (61, 43, 53), trans=trans, batch=(0, 0)), rng)


@pytest.mark.some(4)
def test_every_epilogue(
    device: Device, check: Check, epilogues: Callable[[ChipConfig, ElementType], list[Epilogue]]
) -> None:
    rng, config = np.random.default_rng(6), device.config
    for bf16 in (False, True) if config.has(ElementType.BF16) else (False,):
        for e in epilogues(config, ElementType.BF16 if bf16 else ElementType.INT8):
            m, n, k = (int(x) for x in rng.integers(1, 24, 3))
            batch = BATCHES[rng.integers(len(BATCHES))]
            case = random_product(config, rng, (m, n, k), bf16=bf16, result=e.result.info.numpy, batch=batch)
            bias = float32.to_bits(rng.normal(size=n)) if bf16 else rng.integers(-999, 999, n, np.int32)
            c = random_bf16(rng, case.shape, 2)
            case = replace(
                case,
                bias=bias if e.bias else None,
                scale=0.125 if e.scale else None,
                relu=e.relu,
                beta=1.5 if e.beta else None,
                c=None if not e.beta else float32.from_bf16(c) if e.result is ElementType.FP32 else c,
            )
            check(device, case, rng)


def test_columns_of_one_array(device: Device) -> None:
    """Operands and result take turns in the rows of one array, byte by byte."""
    rng = np.random.default_rng(7)
    host = rng.integers(-128, 128, (24, 70), np.int8)
    whole = device.array(host)
    a, b, out = (slice(0, 17), slice(17, 41), slice(41, 65))
    for trans in (False, True):
        blas.gemm(whole[:, a], whole[:17, b], scale=0.01, out=whole[:, out])
        host[:, out] = gemm(host[:, a], host[:17, b], "int8", scale=0.01)
        assert np.array_equal(whole.numpy(), host)
        rows = slice(0, 24, 2), slice(1, 24, 2)  # of 12 each
        blas.gemm(whole[rows[0], :12], whole[rows[0], 12:24], scale=0.02, trans_a=trans, out=whole[rows[1], :12])
        host[rows[1], :12] = gemm(host[rows[0], :12], host[rows[0], 12:24], "int8", scale=0.02, trans_a=trans)
        assert np.array_equal(whole.numpy(), host)


def test_attention(device: Device) -> None:
    """The heads of a layer lie side by side in the rows of q, k and v, and so does what each of them makes."""
    rng, (length, heads, size) = np.random.default_rng(8), (19, 3, 8)
    x = rng.integers(-128, 128, (length, 3 * heads * size), np.int8)
    q, k, v = (device.array(x).reshape(length, 3, heads, size)[:, i].transpose(1, 0, 2) for i in range(3))
    hq, hk, hv = (x.reshape(length, 3, heads, size)[:, i].transpose(1, 0, 2) for i in range(3))
    assert q.strides == hq.strides
    scores = blas.gemm(q, k.mT, scale=1 / 512)
    expected = gemm(hq, hk.transpose(0, 2, 1), "int8", scale=1 / 512)
    assert np.array_equal(scores.numpy(), expected)
    out = device.array(np.full((length, heads * size), 99, np.int8))
    blas.gemm(scores, v, scale=1 / 256, out=out.reshape(length, heads, size).transpose(1, 0, 2))
    expected = gemm(expected, hv, "int8", scale=1 / 256)
    assert np.array_equal(out.numpy(), expected.transpose(1, 0, 2).reshape(length, heads * size))


@pytest.mark.parametrize("kept", ["nothing", "a", "b"])
@pytest.mark.parametrize("bf16", [False, True])
def test_gangs_and_residents(lay: Lay, bf16: bool, kept: str) -> None:
    """Four cores share loads of views; operands that are loaded once have strides, too."""
    rng, kind = np.random.default_rng(9), ElementType.BF16 if bf16 else ElementType.INT8
    with Device.open("model:quad?memory=4M") as device:
        config = device.config
        chunk = 2 * config.fold_depth(kind)
        for batch, trans in product((1, 3) if kept == "nothing" else (1,), TRANSPOSITIONS):
            m, n, k = (int(x) for x in rng.integers(33, 80, 3))
            wide = -(-n // 32) * 16
            tiling = {
                "nothing": Tiling(-(-m // 2), wide, chunk, 2, (2, 2, 1), gang=True),
                "a": Tiling(m, wide, chunk, 3, (2, 1, 1), "a"),
                "b": Tiling(9, 2 * wide, chunk, 2, (1, 3, 1), "b"),
            }[kept]
            case = random_product(
                config, rng, (m, n, k), bf16=bf16, result="float32", trans=trans, batch=(batch, batch)
            )
            case = replace(case, bias=None, scale=0.5, beta=None, c=None, relu=False)
            arrays = [lay(device, rng, x, rows=True) for x in (case.a, case.b, np.zeros_like(case.expected))]
            views = [array.view for array in arrays]
            a, b, c = (Stored.of("x", view) for view in views)
            strides = Strides(a.row, b.row, c.row, a.batch, b.batch, c.batch)
            problem = Problem(m, n, k, kind, *trans, Epilogue(ElementType.FP32, scale=True), batch, strides=strides)
            assert Placement.of(config, problem, tiling).fits
            launch(device.stream, problem, Plan(problem, tiling, 0), views[0], views[1], views[2], 0.5)
            arrays[2].expect(case.expected, f"{problem} {tiling}")


# Problems


def test_what_means_the_same_is_the_same_problem() -> None:
    dense = Strides(7, 6, 6, 35, 42, 30)
    assert Problem(5, 6, 7, batch=3, strides=dense) == Problem(5, 6, 7, batch=3)
    assert Problem(5, 6, 7, strides=replace(dense, batch_a=1, batch_b=1, batch_c=1)) == Problem(5, 6, 7)
    assert Problem(1, 6, 7, strides=replace(dense, lda=99, ldc=99)) == Problem(1, 6, 7)
    assert Problem(5, 6, 7, batch=3, share_a=True, strides=replace(dense, batch_a=9)) == Problem(
        5, 6, 7, batch=3, share_a=True
    )
    apart = Problem(5, 6, 7, strides=replace(dense, ldc=8))
    assert apart != Problem(5, 6, 7)
    assert apart.steps == replace(dense, ldc=8)
    assert Problem(5, 6, 7, batch=2, share_b=True).steps.batch_b == 0


def test_a_column_with_gaps_is_not_swapped() -> None:
    assert Problem(9, 1, 5).swappable
    assert not Problem(9, 1, 5, strides=Strides(5, 1, 2, 45, 5, 18)).swappable
    row = Problem(1, 9, 5, trans_b=True, batch=2, strides=Strides(5, 8, 9, 11, 99, 20))
    assert row.swappable
    assert row.swapped().steps == Strides(8, 5, 1, 99, 11, 20)
    assert row.swapped().swapped() == row


def test_one_layout_makes_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the arrays describe it. Rows of products that follow one another are one product."""
    seen: list[Problem] = []

    def kept(stream: Any, problem: Problem, plan: Plan, *more: Any) -> None:
        seen.append(problem)

    monkeypatch.setattr(import_module("sley.runtime.nn.gemm"), "launch", kept)
    with Device.open("model:nano?memory=1M") as device:

        def problem(a: Buffer, b: Buffer, **options: Any) -> Problem:
            blas.gemm(a, b, **options)
            return seen[-1]

        x, w = device.empty((4, 6, 8), np.int8), device.empty((8, 5), np.int8)
        assert problem(x, w) == Problem(24, 5, 8, strides=None)
        assert problem(x[:, :, :7], w[:7]) == Problem(24, 5, 7, strides=Strides(8, 5, 5, 0, 0, 0))
        assert problem(x[:, :5], w) == Problem(5, 5, 8, batch=4, share_b=True, strides=Strides(8, 5, 5, 48, 0, 25))
        assert problem(x[:, :1], w) == Problem(4, 5, 8, strides=Strides(48, 5, 5, 0, 0, 0))
        assert problem(x.mT, w[:6], trans_a=False).trans_a
        assert problem(x.mT, w, trans_a=True) == Problem(24, 5, 8)
        assert problem(w.T, x.mT, trans_b=False) == Problem(5, 6, 8, trans_a=True, trans_b=True, batch=4, share_a=True)
        assert problem(x[0], w[:, :1]) == Problem(6, 1, 8, strides=Strides(8, 5, 1, 0, 0, 0))
        assert problem(x[0], device.empty((8, 1), np.int8)) == Problem(6, 1, 8, trans_b=True)


def test_strides_of_plans() -> None:
    """Gaps between rows that begin with a beat of the bus never make a plan faster, and what is needed stays."""
    for name, trans in product(("base", "quad"), TRANSPOSITIONS):
        dense = Problem(192, 304, 96, ElementType.INT8, *trans)
        s = dense.steps
        apart = replace(dense, strides=replace(s, lda=s.lda + 64, ldb=s.ldb + 64, ldc=s.ldc + 16))
        assert plan(PRESETS[name], apart).estimate >= plan(PRESETS[name], dense).estimate
        assert (apart.macs, apart.read_bytes, apart.written_bytes) == (
            dense.macs,
            dense.read_bytes,
            dense.written_bytes,
        )
