"""Steps of optimizers for all parameters: ``SGD``, ``Adam`` and ``AdamW`` with ``fused=True``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import array, target
from sley.runtime.nn import operators as nn

Tensors = Sequence[Tensor]


def _adam(decoupled: bool) -> Any:
    def step(
        self: Tensors,
        grads: Tensors,
        exp_avgs: Tensors,
        exp_avg_sqs: Tensors,
        max_exp_avg_sqs: Tensors,
        state_steps: Tensors,
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
    ) -> None:
        if amsgrad:
            raise NotImplementedError("amsgrad in a fused step on the device sley: use fused=False")
        if found_inf is not None and bool(found_inf.item()):
            return
        for parameter, grad, mean, square, count in zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
            own = _scaled(grad, grad_scale, maximize)
            if weight_decay and not decoupled:
                own = torch.add(own, parameter, alpha=weight_decay)
            nn.adamw_step(
                target(parameter),
                array(own),
                target(mean),
                target(square),
                int(count.item()),
                float(lr),
                (beta1, beta2),
                eps,
                weight_decay if decoupled else 0.0,
            )

    return step


operator("_fused_adam_", "_fused_adam_.tensor_lr", forms=False)(_adam(False))
operator("_fused_adamw_", "_fused_adamw_.tensor_lr", forms=False)(_adam(True))


@operator("_fused_sgd_", "_fused_sgd_.tensor_lr", forms=False)
def sgd(
    self: Tensors,
    grads: Tensors,
    momentum_buffer_list: Tensors,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    if dampening:
        raise NotImplementedError("dampening in a fused step on the device sley: use fused=False")
    if found_inf is not None and bool(found_inf.item()):
        return
    for place, (parameter, grad) in enumerate(zip(self, grads, strict=True)):
        held = momentum_buffer_list[place] if momentum else None
        if held is not None and is_first_step:
            held.zero_()
        nn.sgd_step(
            target(parameter),
            array(_scaled(grad, grad_scale, maximize)),
            None if held is None else target(held),
            float(lr),
            momentum,
            weight_decay,
            nesterov=nesterov,
        )


def _scaled(grad: Tensor, scale: Tensor | None, maximize: bool) -> Tensor:
    own = grad if scale is None else grad / scale
    return -own if maximize else own
