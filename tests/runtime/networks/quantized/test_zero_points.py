"""Zero points of everything, as onnxruntime's quantiser writes them: bit for bit onnx's reference, but for ties."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from qdq import INT8, UINT8, Model, compiled, convolution, operators

from sley.runtime import Device
from sley.runtime.networks.registry import UnsupportedOperator

TYPES = [(INT8, INT8), (UINT8, UINT8), (UINT8, INT8)]


def values(rng: Any, dtype: Any, *shape: int) -> Any:
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def same_but_for_ties(found: Any, sums: Any, scale: Any, zero: int) -> None:
    """round(sum · scale) + zero in float64; the device's float32 may round what is 1e-6 from a tie the other way."""
    exact = sums * np.asarray(scale, np.float64)
    info = np.iinfo(found.dtype)
    wanted = np.clip(np.rint(exact) + zero, info.min, info.max)
    near = abs(abs(exact - np.floor(exact)) - 0.5) <= 1e-6 * abs(exact)
    assert ((found == wanted) | near).all()
    assert near.mean() < 0.05
    assert len(np.unique(found)) > 20


def centred(x: Any, zero: Any) -> Any:
    return x.astype(np.int64) - zero


@pytest.mark.parametrize(("dtype", "weights"), TYPES, ids=str)
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("group", [1, 2])
def test_convolutions(base: Device, dtype: Any, weights: Any, channels: bool, group: int) -> None:
    """QLinearConv whose weights have zero points that leave int8; odd sides, padding with the zero point of x."""
    rng = np.random.default_rng(1)
    x, w = values(rng, dtype, 2, 6, 7, 5), values(rng, weights, 10, 6 // group, 3, 3)
    low = np.iinfo(weights).min
    zeros = (rng.integers(0, 256, 10) + low).astype(weights) if channels else np.array(low + 100, weights)
    scales = rng.uniform(1e-3, 3e-3, 10).astype(np.float32) if channels else np.array(2e-3, np.float32)
    bias, x_zero, zero = rng.integers(-900, 900, 10, np.int32), np.iinfo(dtype).min + 77, np.iinfo(dtype).min + 131
    model = Model()
    one = [model.constant(0.05, np.float32), model.constant(x_zero, dtype)]
    other = [model.constant(w, weights), model.constant(scales, np.float32), model.constant(zeros, weights)]
    result = [model.constant(0.1, np.float32), model.constant(zero, dtype), model.constant(bias, np.int32)]
    more: dict[str, Any] = {"pads": (1, 0, 2, 1), "strides": (1, 2), "group": group}
    y = model.node("QLinearConv", model.input("x", x.shape, dtype), *one, *other, *result, **more)
    network = compiled(model.made((y, dtype)), base)
    assert operators(network) == ["QuantizedConv", "RecentredSums"]
    sums = convolution(
        centred(x, x_zero).astype(np.int64), centred(w, zeros.reshape(-1, 1, 1, 1) if channels else zeros), 0, **more
    ) + bias.reshape(-1, 1, 1)
    scale = np.float64(np.float32(0.05)) * scales.astype(np.float64) / np.float64(np.float32(0.1))
    same_but_for_ties(network(x)[y], sums, scale.reshape(-1, 1, 1), zero)


@pytest.mark.parametrize(("dtype", "weights"), TYPES, ids=str)
@pytest.mark.parametrize("known", [False, True])
def test_products(base: Device, dtype: Any, weights: Any, known: bool) -> None:
    """QLinearMatMul of computed and of known right sides; onnx's reference in all bits but for ties."""
    rng = np.random.default_rng(2)
    x, w = values(rng, dtype, 3, 9, 37), values(rng, weights, 37, 21)
    x_zero, w_zero, zero = np.iinfo(dtype).min + 90, np.iinfo(weights).min + 200, np.iinfo(dtype).min + 117
    model = Model()
    one = [model.constant(0.05, np.float32), model.constant(x_zero, dtype)]
    name = model.constant(w, weights) if known else model.input("w", w.shape, weights)
    other = [name, model.constant(0.02, np.float32), model.constant(w_zero, weights)]
    result = [model.constant(0.9, np.float32), model.constant(zero, dtype)]
    y = model.node("QLinearMatMul", model.input("x", x.shape, dtype), *one, *other, *result)
    network = compiled(model.made((y, dtype)), base)
    assert operators(network) == (["QuantizedMatMul", "RecentredSums"] if known else ["CentredMatMul"])
    found = network(x=x, **({} if known else {"w": w}))[y]
    scale = np.float64(np.float32(0.05)) * np.float64(np.float32(0.02)) / np.float64(np.float32(0.9))
    same_but_for_ties(found, centred(x, x_zero) @ centred(w, w_zero), scale, zero)


@pytest.mark.parametrize("dtype", [INT8, UINT8], ids=str)
@pytest.mark.parametrize("result", [None, 20])
def test_two_values(base: Device, dtype: Any, result: int | None) -> None:
    """MatMul of two DequantizeLinear, as in attention of onnxruntime's models; as float32 without QuantizeLinear."""
    rng, low = np.random.default_rng(3), np.iinfo(dtype).min
    x, y = values(rng, dtype, 2, 3, 5, 33), values(rng, dtype, 2, 3, 33, 7)
    model = Model()
    left = model.dequantize(model.input("x", x.shape, dtype), 0.05, low + 100, dtype)
    right = model.dequantize(model.input("y", y.shape, dtype), 0.02, low + 128, dtype)
    z = model.node("MatMul", left, right)
    if result is not None:
        z = model.quantize(z, 0.5, low + result, dtype)
    network = compiled(model.made((z, np.float32 if result is None else dtype)), base)
    assert operators(network) == ["CentredMatMul"]
    found, sums = network(x, y)[z], centred(x, low + 100) @ centred(y, low + 128)
    unit = np.float64(np.float32(0.05)) * np.float64(np.float32(0.02))
    if result is None:
        np.testing.assert_allclose(found, sums * unit, rtol=3e-7)
    else:
        same_but_for_ties(found, sums, unit / 0.5, low + result)


@pytest.mark.parametrize(("dtype", "weights"), TYPES, ids=str)
@pytest.mark.parametrize("zeros", ["none", "known", "computed"])
def test_sums(base: Device, dtype: Any, weights: Any, zeros: str) -> None:
    """ConvInteger and MatMulInteger, exactly; the zero point of x may be computed, and pads too then."""
    rng = np.random.default_rng(4)
    x, w = values(rng, dtype, 2, 4, 6, 5), values(rng, weights, 6, 4, 3, 2)
    model = Model()
    image, inputs = model.input("x", x.shape, dtype), {"x": x}
    x_zero, w_zero = np.array(np.iinfo(dtype).min + 55, dtype), np.array(np.iinfo(weights).min + 7, weights)
    names: list[str] = []
    if zeros == "known":
        names = [model.constant(x_zero, dtype), model.constant(w_zero, weights)]
    elif zeros == "computed":
        names = [model.input("zero", (), dtype), model.constant(w_zero, weights)]
        inputs["zero"] = x_zero
    more: dict[str, Any] = {"pads": (1, 2, 0, 1), "strides": (2, 1), "dilations": (1, 2)}
    y = model.node("ConvInteger", image, model.constant(w, weights), *names, **more)
    rows = model.node("Reshape", image, model.constant([8, 30], np.int64))
    z = model.node("MatMulInteger", rows, model.constant(values(rng, weights, 30, 7), weights), *names)
    made = model.made((y, np.float32), (z, np.float32))
    for output in made.graph.output:
        output.type.tensor_type.elem_type = TensorProto.INT32
    for info in made.graph.value_info:
        if info.name in (y, z):
            info.type.tensor_type.elem_type = TensorProto.INT32
    found = compiled(made, base)(**inputs)
    for name, wanted in zip((y, z), ReferenceEvaluator(made).run(None, inputs), strict=True):
        assert found[name].dtype == np.int32
        np.testing.assert_array_equal(found[name], wanted)


def test_too_deep_sums_are_refused(base: Device) -> None:
    model = Model()
    x, y = model.input("x", (1, 40000), np.int8), model.input("y", (40000, 1), np.int8)
    made = model.made((model.node("MatMulInteger", x, y), np.float32))
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    with pytest.raises(UnsupportedOperator, match="sums of 40000 products; int32 holds those of 33025"):
        compiled(made, base)


@pytest.mark.parametrize("low", [-3.0, 0.0, 1.0])
def test_dynamic_quantisation(base: Device, low: float) -> None:
    """A layer as quantize_dynamic writes it: the range is found when it runs; the scale is within 2 ulp."""
    rng = np.random.default_rng(5)
    x, w = rng.uniform(low, 4, (6, 33)).astype(np.float32), values(rng, UINT8, 33, 9)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["q", "w", "zero", "w_zero"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["scale", "w_scale"], ["unit"]),
        helper.make_node("Mul", ["wide", "unit"], ["y"]),
    ]
    constants = {"w": w, "w_zero": np.array(120, np.uint8), "w_scale": np.array(0.01, np.float32)}
    infos = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x.shape), ("y", None))
    ]
    more = [helper.make_tensor_value_info(name, TensorProto.UINT8, None) for name in ("q", "zero")]
    graph = helper.make_graph(nodes, "dynamic", ends[:1], [*ends[1:], *more], infos)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    found = compiled(onnx.shape_inference.infer_shapes(made), base)(x)
    y, q, zero = ReferenceEvaluator(made).run(None, {"x": x})
    assert found["zero"] == zero
    assert (found["q"].dtype, abs(found["q"].astype(int) - q).max() <= 1) == (UINT8, True)
    np.testing.assert_allclose(found["y"], y, atol=0.01 * 255 * 4 / 255 * 3)


