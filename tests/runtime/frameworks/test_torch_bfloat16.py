"""Compiled models of bfloat16: results are bfloat16, and about as far from float32 as the host's."""

import copy
from typing import Any

import pytest

from sley.abi.install import extra

torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {extra('torch')}")
pytest.importorskip("onnxscript", reason=f"onnxscript is not installed: {extra('torch')}")
pytest.importorskip("sley.runtime.frameworks.torch")

nn = torch.nn


class Attends(nn.Module):  # type: ignore[misc]  # torch is there only if it is installed
    """Heads that are views of one product, as decoders have them."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.norm = nn.Linear(8, 24), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        parts = self.project(self.norm(x)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        return x + nn.functional.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2)


def check(model: Any, x: Any) -> None:
    torch._dynamo.reset()
    model = model.eval()
    with torch.no_grad():
        wanted, small = model(x), copy.deepcopy(model).bfloat16()
        found = torch.compile(small, backend="sley", dynamic=False)(x.bfloat16())
        host = small(x.bfloat16())
    assert found.dtype is torch.bfloat16
    top = wanted.abs().max()
    assert (found.float() - wanted).abs().max() < 2 * (host.float() - wanted).abs().max() + 2e-3 * top


def test_attention() -> None:
    torch.manual_seed(1)
    check(nn.Sequential(Attends(), nn.Linear(8, 5, bias=False), nn.GELU(), nn.Linear(5, 3)), torch.randn(2, 5, 8))


@pytest.mark.slow
def test_images() -> None:
    torch.manual_seed(2)
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8),
    ]
    check(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), torch.randn(2, 3, 11, 9))
