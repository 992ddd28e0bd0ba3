"""What the device does for each operator of PyTorch: one table, filled by the files of ``operators``.

An operator is entered in the form that returns its results. Its forms in place (``add_``) and into tensors that are
given (``out=``) are made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from sley.runtime.frameworks.torch_device.guard import guarded
from sley.runtime.frameworks.torch_device.results import into, replace

FAMILIES = (
    "transfers",
    "views",
    "creation",
    "elementwise",
    "binary",
    "comparisons",
    "activations",
    "reductions",
    "matrices",
    "convolutions",
    "pooling",
    "adaptive",
    "normalization",
    "indexing",
    "selection",
    "shapes",
    "random",
    "recurrent",
    "gamma",
    "polynomials",
    "composites",
    "counting",
    "bags",
    "grouped",
    "factorizations",
    "optimizers",
)
"""Files of ``operators``, in the order of the page."""
KEY = "PrivateUse1"
LIBRARY = torch.library.Library("aten", "IMPL")
Kernel = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """An operator. ``name``: as in PyTorch, with its overload. ``family``: the file, or "decompositions". ``forms``:
    those that were made of it."""

    name: str
    family: str
    forms: tuple[str, ...]


ENTRIES: dict[str, Entry] = {}
PARTS: dict[Any, Kernel] = {}
"""Operators whose functions call operators of PyTorch alone, so that graphs are taken apart by them, too."""


def operator(
    *names: str, forms: bool = True, composed: bool = False, parts: bool = False
) -> Callable[[Kernel], Kernel]:
    """Says that a function does the operators of these names, such as ``add.Tensor``, with their arguments.

    ``forms``: whether its other forms are made of it. ``composed``: whether gradients go through its parts, as the
    device has no gradient of the whole. ``parts``: whether it calls operators of PyTorch alone, for any device, so that
    compiled graphs have it as well; its shapes depend on shapes alone.
    """

    def register(kernel: Kernel) -> Kernel:
        for name in names:
            if parts:
                PARTS[find(name)] = kernel
            enter(name, kernel, kernel.__module__.rpartition(".")[2], forms)
            if composed:
                LIBRARY.impl(qualified(find(name)), kernel, "AutogradPrivateUse1")
        return kernel

    return register


def enter(name: str, kernel: Kernel, family: str, forms: bool = True) -> None:
    """Enters a function for an operator."""
    overload = find(name)
    assert name not in ENTRIES, name
    LIBRARY.impl(qualified(overload), guarded(kernel, name), KEY)
    made = list(others(overload)) if forms else []
    for form, kind in made:
        own = replace(kernel) if kind == "in place" else into(kernel, form)
        LIBRARY.impl(qualified(form), guarded(own, name), KEY)
    ENTRIES[name] = Entry(name, family, tuple(qualified(form) for form, _ in made))


def find(name: str) -> Any:
    """An operator by its name: ``relu``, ``add.Tensor``."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def qualified(overload: Any) -> str:
    """Name and overload, as they are registered."""
    schema = overload._schema
    return schema.name.partition("::")[2] + (f".{schema.overload_name}" if schema.overload_name else "")


def others(overload: Any) -> Iterator[tuple[Any, str]]:
    """Other forms of an operator, and which they are."""
    schema = overload._schema
    name = schema.name.partition("::")[2]
    wanted = _arguments(schema)
    for packet, kind in ((name, "out"), (f"{name}_", "in place")):
        for other in getattr(torch.ops.aten, packet).overloads() if hasattr(torch.ops.aten, packet) else ():
            form = getattr(getattr(torch.ops.aten, packet), other)
            if form is overload or _arguments(form._schema) != wanted or _taken(form):
                continue
            writes = [argument for argument in form._schema.arguments if _written(argument)]
            results = bool(writes) and all(argument.is_out for argument in writes)
            if results if kind == "out" else [argument.name for argument in writes] == ["self"]:
                yield form, kind


def outs(overload: Any) -> list[str]:
    """Names of the arguments that results are written to."""
    return [argument.name for argument in overload._schema.arguments if argument.is_out]


def _written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _arguments(schema: Any) -> list[tuple[str, str]]:
    return [(argument.name, str(argument.type)) for argument in schema.arguments if not argument.is_out]


def _taken(overload: Any) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload._schema.name + _suffix(overload), KEY)


def _suffix(overload: Any) -> str:
    return f".{overload._schema.overload_name}" if overload._schema.overload_name else ""


def load() -> None:
    """Enters all operators."""
    for family in FAMILIES:
        import_module(f"sley.runtime.frameworks.torch_device.operators.{family}")