def microsoft(operator: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs, ["y"], domain="com.microsoft", **attributes)


MICROSOFT: dict[str, tuple[str, int, dict[str, Any]]] = {
    "QLinearAdd": ("Add", 2, {}),
    "QLinearMul": ("Mul", 2, {}),
    "QLinearConcat": ("Concat", 2, {"axis": 1}),
    "QLinearSigmoid": ("Sigmoid", 1, {}),
    "QLinearLeakyRelu": ("LeakyRelu", 1, {"alpha": 0.1}),
    "QLinearSoftmax": ("Softmax", 1, {"axis": -1}),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", 1, {}),
    "QLinearAveragePool": ("AveragePool", 1, {"kernel_shape": [2, 2], "strides": [2, 2]}),
}


@pytest.mark.parametrize("name", MICROSOFT)
@pytest.mark.parametrize("dtype", [INT8, UINT8], ids=str)
def test_operators_of_onnxruntime(base: Device, name: str, dtype: Any) -> None:
    """What they mean: DequantizeLinear, the operator, QuantizeLinear."""
    operator, count, attributes = MICROSOFT[name]
    rng, low = np.random.default_rng(6), np.iinfo(dtype).min
    given = {f"x{n}": values(rng, dtype, 2, 3, 6, 8) for n in range(count)}
    scales, zeros = (0.031, 0.0723), (low + 100, low + 131)
    out = (1 / 256, low) if operator in ("Sigmoid", "Softmax") else (0.05, low + 120)
    own, plain = Model(), Model()
    triples = []
    for (value, array), scale, zero in zip(given.items(), scales, zeros, strict=False):
        triples += [own.input(value, array.shape, dtype), own.constant(scale, np.float32), own.constant(zero, dtype)]
    result = [own.constant(out[0], np.float32), own.constant(out[1], dtype)]
    inputs = [*result, *triples] if operator == "Concat" else [*triples, *result]
    more = {"channels_last": 0} if "Pool" in name else {}
    own.nodes.append(microsoft(name, *inputs, **attributes, **more))
    infos = [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(dtype), None)]
    graph = helper.make_graph(own.nodes, "own", own.inputs, infos, own.constants)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    found = compiled(helper.make_model(graph, opset_imports=domains, ir_version=10), base)(**given)["y"]
    reals = [
        plain.dequantize(plain.input(value, array.shape, dtype), scale, zero, dtype)
        for (value, array), scale, zero in zip(given.items(), scales, zeros, strict=False)
    ]
    y = plain.quantize(plain.node(operator, *reals, **attributes), *out, dtype)
    (wanted,) = ReferenceEvaluator(plain.made((y, dtype))).run(None, given)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert abs(found.astype(int) - wanted.astype(int)).max() <= 1
    assert (found != wanted).mean() < 0.02


