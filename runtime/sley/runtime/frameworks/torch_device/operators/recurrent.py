"""Cells of recurrent layers, whose products PyTorch has made before."""

from __future__ import annotations

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias


@operator("_thnn_fused_lstm_cell")
def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates are i, f, g, o; the workspace keeps what came out of them."""
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], -1)


@operator("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(
    grad_hy: Tensor | None, grad_cy: Tensor | None, cx: Tensor, cy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if grad_hy is None and grad_cy is None:
        return None, None, None
    i, f, g, o = workspace.chunk(4, -1)
    top = cy.tanh()
    grad = torch.zeros_like(cy) if grad_cy is None else grad_cy
    out = torch.zeros_like(o)
    if grad_hy is not None:
        grad = grad + grad_hy * o * (1 - top * top)
        out = grad_hy * top * o * (1 - o)
    parts = [grad * g * i * (1 - i), grad * cx * f * (1 - f), grad * i * (1 - g * g), out]
    gates = torch.cat(parts, -1)
    return gates, grad * f, gates.sum(0) if has_bias else None


@operator("_thnn_fused_gru_cell")
def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gates are r, z, n; the workspace keeps them, h, and the hidden part of n."""
    xr, xz, xn = _with_bias(input_gates, input_bias).chunk(3, -1)
    hr, hz, hn = _with_bias(hidden_gates, hidden_bias).chunk(3, -1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, hn], -1)


@operator("_thnn_fused_gru_cell_backward")
def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    r, z, n, hx, hn = workspace.chunk(5, -1)
    grad_n = grad_hy * (1 - z) * (1 - n * n)
    grad_z = grad_hy * (hx - n) * z * (1 - z)
    grad_r = grad_n * hn * r * (1 - r)
    inputs = torch.cat([grad_r, grad_z, grad_n], -1)
    hidden = torch.cat([grad_r, grad_z, grad_n * r], -1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, grad_hy * z, *biases
