"""PyTorch's PT2E flow with the quantizer for Sley: networks on int8 that give what converted modules give."""

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from sley.abi.install import extra
from sley.runtime import Device
from sley.runtime.networks.compilation import compile_network

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
if find_spec("torchao") is None:  # not imported yet: that takes seconds, in each run of any tests
    pytest.skip(f"torchao is not installed: {extra('quant')}", allow_module_level=True)
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('quant')}")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Residual(torch.nn.Module):  # type: ignore[misc]
    """A convolution with batch norm, one with a stride, a residual, pooling, a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(3, 9, 3, padding=1), torch.nn.BatchNorm2d(9)
        self.second = torch.nn.Conv2d(9, 8, 3, padding=1, stride=2)
        self.side = torch.nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.pool, self.last = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(8, 10)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.second(torch.relu(self.norm(self.first(x)))))
        y = torch.relu(y + self.side(y))
        return self.last(torch.flatten(self.pool(y), 1))


def converted(training: bool) -> tuple[Any, Any]:
    """A quantised module and an input. In training two steps are made with quantisation taking part."""
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

    from sley.runtime.frameworks.pt2e import SleyQuantizer

    torch.manual_seed(1)
    module, x = Residual().train(training), torch.randn(4, 3, 8, 9)
    exported = torch.export.export(module, (x,)).module()
    prepared = (prepare_qat_pt2e if training else prepare_pt2e)(exported, SleyQuantizer(training))
    optimizer = torch.optim.SGD(prepared.parameters(), 0.05)
    losses = []
    for _ in range(6):
        result = prepared(torch.randn(4, 3, 8, 9))
        if training:
            loss = torch.nn.functional.mse_loss(result, torch.ones(4, 10))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
    assert not training or losses[-1] < losses[0]
    made = convert_pt2e(prepared)
    if training:
        move_exported_model_to_eval(made)
    return made, x


@pytest.mark.parametrize("training", [False, True])
def test_pt2e(training: bool) -> None:
    from sley.runtime.frameworks.from_onnx.fold import fold
    from sley.runtime.frameworks.torch import read_module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, x = converted(training)
    network = read_module(module, (x,))
    with Device.open("model:base?memory=32M") as device:
        compiled = compile_network(network, device, fold)
        (found,) = compiled(x.numpy()).values()
    operators = [node.operator for node in compiled.network.nodes]
    convolutions = ["QuantizedConv"] * 3
    assert operators == ["QuantizeLinear", *convolutions, "Region", "QuantizedPool", "Reshape", "QuantizedMatMul"]
    wanted = module(x).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=0.02 * abs(wanted).max())


class SelfAttention(torch.nn.Module):  # type: ignore[misc]
    """Attention of two heads between linear layers."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal, self.parts = causal, torch.nn.ModuleList([torch.nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        q, k, v = (part(x).view(2, 20, 2, 32).transpose(1, 2) for part in self.parts[:3])
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.parts[3](y.transpose(1, 2).reshape(2, 20, 64))


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from sley.runtime.frameworks.from_onnx.fold import fold
    from sley.runtime.frameworks.pt2e import SleyQuantizer
    from sley.runtime.frameworks.torch import read_module

    torch.manual_seed(3)
    module, x = SelfAttention(causal).eval(), torch.randn(2, 20, 64)
    prepared = prepare_pt2e(torch.export.export(module, (x,)).module(), SleyQuantizer())
    for _ in range(6):
        prepared(torch.randn(2, 20, 64))
    made = convert_pt2e(prepared)
    network = read_module(made, (x,))
    with Device.open("model:base?memory=32M") as device:
        compiled = compile_network(network, device, fold)
        (found,) = compiled(x.numpy()).values()
    operators = [node.operator for node in compiled.network.nodes]
    assert operators.count("QuantizedAttention") == 1
    assert operators.count("QuantizedMatMul") == 4
    (attention,) = [node for node in compiled.network.nodes if node.operator == "QuantizedAttention"]
    assert (attention.attributes["is_causal"], attention.attributes["zeros"][0]) == (int(causal), 0)
    wanted = made(x).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=0.02 * abs(wanted).max())