def test_qgemm(base: Device) -> None:
    rng = np.random.default_rng(7)
    x, w, bias = values(rng, UINT8, 5, 20), values(rng, INT8, 7, 20), rng.integers(-500, 500, 7, np.int32)
    model = Model()
    inputs = [model.input("x", x.shape, UINT8), model.constant(0.05, np.float32), model.constant(99, UINT8)]
    inputs += [model.constant(w, INT8), model.constant(0.02, np.float32), model.constant(0, INT8)]
    inputs += [model.constant(bias, np.int32), model.constant(0.3, np.float32), model.constant(140, UINT8)]
    model.nodes.append(microsoft("QGemm", *inputs, transB=1, alpha=1.0))
    info = [helper.make_tensor_value_info("y", TensorProto.UINT8, None)]
    graph = helper.make_graph(model.nodes, "own", model.inputs, info, model.constants)
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    network = compiled(helper.make_model(graph, opset_imports=domains, ir_version=10), base)
    assert operators(network) == ["QuantizedMatMul"]
    scale = np.float64(np.float32(0.05)) * np.float64(np.float32(0.02)) / np.float64(np.float32(0.3))
    same_but_for_ties(network(x)["y"], centred(x, 99) @ w.T.astype(np.int64) + bias, scale, 140)


@pytest.mark.parametrize("dtype", [INT8, UINT8], ids=str)
def test_quantize_rounds_before_the_zero_point(base: Device, dtype: Any) -> None:
    """Ties go to the even number, whatever the zero point; of a scale that is a power of two all bits are onnx's."""
    x = np.concatenate([np.arange(-600, 600) / 8 + 0.125 / 2, np.arange(-600, 600) / 8, [1e6, -1e6]])
    x = x.astype(np.float32)
    model = Model()
    y = model.quantize(model.input("x", x.shape), 0.25, np.iinfo(dtype).min + 129, dtype)
    made = model.made((y, dtype))
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_array_equal(compiled(made, base)(x)[y], wanted)


def test_a_chip_without_chains() -> None:
    """Adds zero points in a launch of its own: the same bits as base."""
    rng = np.random.default_rng(8)
    x, w = values(rng, UINT8, 4, 20), values(rng, INT8, 20, 6)
    model = Model()
    real = model.dequantize(model.input("x", x.shape, UINT8), 0.05, 99, UINT8)
    product = model.node("MatMul", real, model.weights(w, 0.02, 1))
    y = model.quantize(model.node("Relu", product), 0.3, 33, UINT8)
    made = model.made((y, UINT8))
    found = []
    for chip in ("base", "edge"):
        with Device.open(f"model:{chip}?memory=16M") as device:
            found.append(compiled(made, device)(x)[y])
    np.testing.assert_array_equal(*found)
    assert found[0].min() == 33
