"""The quantiser: accuracy on digits, the type of each layer, corrections, smoothing, rows with scales of their own."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("sklearn", reason="the extra demo is not installed")

from digit_networks import FLOAT, digits, images, network_of, trained
from small_transformer import TOKENS, WIDTH, transformer
from typer.testing import CliRunner

from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.cli import app
from sley.runtime.frameworks.from_onnx.fold import fold
from sley.runtime.networks.compilation import compile_network
from sley.runtime.networks.file import load_network, save_network
from sley.runtime.networks.graph import Network, Node, TensorType
from sley.runtime.networks.quantizer.evaluation import evaluate
from sley.runtime.networks.quantizer.layers import layers_of
from sley.runtime.networks.quantizer.quantize import quantize
from sley.runtime.networks.quantizer.smoothing import smooth


@pytest.fixture(scope="module")
def base() -> Iterator[Device]:
    with Device.open("model:base?memory=64M") as device:
        yield device


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("MLP", ["QuantizeLinear", "Flatten", "QuantizedMatMul", "QuantizedMatMul"]),
        ("CNN", ["QuantizeLinear", "QuantizedConv", "QuantizedConv", "Flatten", "QuantizedMatMul"]),
    ],
)
def test_digits(base: Device, name: str, operators: list[str]) -> None:
    """All products on int8, and at most one image in a hundred more wrong than in float32."""
    model, data = trained(name), digits()
    made, report = quantize(network_of(model), {"image": images(data.train[:128])}, fold)
    compiled = compile_network(made, base, fold, {"image": (len(data.test), 1, 8, 8)})
    assert [node.operator for node in compiled.network.nodes] == operators
    (found,) = compiled(images(data.test)).values()
    real, labels = model.classify(data.test), data.test_labels
    assert (real == labels).mean() > 0.93
    assert (found.argmax(1) == labels).mean() >= (real == labels).mean() - 0.01
    assert report.share == 1
    assert all(row.kind == "int8" and row.int8 > 40 for row in report.rows)
    assert min(report.outputs.values()) > 35


def chain(scale: np.ndarray, bias: bool = True) -> Network:
    """A norm, and two products behind it."""
    rng = np.random.default_rng(1)
    constants = {
        "g": scale.astype(np.float32),
        "h": rng.standard_normal(len(scale)).astype(np.float32),
        "w": rng.standard_normal((len(scale), 12)).astype(np.float32),
        "v": rng.standard_normal((9, len(scale))).astype(np.float32),
        "b": rng.standard_normal(9).astype(np.float32),
    }
    nodes = [
        Node("LayerNormalization", ("x", "g", "h"), ("n",), {"axis": -1}, "norm", 17),
        Node("MatMul", ("n", "w"), ("p",), {}, "first", 13),
        Node("Gemm", ("n", "v", "b"), ("q",), {"transB": 1}, "second", 13),
    ]
    types = {name: TensorType(FLOAT, ("rows", None)) for name in ("n", "p", "q")}
    inputs = {"x": TensorType(FLOAT, ("rows", len(scale)))}
    return Network("chain", inputs, {"p": types["p"], "q": types["q"]}, nodes, constants, types)


def outliers() -> np.ndarray:
    """Scales of a norm of which one channel is a hundred times the others."""
    scale = np.ones(24)
    scale[5] = 100
    return scale


def test_smoothing_keeps_the_function() -> None:
    network, x = chain(outliers()), np.random.default_rng(2).standard_normal((16, 24)).astype(np.float32)
    smoothed = smooth(network, layers_of(network), [{"x": x}], fold)
    assert not np.allclose(smoothed.constants["g"], network.constants["g"])
    for name, value in evaluate(network, {"x": x}, fold).items():
        np.testing.assert_allclose(evaluate(smoothed, {"x": x}, fold)[name], value, rtol=1e-4, atol=1e-3)


def test_smoothing_helps() -> None:
    x = {"x": np.random.default_rng(2).standard_normal((128, 24)).astype(np.float32)}
    _, plain = quantize(chain(outliers()), x, fold, smoothing=False, correction=False)
    _, better = quantize(chain(outliers()), x, fold, correction=False)
    for before, behind in zip(plain.rows, better.rows, strict=True):
        assert behind.int8 > before.int8 + 3


def test_a_norm_with_other_users_is_not_smoothed() -> None:
    network = chain(outliers())
    nodes = [*network.nodes, Node("Relu", ("n",), ("r",))]
    more = Network("more", network.inputs, {**network.outputs, "r": network.types["n"]}, nodes, network.constants)
    assert smooth(more, layers_of(more), [{"x": np.ones((2, 24), np.float32)}], fold) is more


def test_rows_with_scales_of_their_own(base: Device) -> None:
    """Rows of very different size: one scale for all loses the small ones, a scale for each row does not."""
    rng = np.random.default_rng(3)
    network = chain(np.ones(24))
    network = Network("rows", {"n": network.inputs["x"]}, network.outputs, network.nodes[1:], network.constants)
    x = (rng.standard_normal((64, 24)) * 10.0 ** rng.integers(-3, 3, (64, 1))).astype(np.float32)
    made, report = quantize(network, {"n": x}, fold, dynamic=True)
    assert {row.kind for row in report.rows} == {"dynamic"}
    compiled = compile_network(made, base, fold, {"n": (64, 24)})
    assert [node.operator for node in compiled.network.nodes] == ["DynamicMatMul", "DynamicMatMul"]
    found, real = compiled(x), evaluate(network, {"n": x}, fold)
    error = np.linalg.norm(found["p"] - real["p"], axis=1) / np.linalg.norm(real["p"], axis=1)
    assert error.max() < 0.03
    wanted = np.clip(np.rint(x / (abs(x).max(1, keepdims=True) / 127)), -127, 127) * (
        abs(x).max(1, keepdims=True) / 127
    )
    largest = abs(network.constants["v"]).max(1, keepdims=True) / 127
    weights = np.rint(network.constants["v"] / largest) * largest
    exact = wanted.astype(np.float64) @ weights.T + network.constants["b"]
    assert np.median(abs(found["q"] - exact) / abs(exact)) < 1e-5


def test_the_type_of_a_layer_is_by_its_error(base: Device) -> None:
    """One channel of x is a million times the others, and its weights are 0: int8 has nothing left of the others."""
    rng = np.random.default_rng(4)
    network = chain(np.ones(24))
    w = network.constants["w"].copy()
    w[7] = 0
    constants = {**network.constants, "w": w}
    network = Network("hard", {"n": network.inputs["x"]}, network.outputs, network.nodes[1:], constants)
    x = rng.standard_normal((64, 24)).astype(np.float32)
    x[:, 7] *= 1e6
    made, report = quantize(network, {"n": x}, fold)
    kinds = {row.name: row.kind for row in report.rows}
    assert kinds == {"first": "bfloat16", "second": "int8"}
    assert 0 < report.share < 1
    found = compile_network(made, base, fold, {"n": x.shape})(x)["p"]
    real = x.astype(np.float64) @ w
    assert np.linalg.norm(found - real) / np.linalg.norm(real) < 0.01
    _, strict = quantize(network, {"n": x}, fold, least=1000)
    assert {row.kind for row in strict.rows} == {"float32"}


def test_the_mean_error_is_taken_off() -> None:
    """Weights that are all rounded up shift each output; the bias makes up for it."""
    rng = np.random.default_rng(5)
    w = np.full((16, 3), 0.6 / 127, np.float32)
    w[0] = 1
    types = {"x": TensorType(FLOAT, (None, 16)), "y": TensorType(FLOAT, (None, 3))}
    network = Network("shifted", {"x": types["x"]}, {"y": types["y"]}, [Node("MatMul", ("x", "w"), ("y",))], {"w": w})
    x = (rng.random((256, 16)) + 0.5).astype(np.float32)
    real = evaluate(network, {"x": x}, fold)["y"]
    means = []
    for correction in (False, True):
        made, report = quantize(network, {"x": x}, fold, correction=correction, method="max")
        means.append(abs((evaluate(made, {"x": x}, fold)["y"] - real).mean(0)).max())
        assert len(report.rows) == 1
    assert means[1] < means[0] / 20


def test_the_report(tmp_path: Path) -> None:
    network = network_of(trained("MLP"))
    _, report = quantize(network, {"image": images(digits().train[:32])}, fold)
    content = json.loads(report.json())
    assert [row["name"] for row in content["rows"]] == ["layer0", "layer1"]
    assert content["rows"][0]["products"] == 64 * 64
    assert content["share"] == 1
    assert content["outputs"]["layer1"] > 30
    assert len(report.table().rows) == 3


def test_the_command(tmp_path: Path) -> None:
    network, data = network_of(trained("MLP")), tmp_path / "samples.npz"
    save_network(network, tmp_path / "mlp.sley")
    np.savez(data, image=images(digits().train[:32]))
    arguments = ["quantize", str(tmp_path / "mlp.sley"), "--data", str(data), "--output", str(tmp_path / "int8.sley")]
    result = CliRunner().invoke(app, [*arguments, "--report", str(tmp_path / "report.json")], catch_exceptions=False)
    assert result.exit_code == 0
    assert "100.0% of the products are of int8" in result.output
    assert json.loads((tmp_path / "report.json").read_text())["network"] == "MLP"
    operators = [node.operator for node in load_network(tmp_path / "int8.sley").nodes]
    assert operators == ["QuantizeLinear", "Flatten", "QuantizedMatMul", "QuantizedMatMul"]


def test_what_is_refused() -> None:
    network = network_of(trained("MLP"))
    sample = images(digits().train[:4])
    with pytest.raises(BadRequest, match="method is 'best'; it is max, percentile, mse"):
        quantize(network, {"image": sample}, fold, method="best")
    with pytest.raises(BadRequest, match="data for picture; 'MLP' takes image"):
        quantize(network, {"picture": sample}, fold)
    with pytest.raises(BadRequest, match="not finite"):
        quantize(network, {"image": np.full_like(sample, np.nan)}, fold)
    types = {"x": TensorType(FLOAT, (2, 3))}
    plain = Network("plain", types, {"y": types["x"]}, [Node("Relu", ("x",), ("y",))], {})
    with pytest.raises(BadRequest, match="'plain' has no convolution and no product"):
        quantize(plain, {"x": np.ones((2, 3), np.float32)}, fold)
    fixed = Network(
        "fixed",
        {"x": TensorType(FLOAT, (4, 24))},
        *[getattr(chain(np.ones(24)), n) for n in ("outputs", "nodes", "constants")],
    )
    with pytest.raises(BadRequest, match="6 samples, and 'fixed' takes 4 at once"):
        quantize(fixed, {"x": np.ones((6, 24), np.float32)}, fold)


@pytest.mark.parametrize("causal", [False, True])
def test_a_transformer(base: Device, causal: bool) -> None:
    """Layers and attention on int8: the device is as far from float32 as onnx's reference of the same network."""
    rng = np.random.default_rng(0)
    network = transformer(causal)
    data, x = (rng.standard_normal((n, TOKENS, WIDTH)).astype(np.float32) for n in (32, 4))
    made, report = quantize(network, {"x": data}, fold)
    kinds = {row.name: (row.operator, row.kind) for row in report.rows}
    assert [kinds[f"layer{layer}.attention"] for layer in range(2)] == [("Attention", "int8")] * 2
    assert all(row.int8 > 30 for row in report.rows)
    compiled = compile_network(made, base, fold, {"x": x.shape})
    operators = [node.operator for node in compiled.network.nodes]
    assert (operators.count("QuantizedAttention"), operators.count("Softmax"), operators.count("MatMul")) == (2, 0, 0)
    (found,), (real,) = compiled(x).values(), evaluate(network, {"x": x}, fold).values()
    (reference,) = evaluate(made, {"x": x}, fold).values()
    ratios = [10 * np.log10(np.square(real).sum() / np.square(value - real).sum()) for value in (found, reference)]
    assert ratios[0] > max(23, ratios[1] - 0.5)


def test_attention_too_far_off_stays_real(base: Device) -> None:
    rng = np.random.default_rng(0)
    network = transformer()
    data = {"x": rng.standard_normal((8, TOKENS, WIDTH)).astype(np.float32)}
    made, report = quantize(network, data, fold, least=36)
    kinds = {row.name: row.kind for row in report.rows}
    assert (kinds["layer0.attention"], kinds["layer0.q.product"]) == ("float32", "int8")
    operators = [node.operator for node in compile_network(made, base, fold, {"x": (8, TOKENS, WIDTH)}).network.nodes]
    assert "QuantizedAttention" not in operators
    assert operators.count("Softmax") == 2
