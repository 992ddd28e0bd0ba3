"""Parameters that several modules share are still one when a model is moved to the device, or back.

PyTorch moves each parameter where it is if it knows that both devices keep tensors alike, which it knows of its own
devices alone. On others each module gets a parameter of its own, and the gradient of a shared one is in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import Any

import torch

Place = tuple[torch.nn.Module, str]


class _Nested(local):
    """Whether a conversion is part of another one, in this thread."""

    inside = False


_NESTED = _Nested()


def shared(model: torch.nn.Module) -> list[list[Place]]:
    """Where each parameter is that more than one module has."""
    places: dict[int, list[Place]] = {}
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((module, name))
    return [found for found in places.values() if len(found) > 1]


def keep_ties(plain: Callable[..., Any]) -> Callable[..., Any]:
    """``Module._apply``, by which modules are converted and moved, with the ties that there were."""

    def run(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if _NESTED.inside:
            return plain(self, *args, **kwargs)
        ties = shared(self)
        _NESTED.inside = True
        try:
            result = plain(self, *args, **kwargs)
        finally:
            _NESTED.inside = False
        for (module, name), *others in ties:
            one = module._parameters[name]
            for other, own in others:
                if other._parameters[own] is not one:
                    setattr(other, own, one)
        return result

    return run


def register() -> None:
    """Puts it in the place of PyTorch's."""
    torch.nn.Module._apply = keep_ties(torch.nn.Module._apply)
