"""Small models of the parts that networks are made of, for ``sley bench inductor`` and its test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Model:
    """Attributes: ``make``: the module. ``inputs``: its arguments. ``loss``: of its result, for a step of training."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    loss: Callable[[Tensor], Tensor] | None = None


class Chain(nn.Module):  # type: ignore[misc]  # PyTorch is not typed here
    """Element-wise functions of two tensors."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sigmoid(x * y + 1) * torch.tanh(x) - torch.where(y > 0, y, x.exp())


class Attention(nn.Module):  # type: ignore[misc]  # PyTorch is not typed here
    """Self-attention of four heads, of products and a softmax."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        images, count, width = x.shape
        q, k, v = (one.view(images, count, 4, width // 4).transpose(1, 2) for one in self.three(x).chunk(3, -1))
        shares = torch.softmax(q @ k.transpose(-1, -2) / (width // 4) ** 0.5, -1)
        return self.out((shares @ v).transpose(1, 2).reshape(images, count, width))


class Block(nn.Module):  # type: ignore[misc]  # PyTorch is not typed here
    """GELU between two products, after a layer norm, beside what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(functional.gelu(self.up(self.norm(x))))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))


def classes(scores: Tensor) -> Tensor:
    """The loss for labels that are counted through."""
    labels = torch.arange(len(scores)).remainder(10).to(scores.device)
    return functional.cross_entropy(scores, labels)


def squares(x: Tensor) -> Tensor:
    return (x * x).mean()


def normal(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(shape),)


MODELS = (
    Model("element-wise chain", Chain, lambda: (torch.randn(100, 200), torch.randn(100, 200))),
    Model("softmax", lambda: nn.Softmax(-1), normal(128, 200)),
    Model("layer norm", lambda: nn.LayerNorm(256), normal(128, 256)),
    Model("GELU block", lambda: Block(64), normal(96, 64)),
    Model("attention", lambda: Attention(64), normal(2, 48, 64)),
    Model("convolution, batch norm, pooling", lambda: convolutional().eval(), normal(4, 3, 24, 24)),
    Model("training: perceptron, SGD", perceptron, normal(64, 64), classes),
    Model("training: attention, SGD", lambda: Attention(64), normal(2, 24, 64), squares),
    Model("training: convolution, batch norm, pooling, SGD", convolutional, normal(4, 3, 12, 12), classes),
)
