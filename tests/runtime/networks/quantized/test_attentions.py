"""Attention of quantised values: one operator, near onnx's reference, in all forms that exporters write."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")

import onnx
from onnx.reference import ReferenceEvaluator
from qdq import INT8, UINT8, Model, compiled, operators

from sley.runtime import Device

SCALE = 0.02


def operands(model: Model, shapes: list[tuple[int, ...]], zeros: tuple[int, int, int], dtype: Any) -> list[str]:
    return [
        model.dequantize(model.input(name, shape, dtype), SCALE, zero, dtype)
        for name, shape, zero in zip("qkv", shapes, zeros, strict=True)
    ]


def values(shapes: list[tuple[int, ...]], dtype: Any, seed: int = 0) -> dict[str, Any]:
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    return {
        name: rng.integers(info.min, info.max + 1, shape).astype(dtype)
        for name, shape in zip("qkv", shapes, strict=True)
    }


def near(made: onnx.ModelProto, given: dict[str, Any], found: np.ndarray, atol: float) -> None:
    (wanted,) = ReferenceEvaluator(made).run(None, given)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype == np.float32:
        np.testing.assert_allclose(found, wanted, atol=atol)
    else:
        assert abs(found.astype(int) - wanted.astype(int)).max() <= 1
        assert (found != wanted).mean() < 0.15


def in_steps(model: Model, q: str, k: str, v: str, form: str, mask: str = "") -> str:
    turned = model.node("Transpose", k, perm=[0, 1, 3, 2])
    if form == "before":  # as PyTorch's exporter writes it
        root = model.constant(32**-0.25, np.float32)
        q, turned = model.node("Mul", q, root), model.node("Mul", root, turned)
    scores = model.node("MatMul", q, turned)
    if form == "behind":
        scores = model.node("Div", scores, model.constant(32**0.5, np.float32))
    if form == "product":
        scores = model.node("Mul", model.constant(32**-0.5, np.float32), scores)
    if mask:
        scores = model.node("Add", scores, mask)
    return model.node("MatMul", model.node("Softmax", scores, axis=-1), v)


@pytest.mark.parametrize(
    ("dtype", "zeros"), [(INT8, (0, 0, 0)), (INT8, (0, 5, -7)), (UINT8, (128, 0, 140)), (UINT8, (100, 255, 3))], ids=str
)
@pytest.mark.parametrize("form", ["before", "behind", "product"])
def test_products_and_a_softmax(base: Device, form: str, dtype: Any, zeros: tuple[int, int, int]) -> None:
    shapes = [(1, 3, 21, 32), (1, 3, 37, 32), (1, 3, 37, 32)]
    model = Model()
    result = in_steps(model, *operands(model, shapes, zeros, dtype), form)
    moved = model.node(
        "Reshape", model.node("Transpose", result, perm=[0, 2, 1, 3]), model.constant([21, 96], np.int64)
    )
    y = model.quantize(moved, SCALE, 3 if dtype == INT8 else 131, dtype)
    made = model.made((y, dtype))
    network = compiled(made, base)
    assert operators(network) == ["Transpose", "QuantizedAttention", "Transpose", "Reshape"]
    given = values(shapes, dtype)
    near(made, given, network(**given)[y], 0)


LOWEST = float(np.finfo(np.float32).min)


@pytest.mark.parametrize(("below", "never"), [(1, None), (0, -np.inf), (0, LOWEST), (1, -np.inf), (0, -50.0)])
def test_masks_and_results_of_float32(base: Device, below: int, never: float | None) -> None:
    """Zeros, and what nobody sees above the diagonal, are a causal mask; all others are added."""
    shapes, causal = [(2, 2, 21, 32)] * 3, below == 0 and never in (-np.inf, LOWEST)
    mask = np.random.default_rng(1).standard_normal((21, 21)) * below
    if never is not None:
        mask = np.where(np.tri(21) == 1, mask, never)
    model = Model()
    y = in_steps(model, *operands(model, shapes, (0, 0, 0), INT8), "before", model.constant(mask, np.float32))
    made = model.made((y, np.float32))
    network = compiled(made, base)
    (node,) = [node for node in network.network.nodes if node.operator == "QuantizedAttention"]
    assert (node.attributes["is_causal"], len(node.inputs)) == (int(causal), 3 if causal else 4)
    given = values(shapes, INT8)
    near(made, given, network(**given)[y], 3 * 2.0**-8 * 128 * SCALE)


@pytest.mark.parametrize("heads", [(4, 4), (4, 2)])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_the_operator(base: Device, causal: int, flat: bool, heads: tuple[int, int]) -> None:
    """Attention of opset 23: with heads as an axis, or beside dim; heads of k that serve several of q."""
    rows, counts = (13, 13, 13), (heads[0], heads[1], heads[1])
    shapes = [(2, n, count * 32) if flat else (2, count, n, 32) for n, count in zip(rows, counts, strict=True)]
    model = Model()
    more: dict[str, Any] = {"q_num_heads": heads[0], "kv_num_heads": heads[1]} if flat else {}
    real = model.node("Attention", *operands(model, shapes, (0, 3, 5), INT8), is_causal=causal, scale=0.2, **more)
    y = model.quantize(real, SCALE, 0)
    made = model.made((y, np.int8))
    made.opset_import[0].version = 23
    network = compiled(made, base)
    assert operators(network) == ["QuantizedAttention"]
    given = values(shapes, INT8)
    near(made, given, network(**given)[y], 0)


def test_what_stays_as_it_is(base: Device) -> None:
    """Scores that others see, a softmax of another axis, and values that are not quantised."""
    shapes = [(1, 2, 9, 32)] * 3
    for change in ("scores", "axis", "real"):
        model = Model()
        q, k, v = operands(model, shapes, (0, 0, 0), INT8)
        if change == "real":
            v = model.node("Exp", v)
        scores = model.node("MatMul", q, model.node("Transpose", k, perm=[0, 1, 3, 2]))
        softmax = model.node("Softmax", scores, axis=2 if change == "axis" else -1)
        y = model.node("MatMul", softmax, v)
        outputs = [(y, np.float32), *([(scores, np.float32)] if change == "scores" else [])]
        network = compiled(model.made(*outputs), base)
        assert "QuantizedAttention" not in operators(network)
