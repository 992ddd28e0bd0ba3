"""Attention on arrays: every bit against the golden function, the error against float64, bad input."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from small_chain_chip import small_chip

from sley.abi.config import PRESETS
from sley.driver import BadRequest
from sley.runtime import Buffer, Device, KernelError, ShapeMismatch, UnsupportedType, nn
from sley.runtime.kernels.attention.problem import key_block, tile_sizes
from sley.runtime.nn.attention import exponent_factor
from sley.sim.engines.options import default_engine
from sley.sim.golden.attention import attention as golden

Array = NDArray[Any]

SIZES = (1, 17, 64, 65, 200)
ERROR = 3 * 2.0**-8
"""Of the sum of p * |v|: p is rounded to bf16 above and below the line, and the result once more."""
MEMORY = "memory=8M"


@pytest.fixture(scope="module")
def model() -> Iterator[Device]:
    with Device.open(f"model:base?{MEMORY}") as device:
        yield device


def operands(seed: int, q: tuple[int, ...], keys: int, spread: float = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    shapes = q, (*q[:2], keys, q[3]), (*q[:2], keys, q[3])
    return [(spread * rng.standard_normal(shape)).astype(bfloat16) for shape in shapes]


def expected(device: Device, given: list[Array], causal: bool = False, scale: float | None = None) -> Array:
    dim = given[0].shape[-1]
    return golden(
        *(x.view(np.uint16) for x in given),
        factor=exponent_factor(scale, dim).view(np.uint32),
        key_block=key_block(device.config, dim),
        group=device.config.array,
        causal=causal,
    )


def bits(array: Buffer) -> Array:
    return array.numpy().view(np.uint16)


def check(device: Device, given: list[Array], causal: bool = False, scale: float | None = None) -> None:
    found = nn.attention(*(device.array(x) for x in given), causal=causal, scale=scale)
    assert (found.shape, found.dtype) == (given[0].shape, bfloat16)
    np.testing.assert_array_equal(bits(found), expected(device, given, causal, scale))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_every_bit(model: Device, dim: int, causal: bool) -> None:
    pairs = product(SIZES, SIZES) if dim == 64 else [(1, 200), (17, 65), (64, 64), (65, 17), (200, 200)]
    for queries, keys in pairs:
        check(model, operands(queries + keys, (1, 1, queries, dim), keys), causal)


@pytest.mark.parametrize("dim", [16, 32, 48, 80, 96, 112])
def test_head_dimensions(model: Device, dim: int) -> None:
    check(model, operands(dim, (1, 2, 70, dim), 150), causal=dim % 32 == 0)


@pytest.mark.some(6)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("shape", "keys"), [((2, 3, 50, 64), 50), ((1, 5, 7, 64), 33), ((3, 1, 113, 128), 65)])
@pytest.mark.parametrize("chip", ["base", "quad"])
def test_batches_and_heads_on_all_cores(shape: tuple[int, ...], keys: int, chip: str, causal: bool) -> None:
    with Device.open(f"model:{chip}?{MEMORY}") as device:
        check(device, operands(keys, shape, keys), causal)


def test_an_array_of_another_size(tmp_path: Path) -> None:
    config = PRESETS["base"].replace(name="small", array=8, vector_lanes=8)
    path = tmp_path / "small.json"
    path.write_text(config.to_json())
    with Device.open(f"model:{path}?{MEMORY}") as device:
        check(device, operands(1, (1, 2, 77, 64), 130), causal=True)
        check(device, operands(2, (1, 1, 30, 24), 65))


def test_tiles() -> None:
    assert [tile_sizes(16, n) for n in (1, 48, 64, 65)] == [[1], [48], [32, 32], [48, 17]]
    assert all(sum(tile_sizes(16, n)) == n for n in range(1, 300))


@pytest.mark.skipif(default_engine() != "fast", reason="needs a compiler")
def test_compiled_gateware() -> None:
    with Device.open(f"fast:base?{MEMORY}") as device:
        for queries, keys, dim, causal in (
            (1, 1, 64, True),
            (17, 200, 64, False),
            (65, 64, 64, True),
            (200, 200, 64, True),
            (64, 65, 128, False),
            (200, 65, 128, True),
            (50, 300, 16, False),
        ):
            check(device, operands(queries, (1, 2, queries, dim), keys), causal)


@pytest.mark.skipif(default_engine() != "fast", reason="needs a compiler")
@pytest.mark.parametrize("engine", ["model", pytest.param("fast", marks=pytest.mark.slow)])
def test_a_small_chip_with_short_queues(tmp_path: Path, engine: str) -> None:
    with Device.open(f"{engine}:{small_chip(tmp_path)}?{MEMORY}") as device:
        for queries, keys, dim, causal in (
            (1, 1, 4, False),
            (17, 70, 8, False),
            (50, 50, 16, True),
            (30, 90, 16, True),
        ):
            check(device, operands(queries, (1, 2, queries, dim), keys), causal)


@pytest.mark.parametrize("causal", [False, True])
def test_error_against_float64(model: Device, causal: bool) -> None:
    for dim, spread in ((64, 1.0), (128, 1.0), (64, 4.0)):
        given = operands(dim, (1, 2, 130, dim), 130, spread)
        found = nn.attention(*(model.array(x) for x in given), causal=causal).numpy().astype(np.float64)
        q, k, v = (x.astype(np.float64) for x in given)
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(dim)
        if causal:
            scores = np.where(np.tri(130, dtype=bool), scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        assert (abs(found - p @ v) <= ERROR * (p @ abs(v))).all()


def test_scores_far_apart_do_not_overflow(model: Device) -> None:
    given = operands(3, (1, 1, 65, 64), 200, 1000.0)
    found = nn.attention(*(model.array(x) for x in given), scale=100.0)
    np.testing.assert_array_equal(bits(found), expected(model, given, scale=100.0))
    assert np.isfinite(found.numpy().astype(np.float32)).all()


@pytest.mark.parametrize("causal", [False, True])
def test_special_values(model: Device, causal: bool) -> None:
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-40]
    rng = np.random.default_rng(5)
    for seed in range(4):
        given = operands(seed, (1, 2, 40, 64), 140)
        for array in given:
            at = rng.random(array.shape) < 0.001
            array[at] = rng.choice(values, at.sum()).astype(bfloat16)
        check(model, given, causal)


def test_what_no_query_sees_changes_nothing(model: Device) -> None:
    q, k, v = operands(6, (1, 1, 48, 64), 200)
    k[..., 48:, :], v[..., 48:, :] = np.inf, np.nan
    found = nn.attention(*(model.array(x) for x in (q, k, v)), causal=True)
    part = nn.attention(*(model.array(np.ascontiguousarray(x[..., :48, :])) for x in (q, k, v)), causal=True)
    np.testing.assert_array_equal(bits(found), bits(part))


def test_tiling_over_cores_changes_no_bit(model: Device) -> None:
    given = operands(7, (1, 1, 200, 64), 200)
    with Device.open(f"model:quad?{MEMORY}") as quad:
        found = [bits(nn.attention(*(d.array(x) for x in given), causal=True)) for d in (model, quad)]
    np.testing.assert_array_equal(*found)


def test_views(model: Device) -> None:
    """q, k and v in the rows of one array, as a layer of a network makes them; results between other values."""
    rows, heads, dim = 70, 3, 64
    rng = np.random.default_rng(8)
    host = rng.standard_normal((1, rows, 3, heads, dim)).astype(bfloat16)
    packed = model.array(host)
    parts = [packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    target = model.array(np.full((1, rows, heads, 2 * dim), 7, bfloat16))
    nn.attention(*parts, out=target[..., :dim].transpose(0, 2, 1, 3))
    given = [np.ascontiguousarray(host[:, :, i].transpose(0, 2, 1, 3)) for i in range(3)]
    found = target.numpy()
    np.testing.assert_array_equal(found[..., :dim].transpose(0, 2, 1, 3).view(np.uint16), expected(model, given))
    assert (found[..., dim:] == 7).all()


def test_streams_and_graphs(model: Device) -> None:
    given = operands(9, (1, 1, 20, 64), 30)
    arrays = [model.array(x) for x in given]
    out = model.empty(given[0].shape, bfloat16)
    with model.stream.capture() as graph:
        assert nn.attention(*arrays, out=out) is out
    graph.launch()
    np.testing.assert_array_equal(bits(out), expected(model, given))
    np.testing.assert_array_equal(bits(nn.attention(*arrays, stream=model.streams[1])), bits(out))


def test_bad_input(model: Device) -> None:
    q, k, v = (model.array(x) for x in operands(10, (1, 2, 20, 64), 30))
    cases: list[tuple[type[Exception], str, list[Any], dict[str, Any]]] = [
        (UnsupportedType, "q is ndarray", [np.zeros((1, 2, 20, 64)), k, v], {}),
        (UnsupportedType, "k is float32", [q, model.zeros((1, 2, 30, 64), np.float32), v], {}),
        (UnsupportedType, "out is int", [q, k, v], {"out": 3}),
        (UnsupportedType, "stream is 'x'", [q, k, v], {"stream": "x"}),
        (ShapeMismatch, r"q has shape \(2, 20, 64\)", [q.reshape(2, 20, 64), k, v], {}),
        (ShapeMismatch, "k has shape .* and v", [q, k, v[:, :, :20]], {}),
        (ShapeMismatch, "batch, heads and dim", [q[:, :1], k, v], {}),
        (ShapeMismatch, "dim is 40", [x[..., :40] for x in (q, k, v)], {}),
        (ShapeMismatch, "out is", [q, k, v], {"out": k}),
        (BadRequest, "out shares memory with q", [q, k, v], {"out": q}),
        (BadRequest, "scale is 0", [q, k, v], {"scale": 0}),
        (BadRequest, "scale is -1", [q, k, v], {"scale": -1.0}),
        (BadRequest, "scale is nan", [q, k, v], {"scale": float("nan")}),
        (BadRequest, "scale is 'x'", [q, k, v], {"scale": "x"}),
        (BadRequest, "scale is inf", [q, k, v], {"scale": float("inf")}),
    ]
    for error, text, arrays, options in cases:
        with pytest.raises(error, match=text):
            nn.attention(*arrays, **options)
    long = [model.zeros((2, 2, 20, 128), bfloat16)[..., :64] for _ in range(3)]
    nn.attention(*long)
    with pytest.raises(BadRequest, match="and heads of all batches"):
        nn.attention(*(model.zeros((2, 20, 2, 64), bfloat16).transpose(0, 2, 1, 3) for _ in range(3)))


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"operand_types": ("int8",)}, UnsupportedType, "int8 only"),
        ({"vector_functions": ("exp2",)}, UnsupportedType, "needs reciprocal"),
        ({"vector_chains": 8}, UnsupportedType, "takes 12 chains"),
        ({"scratchpad_rows": 1024}, KernelError, "does not fit"),
        ({"accumulator_rows": 256}, KernelError, "does not fit"),
    ],
)
def test_chips_that_cannot(tmp_path: Path, changes: dict[str, Any], error: type[Exception], text: str) -> None:
    path = tmp_path / "chip.json"
    path.write_text(PRESETS["base"].replace(name="chip", **changes).to_json())
    with Device.open(f"model:{path}?{MEMORY}") as device:
        array = device.zeros((1, 1, 8, 64), bfloat16)
        with pytest.raises(error, match=text):
            nn.attention(array, array, array)
