"""Models of onnx through the backend: what is folded, compiled again, and refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from sley.driver import BadRequest
from sley.runtime import Device, nn
from sley.runtime.errors import ShapeMismatch, UnsupportedType
from sley.runtime.frameworks import onnx as sley_onnx
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.frameworks.from_onnx.importer import read_model
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.registry import UnsupportedOperator

Value = tuple[str, int, Sequence[Any] | None]
ENGINE = "model:base?memory=64M"


def model(
    nodes: list[NodeProto], inputs: list[Value], outputs: list[Value], version: int = 21, **known: Any
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "tried",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in known.items()],
    )
    others = {node.domain for node in nodes} - {""}
    sets = [helper.make_opsetid("", version), *(helper.make_opsetid(domain, 1) for domain in sorted(others))]
    return helper.make_model(graph, opset_imports=sets)


F, WHOLE = TensorProto.FLOAT, TensorProto.INT64


def perceptron() -> tuple[ModelProto, Any, Any]:
    random = np.random.default_rng(3)
    w, v = random.standard_normal((7, 13)).astype(np.float32), random.standard_normal((13, 5)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    made = model(nodes, [("x", F, ["rows", 7])], [("y", F, ["rows", 5])], w=w, v=v)
    return made, lambda x: np.maximum(x @ w, 0) @ v, random


def test_a_model_is_compiled_for_each_shape() -> None:
    made, right, random = perceptron()
    prepared = sley_onnx.prepare(made, ENGINE)
    for rows in (1, 17, 1):
        x = random.standard_normal((rows, 7)).astype(np.float32)
        (y,) = prepared.run([x])
        np.testing.assert_allclose(y, right(x), rtol=1e-5, atol=1e-5)
    assert not prepared.folded


def test_models_share_a_device() -> None:
    made, right, random = perceptron()
    other = model([helper.make_node("Neg", ["x"], ["y"])], [("x", F, [3])], [("y", F, [3])])
    first, second = sley_onnx.prepare(made, ENGINE), sley_onnx.prepare(other, ENGINE)
    assert first.device is second.device
    x, z = random.standard_normal((2, 7)).astype(np.float32), np.float32([1, -2, 3])
    for _ in range(2):
        np.testing.assert_allclose(first.run({"x": x})[0], right(x), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(second.run([z])[0], -z)


def test_what_depends_on_shapes_is_folded() -> None:
    """A reshape to a shape that the model computes of that of x; and a result that is shapes alone."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    known = {"first": np.int64([0]), "rest": np.int64([2, -1])}
    made = model(nodes, [("x", F, [3, 4])], [("y", F, None), ("wanted", WHOLE, [3])], **known)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    prepared = sley_onnx.prepare(made, ENGINE)
    y, wanted = prepared.run([x])
    np.testing.assert_array_equal(y, x.reshape(3, 2, 2))
    assert wanted.tolist() == [3, 2, -1]
    assert not prepared.folded
    only = sley_onnx.prepare(model(nodes[:1], [("x", F, [3, 4])], [("s", WHOLE, [2])]), ENGINE)
    assert only.run([x])[0].tolist() == [3, 4]
    assert only.folded


