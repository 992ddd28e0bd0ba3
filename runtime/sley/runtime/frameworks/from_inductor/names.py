"""Names that the text of Inductor's kernels uses, as the device has them."""

from __future__ import annotations

from torch._inductor.runtime.hints import DeviceProperties, ReductionHint, TileHint

from sley.runtime.frameworks.from_inductor import helpers as triton_helpers
from sley.runtime.frameworks.from_inductor import heuristics as triton_heuristics
from sley.runtime.frameworks.from_triton.backend import libdevice

tl_math = libdevice

__all__ = [
    "DeviceProperties",
    "ReductionHint",
    "TileHint",
    "libdevice",
    "tl_math",
    "triton_helpers",
    "triton_heuristics",
]
