"""Forms of operators that write to tensors which exist, made of the form that returns its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.tensors import array, covers, fill, handles
from sley.runtime.frameworks.torch_device.types import stored

Kernel = Callable[..., Any]


def replace(kernel: Kernel) -> Kernel:
    """The form in place."""

    def run(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        result = kernel(self, *args, **kwargs)
        if result.shape != self.shape:
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        write(self, result, (self, *args, *kwargs.values()))
        return self

    return run


def into(kernel: Kernel, overload: Any) -> Kernel:
    """The form with ``out=``."""
    names = [argument.name for argument in overload._schema.arguments if argument.is_out]

    def run(*args: Any, **kwargs: Any) -> Any:
        count = len(overload._schema.arguments) - len(names)
        targets = [kwargs.pop(name) for name in names] if names[0] in kwargs else list(args[count:])
        args = args[:count]
        results = kernel(*args, **kwargs)
        found = results if isinstance(results, tuple | list) else (results,)
        for target, result in zip(targets, found, strict=True):
            if target.shape != result.shape:
                target.resize_(result.shape)
            write(target, result, (*args, *kwargs.values()))
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run


def write(target: torch.Tensor, result: torch.Tensor, read: tuple[Any, ...]) -> None:
    """Gives a tensor the elements of a result. If that is an array of its own, the target takes it over.

    ``read``: arguments that the result was made of. Raises ``RuntimeError`` if the type of the result cannot be cast.
    """
    if result is target or not target.numel():
        return
    if not torch.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    own = result.untyped_storage().data_ptr() not in handles((*read, target))
    same = stored(result.dtype) == stored(target.dtype)
    if own and same and covers(target) and covers(result):
        fill(target, array(result))
    else:
        target.copy_(result)
