"""Equal elements: ``sort``, ``topk`` and ``mode`` may give any of them first, so the host's numbers are not the only
right ones.

A result is then compared with the host's elements in the device's order, forward and backward.
"""

from __future__ import annotations

from typing import Any

import torch

from sley.runtime.frameworks.torch_device.agreement import Call

FREE = {"sort": 0, "argsort": 0, "topk": 1, "mode": 0}
"""Operators, and which of their arguments behind the tensor is the axis."""


def in_order_of(found: Any, name: str, call: Call, expected: Any) -> Call:
    """The call on the host with the order of the device's result: itself if the operator has but one, or if the
    device's numbers do not name the host's elements, each once."""
    given, others, named = call.arguments
    if name not in FREE or named.get("stable") or not given.dim() or not given.numel():
        return call
    place = FREE[name]
    axis = named.get("dim", others[place] if len(others) > place else -1)
    numbers = (found if name == "argsort" else found[1]).cpu()
    wanted = expected if name == "argsort" else expected[1]
    reduced = numbers.dim() < given.dim()  # by ``mode``, without ``keepdim``
    if reduced and numbers.shape == wanted.shape:
        numbers, wanted = numbers.unsqueeze(axis), wanted.unsqueeze(axis)
    if numbers.shape != wanted.shape or not numbers.numel():
        return call
    if numbers.min() < 0 or numbers.max() >= given.shape[axis] or (numbers.sort(axis)[0].diff(dim=axis) == 0).any():
        return call
    source = given.detach()
    if not torch.equal(source.gather(axis, numbers).nan_to_num(), source.gather(axis, wanted).nan_to_num()):
        return call

    def ordered(x: torch.Tensor, *_: Any, **__: Any) -> Any:
        parts = x.gather(axis, numbers), numbers
        if name == "argsort":
            return numbers
        return tuple(part.squeeze(axis) for part in parts) if reduced else parts

    return Call(ordered, call.arguments, call.process)
