"""Products of many matrices that lie side by side, as experts of a layer have them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator


@operator("_grouped_mm")
def grouped_mm(
    self: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Group g ends at ``offs[g]``, along the rows of ``self``, the columns of ``mat2``, or, if neither has an axis of
    groups, along the axis that is summed. Offsets are read, so the device is waited for."""
    if bias is not None:
        raise NotImplementedError("_grouped_mm with a bias on the device sley: add it to the result")
    if offs is None:
        return torch.bmm(self, mat2).to(out_dtype or self.dtype)
    ends = [int(end) for end in offs.tolist()]
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if self.dim() == mat2.dim() == 2:
        found = torch.stack([self[:, start:end] @ mat2[start:end] for start, end in spans])
    elif self.dim() == 2:
        parts = [self[start:end] @ mat2[group] for group, (start, end) in enumerate(spans)]
        found = torch.cat([*parts, self.new_zeros((len(self) - ends[-1], mat2.shape[-1]))])
    else:
        parts = [self[group] @ mat2[:, start:end] for group, (start, end) in enumerate(spans)]
        found = torch.cat([*parts, self.new_zeros((self.shape[1], mat2.shape[1] - ends[-1]))], 1)
    return found.to(out_dtype or self.dtype)
