"""Convolutions and products of quantised values: bit for bit what integers give, and next to onnx's reference."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

from onnx.reference import ReferenceEvaluator
from qdq import INT8, UINT8, Model, compiled, convolution, operators, rounded

from sley.runtime import Device


def integers(values: np.ndarray) -> np.ndarray:
    """As the device holds them."""
    return values if values.dtype == INT8 else (values.astype(int) - 128).astype(np.int8)


CASES: list[dict[str, Any]] = [
    {"channels": (5, 7), "pads": (1, 1, 1, 1)},
    {"channels": (3, 17), "strides": (2, 2), "pads": (0, 1, 1, 0)},
    {"channels": (6, 6), "group": 6, "strides": (1, 2), "pads": (1, 1, 1, 1)},
    {"channels": (4, 6), "group": 2, "pads": (2, 0, 0, 1), "dilations": (2, 1)},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["channels"]))
@pytest.mark.parametrize(
    ("dtype", "zeros"), [(INT8, (0, 0)), (INT8, (5, -3)), (UINT8, (128, 0)), (UINT8, (97, 140))], ids=str
)
def test_convolutions(base: Device, dtype: Any, zeros: tuple[int, int], case: dict[str, Any]) -> None:
    """Odd channels, groups, depthwise, strides, padding of all sides; zero points of values, uint8 too."""
    rng = np.random.default_rng(zeros[0])
    (inputs, outputs), group = case["channels"], case.get("group", 1)
    more = {name: case[name] for name in ("strides", "pads", "dilations", "group") if name in case}
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (2, inputs, 9, 8)).astype(dtype)
    w = rng.integers(-127, 128, (outputs, inputs // group, 3, 3)).astype(np.int8)
    scales, bias = rng.uniform(1e-3, 1e-2, outputs).astype(np.float32), rng.integers(-3000, 3000, outputs, np.int32)
    unit = (np.float64(np.float32(0.05)) * scales).astype(np.float32)
    model = Model()
    values = model.dequantize(model.input("x", x.shape, dtype), 0.05, zeros[0], dtype)
    offsets = model.dequantize(model.constant(bias, np.int32), unit, np.zeros(outputs), np.int32, axis=0)
    real = model.node("Relu", model.node("Conv", values, model.weights(w, scales, 0), offsets, **more))
    y = model.quantize(real, 0.2, zeros[1], dtype)
    made = model.made((y, dtype))
    network = compiled(made, base)
    assert operators(network)[0] == "QuantizedConv"
    found = network(x)[y]
    shift = 0 if dtype == INT8 else 128
    sums = convolution(integers(x), w, zeros[0] - shift, **more)
    scale = (np.float64(np.float32(0.05)) * scales.astype(np.float64) / np.float64(np.float32(0.2))).reshape(-1, 1, 1)
    zero = zeros[1] - shift
    expected = rounded(sums, bias.astype(np.int64).reshape(-1, 1, 1), scale, zero, low=zero)
    assert found.dtype == dtype
    np.testing.assert_array_equal(integers(found), expected)
    (reference,) = ReferenceEvaluator(made).run(None, {"x": x})
    assert abs(found.astype(int) - reference).max() <= 1
    assert len(np.unique(expected)) > 20


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
@pytest.mark.parametrize("zero", [0, -7])
def test_products(base: Device, operator: str, zero: int) -> None:
    """Rows of several axes by weights with a scale for each column; bias, bounds of Clip."""
    rng = np.random.default_rng(zero + 8)
    shape, outputs = ((2, 3, 37) if operator == "MatMul" else (5, 37)), 19
    x = rng.integers(-128, 128, shape).astype(np.int8)
    w = rng.integers(-128, 128, (37, outputs)).astype(np.int8)
    scales, bias = rng.uniform(1e-3, 1e-2, outputs).astype(np.float32), rng.standard_normal(outputs).astype(np.float32)
    model = Model()
    values = model.dequantize(model.input("x", shape, np.int8), 0.1, zero)
    if operator == "MatMul":
        product = model.node("MatMul", values, model.weights(w, scales, 1))
        real = model.node("Add", model.constant(bias, np.float32), product)
    else:
        weights = model.weights(np.ascontiguousarray(w.T), scales, 0)
        real = model.node("Gemm", values, weights, model.constant(bias, np.float32), transB=1)
    real = model.node("Clip", real, model.constant(-2, np.float32), model.constant(3, np.float32))
    y = model.quantize(real, 0.05, 4)
    made = model.made((y, np.int8))
    network = compiled(made, base)
    assert operators(network) == ["QuantizedMatMul", "Clip"]
    unit = np.float64(np.float32(0.1)) * scales.astype(np.float64)
    expected = rounded(
        (x.astype(np.int64) - zero) @ w.astype(np.int64),
        np.rint(bias / unit).astype(np.int64),
        unit / np.float64(np.float32(0.05)),
        4,
        low=-36,
        high=64,
    )
    found = network(x)[y]
    np.testing.assert_array_equal(found, expected)
    assert abs(found.astype(int) - ReferenceEvaluator(made).run(None, {"x": x})[0]).max() <= 1


def test_results_of_float32(base: Device) -> None:
    """Where no QuantizeLinear follows, the sums are scaled; two Adds and a Relu are part of it."""
    rng = np.random.default_rng(3)
    x, w = rng.integers(-128, 128, (4, 33)).astype(np.int8), rng.integers(-127, 128, (33, 5)).astype(np.int8)
    model = Model()
    product = model.node(
        "MatMul", model.dequantize(model.input("x", x.shape, np.int8), 0.1, 3), model.weights(w, 0.01, 1)
    )
    total = model.node("Add", product, model.constant(rng.standard_normal(5), np.float32))
    y = model.node("Relu", model.node("Add", total, model.constant(0.5, np.float32)))
    made = model.made((y, np.float32))
    network = compiled(made, base)
    assert operators(network) == ["QuantizedMatMul"]
    unit = 0.1 * 0.01
    (reference,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(network(x)[y], reference, atol=unit)


def test_a_bias_that_could_wrap_stays_real(base: Device) -> None:
    x, w = np.full((1, 40), 100, np.int8), np.full((40, 3), 100, np.int8)
    model = Model()
    values = model.dequantize(model.input("x", x.shape, np.int8), 1e-4, 0)
    product = model.node("MatMul", values, model.weights(w, 1e-6, 1))
    y = model.node("Add", product, model.constant([1.0, 2.0, 3.0], np.float32))
    network = compiled(model.made((y, np.float32)), base)
    assert "QuantizedMatMul" in operators(network)
    assert "Add" in operators(network)
    np.testing.assert_allclose(network(x)[y], [[1 + 4e-5, 2 + 4e-5, 3 + 4e-5]], rtol=1e-6)


def test_weights_of_uint8(base: Device) -> None:
    """With zero point 128 they are int8."""
    rng = np.random.default_rng(5)
    w, x = rng.integers(0, 256, (20, 3)).astype(np.uint8), rng.integers(-128, 128, (4, 20)).astype(np.int8)
    model = Model()
    weights = model.dequantize(model.constant(w, np.uint8), 0.01, 128, UINT8)
    y = model.quantize(
        model.node("MatMul", model.dequantize(model.input("x", x.shape, np.int8), 0.1, 0), weights), 0.5, 0
    )
    network = compiled(model.made((y, np.int8)), base)
    assert operators(network) == ["QuantizedMatMul"]
    scale = np.float64(np.float32(0.1)) * np.float64(np.float32(0.01)) / 0.5
    expected = rounded(x.astype(np.int64) @ (w.astype(np.int64) - 128), np.zeros(3, np.int64), np.array(scale), 0)
    np.testing.assert_array_equal(network(x)[y], expected)
