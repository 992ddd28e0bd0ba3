"""Quantised networks of several operators: residuals, pooling, moved elements, uint8 outside, other forms of models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from qdq import INT8, UINT8, Model, compiled, convolution, operators, rounded

from sley.runtime import Device
from sley.runtime.errors import UnsupportedType
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.file import load_network
from sley.runtime.networks.registry import UnsupportedOperator


def near(found: np.ndarray, model: onnx.ModelProto, **inputs: np.ndarray) -> None:
    """Within one unit of onnx's reference, and mostly the same."""
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    assert found.dtype == wanted.dtype
    difference = abs(found.astype(int) - wanted)
    assert difference.max() <= 1
    assert (difference > 0).sum() <= max(1, 0.02 * difference.size)


@pytest.mark.parametrize("zeros", [(0, 0, 0), (3, -20, -128), (-7, 11, 4)], ids=str)
@pytest.mark.parametrize("relu", [False, True])
def test_residuals(base: Device, zeros: tuple[int, int, int], relu: bool) -> None:
    """Sums of two scales are one operator; bit for bit float32."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, (2, 5, 3, 7)).astype(np.int8) for _ in range(2))
    model = Model()
    first = model.dequantize(model.input("a", a.shape, np.int8), 0.031, zeros[0])
    total = model.node("Add", first, model.dequantize(model.input("b", b.shape, np.int8), 0.0723, zeros[1]))
    y = model.quantize(model.node("Relu", total) if relu else total, 0.0617, zeros[2])
    made = model.made((y, np.int8))
    network = compiled(made, base)
    assert operators(network) == ["Region"]
    found = network(a, b)[y]
    near(found, made, a=a, b=b)
    scales = [np.float64(np.float32(value)) for value in (0.031, 0.0723, 0.0617)]
    fa, fb = np.float32(scales[0] / scales[2]), np.float32(scales[1] / scales[2])
    shift = np.float32(zeros[2] - zeros[0] * scales[0] / scales[2] - zeros[1] * scales[1] / scales[2])
    exact = a.astype(np.float32) * fa + (b.astype(np.float32) * fb + shift)
    low = zeros[2] if relu else -128
    np.testing.assert_array_equal(found, np.clip(np.rint(exact), low, 127).astype(np.int8))


def residual_network(dtype: Any, kind: Any) -> tuple[onnx.ModelProto, str]:
    """As frameworks export a block: two convolutions, a shortcut, pooling, a layer; zero points everywhere."""
    rng = np.random.default_rng(2)
    shift = 128 if dtype == UINT8 else 0
    model = Model()

    def conv(x: str, inputs: int, outputs: int, scale: float, zero: int, relu: bool, **more: Any) -> str:
        w = rng.integers(-127, 128, (outputs, inputs, 3, 3)).astype(np.int8)
        y = model.node("Conv", x, model.weights(w, rng.uniform(2e-3, 4e-3, outputs), 0), **more)
        return model.quantized(model.node("Relu", y) if relu else y, scale, zero + shift, dtype)

    first = model.input("x", (2, 3, 13, 12), kind)
    if kind == np.float32:
        first = model.quantize(first, 0.02, 3 + shift, dtype)
    first = model.dequantize(first, 0.02, 3 + shift, dtype)
    stem = conv(first, 3, 9, 0.01, -128, True, pads=(1, 1, 1, 1))
    pooled = model.node("MaxPool", stem, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    left = conv(conv(pooled, 9, 9, 0.02, -128, True, pads=(1, 1, 1, 1)), 9, 9, 0.03, 5, False, pads=(1, 1, 1, 1))
    total = model.quantized(model.node("Relu", model.node("Add", pooled, left)), 0.02, shift - 128, dtype)
    mean = model.quantized(model.node("GlobalAveragePool", total), 0.02, shift - 128, dtype)
    flat = model.node("Flatten", mean)
    w = rng.integers(-127, 128, (9, 6)).astype(np.int8)
    y = model.quantize(model.node("MatMul", flat, model.weights(w, 3e-3, 1)), 0.02, shift - 3, dtype)
    return model.made((y, dtype)), y


@pytest.mark.parametrize(
    ("dtype", "kind"), [(INT8, np.float32), (INT8, np.int8), (UINT8, np.float32), (UINT8, np.uint8)]
)
def test_blocks(base: Device, dtype: Any, kind: Any, tmp_path: Path) -> None:
    made, y = residual_network(dtype, kind)
    network = compiled(made, base)
    wanted = [
        "QuantizedConv",
        "MaxPool",
        *["QuantizedConv"] * 2,
        "Region",
        "QuantizedPool",
        "Flatten",
        "QuantizedMatMul",
    ]
    assert operators(network) == [*(["QuantizeLinear"] if kind == np.float32 else []), *wanted]
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 3, 13, 12)).astype(np.float32)
    if kind != np.float32:
        x = np.clip(rng.normal(3 + (128 if kind == np.uint8 else 0), 45, x.shape), 0 if kind == np.uint8 else -128, 127)
        x = x.astype(kind)
    found = network(x)[y]
    near(found, made, x=x)
    network.save(tmp_path / "block.sley")
    again = compile_network(load_network(tmp_path / "block.sley"), base, fold)
    assert operators(again) == operators(network)
    np.testing.assert_array_equal(again(x)[y], found)


def test_uint8_as_numbers_is_refused(base: Device) -> None:
    model = Model()
    model.inputs.append(helper.make_tensor_value_info("x", TensorProto.UINT8, [3]))
    y = model.node("Add", "x", "x")
    with pytest.raises(UnsupportedOperator, match=r"(?s)has uint8, which the device has not, in.*Add 'v0'"):
        compiled(model.made((y, np.uint8)), base)


def test_uint8_as_pixels(base: Device) -> None:
    """Cast gives their numbers."""
    model = Model()
    y = model.node("Cast", model.input("x", (2, 5), np.uint8), to=TensorProto.FLOAT)
    network = compiled(model.made((y, np.float32)), base)
    x = np.array([[0, 1, 127, 128, 255], [3, 7, 9, 200, 254]], np.uint8)
    np.testing.assert_array_equal(network(x)[y], x.astype(np.float32))
    with pytest.raises(UnsupportedType, match="x is int8; the network takes uint8"):
        network(x.astype(np.int8))


def test_qlinear_conv(base: Device) -> None:
    """The older form of models: operators on quantised values."""
    rng = np.random.default_rng(6)
    x, w = rng.integers(0, 256, (1, 3, 6, 7)).astype(np.uint8), rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    scales, bias = rng.uniform(1e-3, 1e-2, 4).astype(np.float32), rng.integers(-500, 500, 4, np.int32)
    model = Model()
    one = [model.constant(0.05, np.float32), model.constant(120, np.uint8)]
    weights = [model.constant(w, np.int8), model.constant(scales, np.float32), model.constant(np.zeros(4), np.int8)]
    result = [model.constant(0.3, np.float32), model.constant(131, np.uint8), model.constant(bias, np.int32)]
    y = model.node("QLinearConv", model.input("x", x.shape, np.uint8), *one, *weights, *result, pads=(1, 0, 0, 2))
    network = compiled(model.made((y, np.uint8)), base)
    assert operators(network) == ["QuantizedConv"]
    sums = convolution(x.astype(int) - 128, w, 120 - 128, pads=(1, 0, 0, 2))
    scale = np.float64(np.float32(0.05)) * scales.astype(np.float64) / np.float64(np.float32(0.3))
    expected = rounded(sums, bias.reshape(-1, 1, 1), scale.reshape(-1, 1, 1), 131 - 128)
    np.testing.assert_array_equal(network(x)[y].astype(int) - 128, expected)


def test_elements_between_integers(base: Device) -> None:
    """Other operators keep their reals, in one launch from int8 to int8."""
    x = np.arange(-128, 128, dtype=np.int8).reshape(16, 16)
    model = Model()
    real = model.dequantize(model.input("x", x.shape, np.int8), 0.05, 2)
    y = model.quantize(model.node("Mul", real, model.node("Sigmoid", real)), 0.04, -100)
    made = model.made((y, np.int8))
    network = compiled(made, base)
    assert operators(network)[-1] == "Region"
    near(network(x)[y], made, x=x)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("block", [0, 4])
def test_weights_of_4_bits(base: Device, kind: int, block: int) -> None:
    """Unpacked when the model is read: with a scale for each output on int8, of blocks as reals."""
    rng = np.random.default_rng(7)
    signed, shape = kind == TensorProto.INT4, (8, 5)
    w = rng.integers(-8, 8, shape) if signed else rng.integers(0, 16, shape)
    zero = 0 if signed else 8
    scale_shape = (2, 5) if block else (5,)
    scales = rng.uniform(0.01, 0.1, scale_shape).astype(np.float32)
    model = Model()
    for name, values in (("w", w), ("z", np.full(scale_shape, zero))):
        model.constants.append(helper.make_tensor(name, kind, values.shape, values.ravel().tolist()))
    attributes = {"axis": 0, "block_size": block} if block else {"axis": 1}
    weights = model.node("DequantizeLinear", "w", model.constant(scales, np.float32), "z", **attributes)
    x = rng.integers(-128, 128, (3, 8)).astype(np.int8)
    y = model.node("MatMul", model.dequantize(model.input("x", x.shape, np.int8), 0.1, 3), weights)
    network = compiled(model.made((y, np.float32)), base)
    assert ("QuantizedMatMul" in operators(network)) == (not block)
    wide = np.repeat(scales, block, 0) if block else scales
    expected = (x.astype(np.float64) - 3) * np.float32(0.1) @ ((w - zero) * wide.astype(np.float64))
    np.testing.assert_allclose(network(x)[y], expected, rtol=1e-5, atol=1e-4)


def test_4_bits_elsewhere_are_refused() -> None:
    model = Model()
    model.constants.append(helper.make_tensor("w", TensorProto.INT4, (2,), [1, 2]))
    y = model.node("Cast", "w", to=TensorProto.FLOAT)
    with pytest.raises(UnsupportedOperator, match=r"Cast 'v0' takes w, of 4 bits"):
        read_model(model.made((y, np.float32)))


def residual_of_a_convolution() -> tuple[onnx.ModelProto, str]:
    """A quantised value is added to the sums of a convolution, which nobody quantises before."""
    rng = np.random.default_rng(8)
    model = Model()
    x = model.dequantize(model.input("x", (2, 3, 6, 5), np.int8), 0.05, 7)
    side = model.dequantize(model.input("r", (2, 9, 6, 5), np.int8), 0.033, -11)
    w = rng.integers(-127, 128, (9, 3, 3, 3)).astype(np.int8)
    weights = model.weights(w, rng.uniform(1e-3, 3e-3, 9), 0)
    conv = model.node("Conv", x, weights, model.constant(rng.standard_normal(9), np.float32), pads=(1, 1, 1, 1))
    y = model.quantize(model.node("Relu", model.node("Add", conv, side)), 0.021, -128)
    return model.made((y, np.int8)), y


@pytest.mark.parametrize("chip", ["base", "nano"])
def test_residuals_of_convolutions(chip: str) -> None:
    """In the epilogue, and on a chip without chains in launches of its own: the same bits, by golden arithmetic."""
    made, y = residual_of_a_convolution()
    rng = np.random.default_rng(9)
    x, r = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 3, 6, 5), (2, 9, 6, 5)))
    with Device.open(f"model:{chip}?memory=1M") as device:
        network = compiled(made, device)
        assert operators(network) == ["QuantizedConv"]
        found = network(x=x, r=r)[y]
    near(found, made, x=x, r=r)
    conv = next(node for node in made.graph.node if node.op_type == "Conv")
    known = {one.name: onnx.numpy_helper.to_array(one) for one in made.graph.initializer}
    of_weights = next(node for node in made.graph.node if node.output[0] == conv.input[1])
    scales = known[of_weights.input[1]].astype(np.float64)
    unit = (np.float64(np.float32(0.05)) * scales).reshape(-1, 1, 1)
    sy, sr = np.float64(np.float32(0.021)), np.float64(np.float32(0.033))
    m = (unit / sy).astype(np.float32)
    offset = np.rint((-128 + 11 * sr / sy) / m.astype(np.float64))
    bias = np.rint(known[conv.input[2]].reshape(-1, 1, 1) / unit) + offset
    sums = convolution(x, known[of_weights.input[0]], 7, pads=(1, 1, 1, 1)) + bias.astype(np.int64)
    exact = r.astype(np.float32) * np.float32(sr / sy) + sums.astype(np.float32) * m
    np.testing.assert_array_equal(found, np.clip(np.rint(exact), -128, 127).astype(np.int8))


def test_a_value_that_is_quantised_twice(base: Device) -> None:
    """By the same numbers it is the same integers, so the convolution that makes it still gives them."""
    rng = np.random.default_rng(10)
    model = Model()
    x = model.dequantize(model.input("x", (1, 3, 5, 5), np.int8), 0.05, 0)
    w = [
        model.weights(rng.integers(-127, 128, shape).astype(np.int8), 2e-3, 0) for shape in ((4, 3, 3, 3), (4, 4, 1, 1))
    ]
    real = model.node("Conv", x, w[0])
    side = model.node("Conv", model.quantized(real, 0.02, 3), w[1])
    y = model.quantize(model.node("Add", side, model.quantized(real, 0.02, 3)), 0.03, 1)
    made = model.made((y, np.int8))
    network = compiled(made, base)
    assert operators(network) == ["QuantizedConv", "QuantizedConv"]
    values = rng.integers(-128, 128, (1, 3, 5, 5)).astype(np.int8)
    near(network(values)[y], made, x=values)
