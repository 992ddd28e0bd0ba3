"""The part in C++ of this process, or why there is none. Without it there is one device with one default generator,
and ``torch.Generator``, ``torch.Stream`` and ``torch.Event`` do not know the device."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.native.build import NoNativePart, load


def _loaded() -> tuple[ModuleType | None, str]:
    try:
        return load(), ""
    except NoNativePart as error:
        return None, str(error)


MODULE, REASON = _loaded()


def needed(what: str) -> ModuleType:
    """The module. Raises ``NoNativePart`` that says what needs it, and why it is not there."""
    if MODULE is None:
        raise NoNativePart(f"{what} needs a part in C++, which was not built: {REASON}")
    return MODULE


def missing() -> str:
    """What a user is told once, where it is missing."""
    return (
        f"the PyTorch device sley has no part in C++: {REASON}. Until then torch.Generator(device='sley'), "
        "torch.Stream, torch.Event and devices beyond sley:0 do not work; all else does"
    )


def empty_tensor(dtype: torch.dtype, index: int) -> torch.Tensor:
    """A tensor of the device without elements."""
    if MODULE is None:
        return torch._C._acc.create_empty_tensor([0], dtype)
    made: torch.Tensor = MODULE.empty_tensor(dtype, index)
    return made


def install(functions: Any) -> None:
    """Says whose functions streams and events of PyTorch call."""
    if MODULE is not None:
        MODULE.install(functions)
