"""PyTorch on a device: modules as networks, and ``torch.compile``; needs the extra ``torch``."""

import numpy as np
import pytest

from sley.abi.install import extra
from sley.runtime import Device

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")

OPTIONS = {"engine": "model:base?memory=64M"}


class Small(torch.nn.Module):  # type: ignore[misc]  # torch is there only if it is installed
    """Convolution, batch norm, pooling, linear, embedding, softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.linear, self.table = torch.nn.Linear(8 * 16, 10), torch.nn.Embedding(11, 10)

    def forward(self, x: "torch.Tensor", numbers: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
        y = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2).flatten(1)
        z = torch.nn.functional.gelu(self.linear(y)) + self.table(numbers)
        return torch.softmax(z, -1), z.mean(1)


@pytest.fixture
def small() -> Small:
    torch.manual_seed(1)
    return Small().eval()


def close(found: tuple["torch.Tensor", ...], right: tuple["torch.Tensor", ...]) -> None:
    assert len(found) == len(right)
    for value, wanted in zip(found, right, strict=True):
        np.testing.assert_allclose(value.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_compile(small: Small) -> None:
    """Equal to PyTorch; again for other shapes, and for parameters that were changed."""
    torch._dynamo.reset()
    compiled = torch.compile(small, backend="sley", options=OPTIONS, dynamic=False)
    x, numbers = torch.randn(2, 3, 8, 8), torch.tensor([3, 7])
    with torch.no_grad():
        close(compiled(x, numbers), small(x, numbers))
        small.linear.weight.mul_(2)
        close(compiled(x, numbers), small(x, numbers))


def test_options() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(torch.nn.ReLU(), backend="sley", options={"engin": "model:base"})
    with torch.no_grad(), pytest.raises(Exception, match="options engin of the backend sley; it has engine, precision"):
        compiled(torch.randn(3))


def test_parameters_that_are_replaced() -> None:
    """Another tensor in the place of one that is gone is another constant."""
    torch._dynamo.reset()
    layer = torch.nn.Linear(4, 3).eval()
    compiled = torch.compile(layer, backend="sley", options=OPTIONS, dynamic=False)
    x = torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(2):
            layer.weight = torch.nn.Parameter(torch.randn(3, 4))
            close((compiled(x),), (layer(x),))


@pytest.mark.slow
def test_a_transformer(small: Small) -> None:
    from sley.runtime.frameworks.from_onnx.fold import fold
    from sley.runtime.frameworks.torch import read_module
    from sley.runtime.networks.compilation import compile_network

    torch.manual_seed(2)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 9, 16)
    network = read_module(layer, [x])
    with Device.open(OPTIONS["engine"]) as device:
        found = compile_network(network, device, fold)(x.numpy())
    with torch.no_grad():
        close(tuple(torch.from_numpy(value) for value in found.values()), (layer(x),))
