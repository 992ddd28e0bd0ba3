import io

import numpy as np
import pytest
from rich.console import Console

from sley.examples.digits import run as digits
from sley.examples.digits.inference import DeviceNetwork
from sley.examples.digits.layers import Convolution, Dense, Layer
from sley.examples.digits.quantise import quantise
from sley.examples.digits.training import Network
from sley.runtime import Device


@pytest.mark.parametrize("stride", [1, 2])
def test_lowered_convolution_is_a_convolution(stride: int) -> None:
    random = np.random.default_rng(0)
    layer = Convolution(5, 2, 3, stride)
    x, w = random.standard_normal((2, 5, 5, 2)), random.standard_normal((3, 3, 2, 3))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = np.zeros((2, layer.side, layer.side, 3))
    for y in range(layer.side):
        for z in range(layer.side):
            patch = padded[:, stride * y : stride * y + 3, stride * z : stride * z + 3]
            expected[:, y, z] = np.einsum("bijc,ijco->bo", patch, w)
    assert np.allclose(layer.shape(layer.lower(x) @ w.reshape(18, 3), 2), expected)


@pytest.mark.parametrize("layer", [Dense(50, 4), Convolution(5, 2, 3), Convolution(5, 2, 3, 2)])
def test_raise_is_the_adjoint_of_lower(layer: Layer) -> None:
    random = np.random.default_rng(1)
    x = random.standard_normal((3, 5, 5, 2))
    rows = random.standard_normal(layer.lower(x).shape)
    assert np.isclose((layer.lower(x) * rows).sum(), (x * layer.raise_(rows, x.shape)).sum())


def test_gradients_against_differences() -> None:
    random = np.random.default_rng(2)
    network = Network("small", [Convolution(4, 1, 2, 2), Dense(8, 3, relu=False)])
    network.weights = [w.astype(np.float64) for w in network.weights]
    network.biases = [b.astype(np.float64) + 0.1 for b in network.biases]
    x, labels = random.standard_normal((5, 4, 4, 1)), np.array([0, 1, 2, 0, 1])

    def loss() -> float:
        logits = network.forward(x)[-1]
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(5), labels]))

    of_weights, of_biases = network.gradients(x, labels)
    for values, gradients in zip(network.weights + network.biases, of_weights + of_biases, strict=True):
        place = np.unravel_index(int(np.abs(gradients).argmax()), values.shape)
        values[place] += 1e-6
        high = loss()
        values[place] -= 2e-6
        assert np.isclose((high - loss()) / 2e-6, gradients[place], rtol=1e-3)
        values[place] += 1e-6


def test_quantised_network_on_the_device(device: Device) -> None:
    random = np.random.default_rng(3)
    network = Network("small", [Convolution(4, 1, 3, 2), Dense(12, 5, relu=False)])
    images = random.random((6, 4, 4, 1)).astype(np.float32)
    quantised = quantise(network, images)
    runner = DeviceNetwork(device, quantised)
    outputs = runner.run(images)
    exact = network.forward(images)
    for ours, float_values in zip(outputs, exact[1:], strict=True):
        scale = np.abs(float_values).max() / 127
        assert np.abs(ours * scale - float_values).max() < 6 * scale
    assert runner.work.macs == 6 * (4 * 9 * 3 + 12 * 5)
    assert (runner.work.cycles > 0) == device.driver.has_cycles


def test_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits, "EPOCHS", {"MLP": 3, "CNN": 1})
    text = io.StringIO()
    results = digits.run_demo("model:base?memory=4M", 20, Console(file=text, width=120))
    assert [r.images for r in results] == [20, 20]
    assert all(r.int8_correct > 10 for r in results)
    assert "All results of all 5 layers equal the golden model in every bit." in text.getvalue()


def test_demo_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits, "EPOCHS", {"MLP": 1, "CNN": 1})
    monkeypatch.setattr(digits, "DEFAULT_ENGINE", "absent:base")
    monkeypatch.setattr(digits, "FALLBACK_ENGINE", "model:edge?memory=4M")
    text = io.StringIO()
    results = digits.run_demo(None, None, Console(file=text, width=120))
    assert [r.images for r in results] == [digits.FALLBACK_IMAGES] * 2
    assert "it is slow, so only" in text.getvalue()


def test_demo_notices_a_wrong_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits, "EPOCHS", {"MLP": 1, "CNN": 1})
    run = DeviceNetwork.run

    def flawed(self: DeviceNetwork, images: np.ndarray) -> list[np.ndarray]:
        outputs = run(self, images)
        if flaws:
            outputs[0].flat[flaws.pop()] ^= 1
        return outputs

    flaws = [3]
    monkeypatch.setattr(DeviceNetwork, "run", flawed)
    with pytest.raises(digits.DemoError, match="MLP, layer 0: 1 values differ"):
        digits.run_demo("model:edge?memory=4M", 2, Console(file=io.StringIO()))
