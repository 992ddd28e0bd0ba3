"""What the device does for each operator of networks: one table, filled by the files of ``operators``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from sley.runtime.errors import KernelError

FAMILIES = (
    "attention",
    "elementwise",
    "gradients",
    "images",
    "integers",
    "matrices",
    "normalization",
    "pooling",
    "quantized",
    "random",
    "reductions",
    "resizing",
    "sampling",
    "selection",
    "sequences",
    "shapes",
    "spectra",
    "training",
)
"""Files of ``operators``."""
Handler = Callable[..., Any]
OWN = "own."
"""In front of the names of operators that a user does: no pass knows them, and the host computes none of them."""
_HANDLERS: dict[str, Handler] = {}


class UnsupportedOperator(KernelError):  # noqa: N818 (named like the driver's)
    """A network has operators, or forms of them, that the device does not do."""


def operator(*names: str) -> Callable[[Handler], Handler]:
    """Says that a function does the operators of these names.

    It takes the compilation, the node, and a value for each input, ``None`` for one that is left out: a device array,
    or a numpy array that is known when the network is compiled. It returns a value, or a tuple of them.
    """

    def enter(handler: Handler) -> Handler:
        for name in names:
            assert name not in _HANDLERS, name
            _HANDLERS[name] = handler
        return handler

    return enter


def handlers() -> dict[str, Handler]:
    """All operators by name."""
    for family in FAMILIES:
        import_module(f"sley.runtime.networks.operators.{family}")
    return _HANDLERS
