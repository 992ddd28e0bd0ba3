"""Attention of int8: every bit against the golden function, steps against float64, bad input."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_steps import judged_steps
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from sley.abi.config import PRESETS
from sley.driver import BadRequest
from sley.runtime import Buffer, Device, ShapeMismatch, UnsupportedType, nn
from sley.runtime.kernels.attention.problem import key_block
from sley.runtime.nn.attention import exponent_factor
from sley.sim.engines.options import default_engine
from sley.sim.golden import float32
from sley.sim.golden.attention import quantized_attention as golden

Array = NDArray[Any]
SIZES = (1, 17, 32, 65, 200)
MEMORY = "memory=8M"
BF16, INT8, UINT8 = np.dtype(bfloat16), np.dtype(np.int8), np.dtype(np.uint8)
CONVERT: dict[Any, Callable[[Any], Array]] = {
    BF16: float32.to_bf16,
    INT8: float32.to_int8,
    UINT8: lambda x: float32.saturate_uint8(float32.to_int32(x)),
}


@pytest.fixture(scope="module")
def model() -> Iterator[Device]:
    with Device.open(f"model:base?{MEMORY}") as device:
        yield device


def operands(seed: int, q: tuple[int, ...], keys: int, heads: int | None = None) -> list[Array]:
    rng = np.random.default_rng(seed)
    shape = (q[0], heads or q[1], keys, q[3])
    return [rng.integers(-128, 128, one, dtype=np.int8) for one in (q, shape, shape)]


def check(
    device: Device,
    given: list[Array],
    scales: tuple[float, float, float] = (0.004, 0.005, 0.02),
    kind: Any = INT8,
    causal: bool = False,
    zeros: tuple[float, float] = (0.0, 0.0),
    arrays: list[Buffer] | None = None,
) -> Buffer:
    """``zeros``: of v and of the result."""
    to, dim = None if kind == BF16 else 0.01, given[0].shape[-1]
    more: Any = {"causal": causal, "dtype": kind, "v_zero_point": zeros[0], "out_zero_point": zeros[1]}
    found = nn.quantized_attention(*(arrays or map(device.array, given)), *scales, to, **more)
    share = np.float32(scales[2] / (to or 1.0))
    wanted = golden(
        *given,
        factor=exponent_factor(1 / np.sqrt(dim) * scales[0] * scales[1], dim).view(np.uint32),
        result_factor=share.view(np.uint32),
        shift=np.float32(zeros[1] - zeros[0] * float(share)).view(np.uint32),
        convert=CONVERT[kind],
        key_block=key_block(device.config, dim),
        group=device.config.array,
        causal=causal,
    )
    assert (found.dtype, found.shape) == (kind, given[0].shape)
    np.testing.assert_array_equal(found.numpy().view(wanted.dtype), wanted)
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_every_bit(model: Device, causal: bool) -> None:
    for number, (queries, keys) in enumerate(product(SIZES, SIZES)):
        kind = (INT8, UINT8, BF16)[number % 3]
        zeros = (float(number % 5), 0.0 if kind == BF16 else 3.0)
        check(model, operands(number, (1, 1, queries, 64), keys), kind=kind, causal=causal, zeros=zeros)


@pytest.mark.parametrize("dim", [32, 96, 128])
def test_head_dimensions(model: Device, dim: int) -> None:
    check(model, operands(dim, (1, 2, 70, dim), 150), causal=dim % 64 == 0)


@pytest.mark.parametrize("causal", [False, True])
def test_batches_and_heads_on_all_cores(causal: bool) -> None:
    with Device.open(f"model:quad?{MEMORY}") as device:
        check(device, operands(3, (2, 3, 70, 64), 50), causal=causal)


def test_an_array_of_another_size(tmp_path: Path) -> None:
    config = PRESETS["base"].replace(name="small", array=8, vector_lanes=8)
    path = tmp_path / "small.json"
    path.write_text(config.to_json())
    with Device.open(f"model:{path}?{MEMORY}") as device:
        check(device, operands(1, (1, 2, 77, 64), 130), causal=True)
        check(device, operands(2, (1, 1, 30, 16), 65))


@pytest.mark.skipif(default_engine() != "fast", reason="needs a compiler")
def test_compiled_gateware() -> None:
    with Device.open(f"fast:base?{MEMORY}") as device:
        for queries, keys, dim, causal in ((1, 1, 64, True), (65, 200, 64, True), (64, 65, 128, False)):
            check(device, operands(queries, (1, 2, queries, dim), keys), causal=causal)


def test_extremes(model: Device) -> None:
    """All sums as large as they get, of both signs; weights that vanish; results that saturate."""
    rng = np.random.default_rng(4)
    for scales in ((1.0, 1.0, 1.0), (1e-6, 1e-6, 1e-6), (30.0, 30.0, 1e6)):
        given = [rng.choice(np.array([-128, 127], np.int8), (1, 1, 70, 128)) for _ in range(3)]
        for kind in (INT8, UINT8, BF16):
            check(model, given, scales, kind)
    same = [np.full((1, 1, 70, 128), -128, np.int8)] * 3
    check(model, same, (1.0, 1.0, 1.0), causal=True)
    against = [same[0], np.full((1, 1, 70, 128), 127, np.int8), same[0]]
    check(model, against, (1.0, 1.0, 1.0), causal=True)


def test_views(model: Device) -> None:
    """q, k and v in the rows of one array, as a layer of a network makes them; results between other values."""
    rows, heads, dim = 70, 3, 64
    host = np.random.default_rng(8).integers(-128, 128, (1, rows, 3, heads, dim), dtype=np.int8)
    packed = model.array(host)
    parts = [packed[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    given = [np.ascontiguousarray(host[:, :, i].transpose(0, 2, 1, 3)) for i in range(3)]
    wanted = check(model, given, arrays=parts).numpy()
    target = model.array(np.full((1, rows, heads, 2 * dim), 7, np.int8))
    result = target[..., :dim].transpose(0, 2, 1, 3)
    nn.quantized_attention(*parts, 0.004, 0.005, 0.02, 0.01, out=result)
    np.testing.assert_array_equal(target.numpy()[..., :dim].transpose(0, 2, 1, 3), wanted)
    assert (target.numpy()[..., dim:] == 7).all()


def test_scales_of_heads(model: Device) -> None:
    given = operands(9, (2, 3, 20, 64), 40)
    arrays = [model.array(x) for x in given]
    scales = [0.004, 0.001, 0.01], 0.005, [0.02, 0.03, 0.04]
    found = nn.quantized_attention(*arrays, *scales, 0.01).numpy()
    for head in range(3):
        one = [np.ascontiguousarray(x[:, head : head + 1]) for x in given]
        wanted = check(model, one, (scales[0][head], 0.005, scales[2][head])).numpy()
        np.testing.assert_array_equal(found[:, head : head + 1], wanted)


def real(
    given: list[Array], scales: tuple[float, ...], zeros: tuple[float, float], mask: Any, causal: bool
) -> tuple[Array, Array]:
    """In float64, and the sum of p · |v|."""
    q, k, v = (x.astype(np.float64) for x in given)
    shared = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, shared, 1) for x in (k, v - zeros[1]))
    scores = (q - zeros[0]) @ k.swapaxes(-1, -2) * scales[0] * scales[1] / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p @ v * scales[2], p @ abs(v) * scales[2]


@pytest.mark.parametrize("causal", [False, True])
def test_the_program_against_float64(model: Device, causal: bool) -> None:
    scales = (0.02, 0.02, 0.02)
    given = operands(11, (1, 2, 130, 64), 130)
    arrays = [model.array(x) for x in given]
    wide = nn.quantized_attention(*arrays, *scales, causal=causal, v_zero_point=9.0).numpy().astype(np.float64)
    wanted, size = real(given, scales, (0.0, 9.0), None, causal)
    _, plain = real(given, scales, (0.0, 0.0), None, causal)
    assert (abs(wide - wanted) <= 3 * 2.0**-8 * (plain + size)).all()
    integers = nn.quantized_attention(*arrays, *scales, 0.02, causal=causal, out_zero_point=-4.0).numpy()
    exact = real(given, scales, (0.0, 0.0), None, causal)[0] / 0.02 - 4
    assert (abs(integers - np.clip(exact, -128, 127)) <= 0.5 + 2 * 2.0**-8 * plain / 0.02).all()


STEPS: dict[str, dict[str, Any]] = {
    "a mask": {"mask": "bool"},
    "an added mask": {"mask": "float", "causal": True},
    "shared heads": {"heads": 2},
    "shared heads and a mask of heads": {"heads": 2, "mask": "heads"},
    "a zero point of q": {"q_zero": 7.0},
    "zero points, a mask and shared heads": {"q_zero": -100.0, "v_zero": 5.0, "mask": "bool", "heads": 1},
    "a small dim": {"dim": 24, "causal": True, "v_zero": -128.0},
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_against_float64(model: Device, name: str) -> None:
    case = STEPS[name]
    rng = np.random.default_rng(12)
    scales = (0.02, 0.03, 0.02)
    given = operands(12, (2, 4, 19, case.get("dim", 32)), 37, case.get("heads"))
    zeros = case.get("q_zero", 0.0), case.get("v_zero", 0.0)
    mask: Any = None
    if case.get("mask") == "float":
        mask = rng.standard_normal((19, 37)).astype(np.float32)
    elif "mask" in case:
        mask = rng.random((2, 4 if case["mask"] == "heads" else 1, 19, 37)) < 0.7
        mask[..., 0] = True
    arrays = [model.array(x) for x in given]
    more: Any = {"q_zero_point": zeros[0], "v_zero_point": zeros[1], "causal": case.get("causal", False)}
    wanted, size = real(given, scales, zeros, mask, case.get("causal", False))
    with judged_steps():
        on_device = None if mask is None else model.array(mask)
        wide = nn.quantized_attention(*arrays, *scales, mask=on_device, **more).numpy().astype(np.float64)
        found = nn.quantized_attention(*arrays, *scales, 0.03, on_device, out_zero_point=2.0, **more).numpy()
    assert (abs(wide - wanted) <= 3 * 2.0**-8 * size).all()
    off = abs(found - np.clip(wanted / 0.03 + 2, -128, 127))
    assert (off <= 0.5 + 2 * 2.0**-8 * size / 0.03).all()


def test_bad_input(model: Device) -> None:
    q, k, v = (model.array(x) for x in operands(10, (1, 2, 20, 64), 30))
    mask = model.array(np.ones((20, 30), bool))
    cases: list[tuple[type[Exception], str, list[Any], dict[str, Any]]] = [
        (UnsupportedType, "q is ndarray", [np.zeros((1, 2, 20, 64)), k, v, 1.0, 1.0, 1.0], {}),
        (UnsupportedType, "k is float32; .* takes int8", [q, model.zeros(k.shape, np.float32), v, 1.0, 1.0, 1.0], {}),
        (ShapeMismatch, r"q has shape \(2, 20, 64\)", [q.reshape(2, 20, 64), k, v, 1.0, 1.0, 1.0], {}),
        (ShapeMismatch, "batch and dim are the same", [q, k, v[:, :, :20], 1.0, 1.0, 1.0], {}),
        (ShapeMismatch, "q_scale has 3 numbers for 2 heads", [q, k, v, [1.0] * 3, 1.0, 1.0], {}),
        (BadRequest, "q_scale is 0.0", [q, k, v, 0.0, 1.0, 1.0], {}),
        (BadRequest, "v_scale is inf", [q, k, v, 1.0, 1.0, [1.0, float("inf")]], {}),
        (BadRequest, "out_scale is -1", [q, k, v, 1.0, 1.0, 1.0, -1.0], {}),
        (BadRequest, "results are bfloat16 without a scale", [q, k, v, 1.0, 1.0, 1.0], {"dtype": np.int8}),
        (BadRequest, "results are bfloat16 without a scale", [q, k, v, 1.0, 1.0, 1.0, 1.0], {"dtype": np.float32}),
        (BadRequest, "scales of heads", [q, k, v, [1.0, 2.0], 1.0, 1.0, 1.0, mask], {}),
        (UnsupportedType, "uint8 is for one program", [q, k, v, 1.0, 1.0, 1.0, 1.0, mask], {"dtype": np.uint8}),
        (BadRequest, "out shares memory with q", [q, k, v, 1.0, 1.0, 1.0, 1.0], {"out": q}),
        (ShapeMismatch, "out is", [q, k, v, 1.0, 1.0, 1.0, 1.0], {"out": k}),
        (BadRequest, "scale is 0", [q, k, v, 1.0, 1.0, 1.0], {"scale": 0.0}),
    ]
    for error, text, arguments, options in cases:
        with pytest.raises(error, match=text):
            nn.quantized_attention(*arguments, **options)
    with Device.open(f"model:edge?{MEMORY}") as edge:
        arrays = [edge.array(x) for x in operands(1, (1, 1, 4, 32), 4)]
        with pytest.raises(UnsupportedType, match="attention needs exp2"):
            nn.quantized_attention(*arrays, 1.0, 1.0, 1.0)
