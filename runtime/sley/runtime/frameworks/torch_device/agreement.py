"""Whether results of the device are right: compared with float64, so that the verdict does not depend on the host.

The truth is the same operator on the host, of the same values in float64. A result agrees with it within ``TOLERANCES``
and what the operator's condition adds: ``CONDITION`` times the change of the truth when each element of the arguments
moves by half a unit in its last place. So sums whose terms cancel are judged by the size of the terms, in forward and
backward, whatever order they are added in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from sley.runtime.frameworks.torch_device.tensors import on_device

TOLERANCES = {torch.float32: (1e-5, 1e-5), torch.bfloat16: (1.6e-2, 1e-2)}
"""Relative and absolute errors that pass, of values of about 1."""
CONDITION = 4
"""Times the change of the truth by half a unit in the last place of all arguments."""
HALF_UNITS = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9}
DRAWS = 4
"""So often the arguments are moved, each element up or down at random; the root mean square of the changes counts."""


@dataclass(frozen=True)
class Call:
    """An operator with its arguments, and what is done to its results before gradients are taken."""

    function: Callable[..., Any]
    arguments: Any
    process: Callable[[Any], Any]

    def __call__(self) -> Any:
        positional, others, named = self.arguments
        return self.process(self.function(positional, *others, **named))

    def mapped(self, change: Callable[[Any], Any]) -> Call:
        """The call with each leaf of its arguments changed."""
        return Call(self.function, tree_map(change, self.arguments), self.process)

    def all_values(self, seeds: list[torch.Tensor] | None) -> list[Any]:
        """Leaves of the results; with seeds, gradients of them behind."""
        results = self()
        return [*tree_flatten(results)[0], *(gradients(results, self.arguments, seeds) if seeds is not None else ())]


def seeds_for(results: Any) -> list[torch.Tensor]:
    """What gradients start from: a ramp for each result that has some."""
    return [
        (torch.linspace(0.5, 1.5, out.numel()) if out.numel() else torch.zeros(0)).reshape(out.shape).to(out.dtype)
        for out in differentiable(results)
    ]


def gradients(results: Any, arguments: Any, seeds: list[torch.Tensor]) -> list[Any]:
    """Gradients for all arguments that have some, of the sum of all results times their seeds."""
    outs, leaves = differentiable(results), differentiable(arguments)
    if not outs or not leaves:
        return []
    starts = [seed.to(out.dtype).to(out.device) for out, seed in zip(outs, seeds, strict=True)]
    return list(torch.autograd.grad(outs, leaves, starts, allow_unused=True))


def differentiable(values: Any) -> list[torch.Tensor]:
    return [value for value in tree_flatten(values)[0] if isinstance(value, torch.Tensor) and value.requires_grad]


def in_float64(value: Any) -> Any:
    """A leaf of arguments for the truth: values are the same, types of results are wide."""
    if isinstance(value, torch.Tensor) and value.dtype in TOLERANCES:
        return value.detach().double().requires_grad_(value.requires_grad)
    return torch.float64 if isinstance(value, torch.dtype) and value in TOLERANCES else value


class Truth:
    """The values of a call in float64: its results, and gradients if there are seeds.

    Attributes: ``values``: leaves, or ``None`` if the host does not have the operator in float64. ``by_host``: whether
    a float was right as the host's alone.
    """

    def __init__(self, call: Call, seeds: list[torch.Tensor] | None, dtype: torch.dtype) -> None:
        self.call, self.seeds, self.dtype = call.mapped(in_float64), seeds, dtype
        self.values = self._of(self.call)
        self.by_host = False
        self._changes: list[torch.Tensor | None] | None = None

    def _of(self, call: Call) -> list[Any] | None:
        try:
            return call.all_values(self.seeds)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return None

    def value(self, place: int, host: torch.Tensor) -> torch.Tensor:
        """The truth rounded to the type of the host's value; that itself if there is no truth."""
        if self.values is None or place >= len(self.values):
            return host
        found = self.values[place]
        if not isinstance(found, torch.Tensor) or found.shape != host.shape:
            return host
        return found.detach().resolve_conj().to(host.dtype)

    def change(self, place: int) -> torch.Tensor:
        """How far a value moves with the arguments: elements that are not finite do not."""
        if self._changes is None:
            self._changes = self._measured()
        found = self._changes[place]
        assert found is not None
        return found

    def _measured(self) -> list[torch.Tensor | None]:
        assert self.values is not None
        generator = torch.Generator().manual_seed(1)
        unit = HALF_UNITS[self.dtype]

        def moved(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
                return value
            signs = torch.randint(0, 2, value.shape, generator=generator) * 2 - 1
            return (value.detach() * (1 + unit * signs)).requires_grad_(value.requires_grad)

        squares = [
            torch.zeros_like(value.detach(), dtype=torch.float64) if isinstance(value, torch.Tensor) else None
            for value in self.values
        ]
        for _ in range(DRAWS):
            others = self._of(self.call.mapped(moved)) or self.values
            for total, value, other in zip(squares, self.values, others, strict=True):
                if total is not None and other.shape == value.shape:
                    step = (other.detach() - value.detach()).to(torch.float64)
                    total += torch.nan_to_num(step, 0, 0, 0) ** 2
        return [None if total is None else (total / DRAWS).sqrt() for total in squares]


def check(own: list[Any], host: list[Any], truth: Truth, results: int) -> str:
    """How the device's values differ from what they must be; nothing if they are right.

    ``host``: the values of the host in the same type, which say types and shapes. ``results``: so many of them are
    results; gradients follow.
    """
    if len(own) != len(host):
        return f"{len(own)} values, wanted {len(host)}"
    for place, (mine, theirs) in enumerate(zip(own, host, strict=True)):
        problem = form(mine, theirs)
        if not problem and isinstance(theirs, torch.Tensor):
            problem = wrong(mine.detach().cpu(), theirs.detach().resolve_conj(), truth, place)
        if problem:
            return problem if place < results else f"backward: {problem}"
    return ""


def wrong(own: torch.Tensor, host: torch.Tensor, truth: Truth, place: int) -> str:
    """How elements differ. Integers are those of the host. A float that is not the truth is right if it is the host's
    within ``TOLERANCES``: at a step, of ``floor_divide``, float64 is on another side."""
    if not host.dtype.is_floating_point:
        count = int((own != host).sum())
        return f"differs in {count} of {host.numel()} elements" if count else ""
    tolerance = max(TOLERANCES[kind] for kind in (truth.dtype, host.dtype) if kind in TOLERANCES)
    right = truth.value(place, host)
    if right is not host and (
        near(own, right, tolerance) or near(own, right, tolerance, CONDITION * truth.change(place))
    ):
        return ""
    if near(own, host, tolerance):
        truth.by_host = True
        return ""
    gap = (own.double() - right.double()).abs()
    return f"differs by up to {float(gap[~gap.isnan()].max()) if (~gap.isnan()).any() else float('nan'):.3g}"


def form(own: Any, host: Any) -> str:
    """How device, type and shape of a value differ; a number or a word itself."""
    if not isinstance(host, torch.Tensor):
        close = isinstance(host, float) and abs(host - own) <= 1e-5 + 1e-5 * abs(host)
        return "" if own == host or close or str(host) == "cpu" else f"{own}, wanted {host}"
    if not on_device(own):
        return f"a result on {own.device}" if isinstance(own, torch.Tensor) else f"{own}, wanted a tensor"
    if own.shape != host.shape or own.dtype != host.dtype:
        return f"{own.dtype} of shape {tuple(own.shape)}, wanted {host.dtype} of {tuple(host.shape)}"
    return ""


def near(
    own: torch.Tensor, right: torch.Tensor, tolerance: tuple[float, float], slack: torch.Tensor | None = None
) -> bool:
    """Whether all elements are within a relative and an absolute error, and a slack of their own."""
    x, y = own.double(), right.double()
    bound = tolerance[1] + tolerance[0] * y.abs() + (0 if slack is None else slack)
    return bool((((x - y).abs() <= bound) | (x == y) | (x.isnan() & y.isnan())).all())
