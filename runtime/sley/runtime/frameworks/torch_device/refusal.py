"""Operators that the device does not have: refused by name, or, if the user allows it, done by the host and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from rich.table import Table

from sley.runtime.errors import KernelError
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.tensors import on_device

FALLBACKS: Counter[str] = Counter()
"""Operators that the host did, and how often."""
_allowed = [False]
_library = torch.library.Library("_", "IMPL")


class UnsupportedOperator(KernelError, NotImplementedError):  # noqa: N818 (named like the driver's)
    """An operator of PyTorch that the device does not have."""


@contextmanager
def allow_fallback() -> Iterator[Counter[str]]:
    """Operators that the device does not have are done by the host inside, and counted in ``FALLBACKS``."""
    before, _allowed[0] = _allowed[0], True
    try:
        yield FALLBACKS
    finally:
        _allowed[0] = before


def set_fallback(allowed: bool) -> None:
    """Whether the host may do what the device does not have; at first it may not."""
    _allowed[0] = allowed


def fallback_table() -> Table:
    """Operators that the host did, for ``rich.print``."""
    table = Table("operator", "calls", title="done by the host")
    for name, count in FALLBACKS.most_common():
        table.add_row(name, f"{count:,}")
    return table


def register() -> None:
    """Sets what PyTorch calls where nothing is registered."""
    _library.fallback(refuse, "PrivateUse1")


def refuse(overload: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises ``UnsupportedOperator``, or calls the host."""
    name = str(overload)
    if not _allowed[0]:
        raise UnsupportedOperator(
            f"{name} is no operator of the device {NAME}: docs/reference/torch.md lists those that are; "
            "torch.sley.allow_fallback() lets the host do it, and counts"
        )
    FALLBACKS[name] += 1
    return on_host(overload, args, kwargs)


def on_host(overload: Any, args: Any, kwargs: Any) -> Any:
    """Calls an operator with tensors of the host in place of the device's, and brings what it writes back."""
    moved: list[tuple[torch.Tensor, torch.Tensor]] = []

    def there(value: Any) -> Any:
        if on_device(value):
            moved.append((value, value.cpu()))
            return moved[-1][1]
        if isinstance(value, torch.device) and value.type == NAME:
            return torch.device("cpu")
        return type(value)(map(there, value)) if isinstance(value, list | tuple) else value

    def back(value: Any) -> Any:
        for own, host in moved:
            if value is host:
                return own
        if isinstance(value, torch.Tensor):
            return value.to(moved[0][0].device if moved else NAME)
        return type(value)(map(back, value)) if isinstance(value, list | tuple) else value

    results = overload(*there(list(args)), **{name: there(value) for name, value in kwargs.items()})
    written = [
        argument for argument in overload._schema.arguments if argument.alias_info and argument.alias_info.is_write
    ]
    if written:
        for own, host in moved:
            if own.shape != host.shape:
                own.resize_(host.shape)
            own.copy_(host)
    return back(results)
