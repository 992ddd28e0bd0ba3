"""Inductor's generator of Triton kernels, with what the device wants otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.codegen.common import BackendFeature
from torch._inductor.codegen.triton import TritonKernel, TritonKernelOverrides, TritonScheduling
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from sley.runtime.frameworks.torch_device.types import INT32_ENDS

LAUNCH = "sley.runtime.frameworks.from_inductor.launch"
NAMES = "sley.runtime.frameworks.from_inductor.names"

INT32_OF = {
    "tl.int64": "tl.int32",
    str(-(1 << 63)): str(INT32_ENDS[0]),
    str((1 << 63) - 1): str(INT32_ENDS[1]),
}
"""What the text of a kernel says of int64, and what it says here."""
LONGEST = 2048
"""Elements of a row that is one tile."""


class SleyOverrides(TritonKernelOverrides):
    """Operations of a kernel."""

    @classmethod
    def constant(cls, value: Any, dtype: torch.dtype) -> Any:
        """A number. Raises ``OverflowError`` for one that int32 does not have."""
        low, high = INT32_ENDS
        if dtype is torch.int64 and isinstance(value, int) and not low <= value <= high:
            raise OverflowError(f"{value} among int64; the device sley keeps int64 as int32, from {low} to {high}")
        return super().constant(value, dtype)


class SleyKernel(TritonKernel):
    """One kernel."""

    overrides = SleyOverrides

    @classmethod
    def gen_common_triton_imports(cls) -> str:
        return (
            "import triton\n"
            "import triton.language as tl\n"
            f"from {NAMES} import ReductionHint, TileHint, DeviceProperties, triton_heuristics, triton_helpers, "
            "libdevice, tl_math\n"
        )

    def codegen_kernel(self, name: str | None = None) -> str:
        """int64 is int32 on the device, with its ends, from which maxima and minima begin."""
        text = str(super().codegen_kernel(name))
        for long, short in INT32_OF.items():
            text = text.replace(long, short)
        return text

    def should_use_persistent_reduction(self) -> bool:
        """Rows of one axis that are not too long are tiles."""
        rows = self.features.reduction_numel
        if not self.inside_reduction or self.num_reduction_dims != 1:
            return False
        return bool(V.graph.sizevars.statically_known_leq(rows, LONGEST)) and self.has_persistent_RBLOCK(rows)

    @classmethod
    def inductor_meta_common(cls) -> dict[str, Any]:
        """Nothing about a driver of Triton, or about autotuning."""
        return {}


class SleyScheduling(TritonScheduling):
    """The kernels of a graph."""

    kernel_type = SleyKernel
    backend_features = OrderedSet([BackendFeature.INPLACE_BUFFERS, BackendFeature.SCAN, BackendFeature.TUPLE_REDUCTION])

    def _emit_kernel_to_wrapper(
        self,
        wrapper: Any,
        kernel: Any,
        src_code: str,
        kernel_name: str,
        subs_name: str,
        node_schedule: Any,
        kernel_path: str,
        get_kernel_metadata: Callable[..., tuple[str, str]],
    ) -> None:
        """The text of a kernel as an argument of ``kernel_of``."""
        origins, details = get_kernel_metadata(node_schedule, wrapper)
        wrapper.add_import_once(f"from {LAUNCH} import kernel_of")
        code = IndentedBuffer()
        code.writeline(f"kernel_of({subs_name!r}, '''")
        code.splice(src_code, strip=True)
        code.writeline(f"''', {operators_in(origins)!r})")
        wrapper.define_kernel(kernel_name, code.getvalue(), f"{origins}\n{details}")


def operators_in(origins: str) -> str:
    """``aten.mul, aten.add`` of the comment that Inductor writes above a kernel."""
    return origins.partition("Original ATen: [")[2].partition("]")[0] or "no operator"
