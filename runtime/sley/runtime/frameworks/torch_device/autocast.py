"""``torch.autocast("sley")``: products in bfloat16, sums of many terms in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map

from sley.runtime.frameworks.torch_device.registry import find, qualified
from sley.runtime.frameworks.torch_device.storage import NAME
from sley.runtime.frameworks.torch_device.tensors import on_device

NARROW = (
    "addbmm", "addmm", "addmv", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d.input", "conv_transpose3d.input", "linalg_multi_dot", "linear", "matmul", "mm", "mv",
    "prelu", "scaled_dot_product_attention",
)  # fmt: skip
"""Computed in the type of autocast, bfloat16."""
WIDE = (
    "acos", "asin", "binary_cross_entropy_with_logits", "cosh", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy_loss", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1", "group_norm", "hinge_embedding_loss",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2", "log_softmax.int", "logsumexp",
    "margin_ranking_loss", "mse_loss", "nll_loss", "nll_loss2d", "norm.Scalar", "norm.ScalarOpt_dim", "nuclear_norm",
    "pdist", "poisson_nll_loss", "pow.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "prod", "prod.dim_int",
    "reciprocal", "renorm", "rms_norm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax.int",
    "softplus", "sum", "sum.dim_IntList", "tan", "triplet_margin_loss",
)  # fmt: skip
"""Computed in float32."""
KEY = "AutocastPrivateUse1"
_LIBRARY = torch.library.Library("aten", "IMPL")
_REST = torch.library.Library("_", "IMPL")
_OFF = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)


def register() -> None:
    """Sets what autocast does to the operators of both lists; others take what they are given."""
    torch.set_autocast_dtype(NAME, torch.bfloat16)
    _REST.fallback(torch.library.fallthrough_kernel, KEY)
    for names, dtype in ((NARROW, None), (WIDE, torch.float32)):
        for name in names:
            overload = find(name)
            _LIBRARY.impl(qualified(overload), _cast(overload, dtype), KEY)


def _cast(overload: Any, dtype: torch.dtype | None) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        wanted = dtype or torch.get_autocast_dtype(NAME)

        def cast(value: Any) -> Any:
            floating = on_device(value) and value.dtype in (torch.float32, torch.bfloat16)
            return value.to(wanted) if floating and value.dtype is not wanted else value

        with torch._C._ExcludeDispatchKeyGuard(_OFF):
            return overload(*tree_map(cast, args), **tree_map(cast, kwargs))

    return run
