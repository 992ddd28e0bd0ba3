"""Training on the device ``sley`` gives the losses that training on the host gives."""

import copy
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
sley_torch = pytest.importorskip("sley.runtime.frameworks.torch")
nn = torch.nn


class Transformer(nn.Module):  # type: ignore[misc]  # torch is there only if it is installed
    """Two layers over an embedding."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.table, self.layers, self.out = nn.Embedding(20, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 20)

    def forward(self, x: Any) -> Any:
        return self.out(self.layers(self.table(x)))


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )


def losses(model: Any, x: Any, y: Any, optimizer: Any, steps: int, device: str) -> list[float]:
    model, x, y = copy.deepcopy(model).to(device), x.to(device), y.to(device)
    chosen, found = optimizer(model.parameters()), []
    for _ in range(steps):
        chosen.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        chosen.step()
        found.append(loss.item())
    return found


def test_mlp() -> None:
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)), torch.randn(8, 6), torch.arange(8) % 3

    def sgd(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, 0.5, momentum=0.9)

    run = [losses(model, x, y, sgd, 4, device) for device in ("cpu", "sley")]
    assert run[1] == pytest.approx(run[0], abs=1e-5)


@pytest.mark.slow
def test_cnn() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(8, 1, 12, 12), torch.randint(0, 4, (8,))
    model = cnn()
    run = [losses(model, x, y, lambda p: torch.optim.Adam(p, 1e-2), 6, device) for device in ("cpu", "sley")]
    assert run[1] == pytest.approx(run[0], abs=1e-4)
    assert run[1][-1] < run[1][0]


@pytest.mark.slow
@pytest.mark.parametrize("fused", [False, True])
def test_transformer(fused: bool) -> None:
    torch.manual_seed(0)
    x = torch.randint(0, 20, (4, 10))
    model, y = Transformer(), x.roll(1, 1)
    run = [
        losses(model, x, y, lambda p, f=fused: torch.optim.AdamW(p, 3e-3, fused=f), 6, device)
        for device in ("cpu", "sley")
    ]
    assert run[1] == pytest.approx(run[0], abs=1e-4)
    assert run[1][-1] < run[1][0]


def test_shared_parameters_stay_one() -> None:
    """Of a table that is the head of a model, too, on the way there and back; the flat weights of a recurrent layer are
    its parameters."""
    model = torch.nn.ModuleDict({"table": torch.nn.Embedding(5, 4), "head": torch.nn.Linear(4, 5, bias=False)})
    model["layer"] = torch.nn.GRU(4, 4)
    model["head"].weight = model["table"].weight
    model["layer"].weight_hh_l0 = model["layer"].weight_ih_l0
    numbers = torch.tensor([[0, 3, 3]])

    def gradient(device: str) -> Any:
        model.to(device).zero_grad()
        held = model["layer"](model["table"](numbers.to(device)))[0]
        model["head"](held).square().sum().backward()
        assert model["head"].weight is model["table"].weight
        assert model["layer"].weight_hh_l0 is model["layer"].weight_ih_l0 is model["layer"]._flat_weights[1]
        return [parameter.grad.cpu() for parameter in model.parameters()]

    wanted = gradient("cpu")
    torch.testing.assert_close(gradient("sley"), wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient("cpu"), wanted)