def test_everything_that_is_missing_is_listed_at_once() -> None:
    """Behind an operator that is missing nothing can be computed; others that are missing are named all the same."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["a"], name="first"),
        helper.make_node("Shape", ["a"], ["b"]),
        helper.make_node("RoiAlign", ["b"], ["c"], name="second"),
        helper.make_node("Abs", ["x"], ["d"]),
        helper.make_node("Unique", ["d"], ["e"], name="third"),
    ]
    made = model(nodes, [("x", F, [3])], [("c", F, None), ("e", F, None)])
    with pytest.raises(UnsupportedOperator) as caught:
        sley_onnx.prepare(made, ENGINE).run([np.zeros(3, np.float32)])
    text = str(caught.value)
    for name in ("NonZero 'first'", "RoiAlign 'second'", "Unique 'third'"):
        assert text.count(name) == 1, text
    assert "Abs" not in text
    assert "Shape" not in text


def test_another_domain_is_named() -> None:
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml")
    made = model([node], [("x", F, [3])], [("y", F, [3])])
    with pytest.raises(UnsupportedOperator, match=r"ai.onnx.ml.Binarizer"):
        sley_onnx.prepare(made, ENGINE).run([np.zeros(3, np.float32)])


def test_operators_of_ones_own() -> None:
    """One of another domain, and one in place of Sley's, which no pass fuses; inside of a subgraph, too."""
    nodes = [
        helper.make_node("Twice", ["x"], ["a"], domain="mine"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Softplus", ["b"], ["y"]),
    ]
    made = model(nodes, [("x", F, [3])], [("y", F, [3])])
    operators = {
        "mine.Twice": lambda c, node, x: nn.mul(c.array(x), 2.0, stream=c.stream),
        "Softplus": lambda c, node, x: nn.add(c.array(x), 5.0, stream=c.stream),
    }
    prepared = sley_onnx.prepare(made, ENGINE, operators=operators)
    (y,) = prepared.run([np.array([-1, 0, 3], np.float32)])
    np.testing.assert_array_equal(y, [5, 5, 11])
    with pytest.raises(BadRequest, match=r"operators names SoftPlus, and 'tried' has no such operator"):
        sley_onnx.prepare(made, ENGINE, operators=operators | {"SoftPlus": operators["Softplus"]}).run(
            [np.zeros(3, np.float32)]
        )
    with pytest.raises(UnsupportedOperator, match=r"mine.Twice.*no such operator"):
        sley_onnx.prepare(made, ENGINE, operators={"Softplus": operators["Softplus"]}).run([np.zeros(3, np.float32)])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([np.zeros((2, 8), np.float32)], ShapeMismatch, r"x has shape \(2, 8\); the network takes"),
        ([np.zeros(7, np.float32)], ShapeMismatch, r"x has shape \(7,\)"),
        ([np.zeros((2, 7))], UnsupportedType, "x is float64; the device has no such type"),
        ([], ShapeMismatch, "x has sides that are not known"),
    ],
)
def test_wrong_inputs(given: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sley_onnx.prepare(perceptron()[0], ENGINE).run(given)


def test_inputs_by_name_are_checked() -> None:
    with Device.open(ENGINE) as device:
        compiled = compile_network(read_model(perceptron()[0]), device, fold, {"x": (2, 7)})
        with pytest.raises(BadRequest, match="takes x; given were z"):
            compiled(z=np.zeros((2, 7), np.float32))
        with pytest.raises(BadRequest, match="takes x; given were"):
            compiled(np.zeros((2, 7), np.float32), np.zeros(1))


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT16, TensorProto.STRING])
def test_types_that_the_device_has_not(kind: int) -> None:
    made = model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])])
    value = np.zeros(2, helper.tensor_dtype_to_np_dtype(kind))
    with pytest.raises(UnsupportedType, match="the device has no such type: convert it"):
        sley_onnx.prepare(made, ENGINE).run([value])


def test_int64_is_int32() -> None:
    """Up to its ends; integers beyond them are refused, of inputs and of constants."""
    ends = np.int64([-(1 << 31), 0, (1 << 31) - 1])
    made = model(
        [helper.make_node("Sub", ["x", "c"], ["y"])], [("x", WHOLE, [3])], [("y", WHOLE, [3])], c=np.int64([0, 5, 0])
    )
    (y,) = sley_onnx.prepare(made, ENGINE).run([ends])
    assert (y.dtype, y.tolist()) == (np.dtype(np.int64), (ends - [0, 5, 0]).tolist())
    for value in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(BadRequest, match="x holds integers beyond int32"):
            sley_onnx.prepare(made, ENGINE).run([np.int64([0, 0, value])])
        wide = model(
            [helper.make_node("Sub", ["x", "c"], ["y"])], [("x", WHOLE, [1])], [("y", WHOLE, [1])], c=np.int64([value])
        )
        with pytest.raises(BadRequest, match="a constant holds integers beyond int32"):
            sley_onnx.prepare(wide, ENGINE).run([np.int64([1])])


def test_weights_that_are_computed() -> None:
    random = np.random.default_rng(8)
    x, w = random.standard_normal((1, 1, 4, 4)), random.standard_normal((1, 1, 3, 3))
    nodes = [helper.make_node("Abs", ["w"], ["a"]), helper.make_node("Conv", ["x", "a"], ["y"])]
    made = model(nodes, [("x", F, [1, 1, 4, 4]), ("w", F, [1, 1, 3, 3])], [("y", F, None)])
    (y,) = sley_onnx.prepare(made, ENGINE).run([x.astype(np.float32), w.astype(np.float32)])
    right = [[(x[0, 0, i : i + 3, j : j + 3] * np.abs(w[0, 0])).sum() for j in range(2)] for i in range(2)]
    np.testing.assert_allclose(y[0, 0], right, rtol=1e-5, atol=1e-5)


def test_older_models_are_converted() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])  # of opset 11 along all axes from 1 on
    made = model([node], [("x", F, [2, 3, 2])], [("y", F, [2, 3, 2])], 11)
    x = np.random.default_rng(5).standard_normal((2, 3, 2)).astype(np.float32)
    (y,) = sley_onnx.prepare(made, ENGINE).run([x])
    wide = np.exp(x - x.max((1, 2), keepdims=True))
    np.testing.assert_allclose(y, wide / wide.sum((1, 2), keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("name", "known"), [("CPU", True), (ENGINE, True), ("fast:base", True), ("cuda:0", False)])
def test_devices(name: str, known: bool) -> None:
    assert sley_onnx.supports_device(name) == known
