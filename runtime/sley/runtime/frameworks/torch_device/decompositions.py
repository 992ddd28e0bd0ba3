"""Operators that PyTorch itself makes of others: each part runs on the device, so this is no fallback.

They come from ``torch._decomp``: what the operators of the families leave, and PyTorch has no portable kernel for.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

import torch
import torch._refs
from torch._decomp import decomposition_table

from sley.runtime.frameworks.torch_device.refusal import refuse
from sley.runtime.frameworks.torch_device.registry import ENTRIES, KEY, LIBRARY, Entry, others, outs, qualified
from sley.runtime.frameworks.torch_device.results import into, replace

PORTABLE = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""Keys of kernels that PyTorch has for every device."""


COMPOSED = (
    "_adaptive_avg_pool2d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "grid_sampler_2d",
    "multi_margin_loss",
    "multilabel_margin_loss_forward",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
)
"""Those that gradients go through part by part, as the device has no gradient of the whole."""


def load() -> None:
    """Enters all of them."""
    done = {name for entry in ENTRIES.values() for name in (entry.name, *entry.forms)}
    known = [
        (overload, function)
        for overload, function in decomposition_table.items()
        if isinstance(overload, torch._ops.OpOverload) and overload.namespace == "aten"
    ]
    wanted = {qualified(overload) for overload, _ in known if outs(overload)}
    for overload, function in known:
        name = qualified(overload)
        if name in done or outs(overload):
            continue  # a form with out= is made of the one without: some of PyTorch's write to a converted copy
        written = [qualified(form) for form, kind in others(overload) if kind == "out"]
        reached = "_backward" in name and any(form in wanted - done for form in written)
        if portable(overload) and not reached:
            continue
        function = once(overload, function)
        if name in COMPOSED:
            LIBRARY.impl(name, function, "AutogradPrivateUse1")
        LIBRARY.impl(name, function, KEY)
        made = list(others(overload)) if not writes(overload) else []
        for form, kind in made:
            LIBRARY.impl(qualified(form), replace(function) if kind == "in place" else into(function, form), KEY)
        done |= {name, *(qualified(form) for form, _ in made)}
        ENTRIES[name] = Entry(name, "decompositions", tuple(qualified(form) for form, _ in made))


def once(overload: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A decomposition that is refused where it comes back to the operator itself, or says that it does not apply."""
    inside: set[int] = set()

    def run(*args: Any, **kwargs: Any) -> Any:
        thread = get_ident()
        if thread in inside:
            return refuse(overload, *args, **kwargs)
        inside.add(thread)
        try:
            found = function(*args, **kwargs)
        finally:
            inside.discard(thread)
        return refuse(overload, *args, **kwargs) if found is NotImplemented else found

    return run


def writes(overload: Any) -> bool:
    """Whether an operator writes to a tensor that it is given."""
    return any(
        argument.alias_info is not None and argument.alias_info.is_write for argument in overload._schema.arguments
    )


def portable(overload: Any) -> bool:
    """Whether PyTorch has a kernel for every device."""
    schema = overload._schema
    name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in PORTABLE)
