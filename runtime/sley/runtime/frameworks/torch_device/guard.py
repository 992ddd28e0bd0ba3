"""Operators run on the device of their tensors, as PyTorch's own do: it is the current one inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.engine import checked_index, device_count, on
from sley.runtime.frameworks.torch_device.storage import NAME

COPIES = "copy_", "_copy_from", "_copy_from_and_resize"
"""Operators whose tensors may be on two devices."""


def guarded(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of an operator that finds the device of its tensors, or the argument ``device``, current. Raises
    ``RuntimeError`` for tensors of two devices, ``BadRequest`` for a device that there is not."""

    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.get("device")
        if wanted is not None and wanted.type == NAME:
            index = checked_index(wanted)
            if device_count() > 1:
                with on(index):
                    return kernel(*args, **kwargs)
        elif device_count() > 1:
            found = list(dict.fromkeys(_indices((*args, *kwargs.values()))))
            if len(found) > 1 and name not in COPIES:
                places = ", ".join(f"{NAME}:{index}" for index in found)
                raise RuntimeError(f"{name} of tensors on {places}: move them to one device, x.to('{NAME}:{found[0]}')")
            if found:
                with on(found[0]):
                    return kernel(*args, **kwargs)
        return kernel(*args, **kwargs)

    return run


def _indices(values: Iterable[Any]) -> Iterator[int]:
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.device.type == NAME:
                yield value.device.index
        elif isinstance(value, list | tuple):
            yield from _indices(value)
