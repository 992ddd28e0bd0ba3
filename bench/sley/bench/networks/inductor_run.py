"""One model on the device operator by operator, through the network compiler, and through Inductor."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._inductor import metrics

from sley.bench.networks.inductor_models import Model
from sley.runtime.frameworks.torch_device.engine import device

HOWS = ("eager", "sley", "inductor")
"""Ways to run a model: operator by operator, and backends of ``torch.compile``."""


@dataclass
class Outcome:
    """Attributes: ``error``: the largest difference of results from the host's, by the largest of them; of a step of
    training, of gradients and of parameters behind it. ``cycles``: of the second run, if the engine has some.
    ``kernels``: of Triton, and ``operators``: of the device, in the graphs of Inductor."""

    model: str
    error: float = 0.0
    kernels: int = 0
    operators: int = 0
    cycles: dict[str, int] = field(default_factory=dict)


def run(model: Model, hows: tuple[str, ...] = HOWS) -> Outcome:
    """All that the table says of a model."""
    outcome = Outcome(model.name)
    torch.manual_seed(0)
    module, inputs = model.make(), model.inputs()
    host = copy.deepcopy(module)
    right = _step(model, host, inputs, "eager")()
    for how in hows:
        torch._dynamo.reset()
        metrics.reset()
        counters.clear()
        own = copy.deepcopy(module).to("sley")
        step = _step(model, own, tuple(one.to("sley") for one in inputs), how)
        found = step()
        if how == "inductor":
            outcome.error = max(difference(a.cpu(), b) for a, b in zip(found, right, strict=True))
            outcome.kernels, outcome.operators = metrics.generated_kernel_count, counters["inductor"]["extern_calls"]
        if device().driver.has_cycles:
            outcome.cycles[how] = cycles(step)
    torch._dynamo.reset()
    return outcome


def _step(model: Model, module: nn.Module, inputs: tuple[Tensor, ...], how: str) -> Callable[[], list[Tensor]]:
    """What is measured: results without gradients, or a step of training: gradients, and parameters behind it."""
    loss = model.loss

    def compiled(function: Any) -> Any:
        return function if how == "eager" else torch.compile(function, backend=how, dynamic=False)

    if loss is None:
        forward = compiled(module)

        def infer() -> list[Tensor]:
            with torch.no_grad():
                return [forward(*inputs)]

        return infer
    optimizer = torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)
    forward = compiled(module)
    update = torch.compile(optimizer.step, dynamic=False) if how == "inductor" else optimizer.step

    def train() -> list[Tensor]:
        optimizer.zero_grad()
        loss(forward(*inputs)).backward()
        gradients = [parameter.grad.clone() for parameter in module.parameters() if parameter.grad is not None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of PyTorch, about its own profiler in the optimizer
            update()
        return gradients + [parameter.detach().clone() for parameter in module.parameters()]

    return train


def difference(found: Tensor, right: Tensor) -> float:
    """The largest one by the largest element; a tensor of rounding errors alone counts as one of 10^-3."""
    return float((found - right).abs().max() / right.abs().max().clamp(min=1e-3))


def cycles(step: Callable[[], Any]) -> int:
    """Of the device, for one run."""
    sley: Any = torch.sley
    begin, end = sley.Event(enable_timing=True), sley.Event(enable_timing=True)
    sley.synchronize()
    begin.record()
    step()
    end.record()
    return int(sley.cycles(begin, end))
