"""Convolutions, transposed or not, of one to three dimensions, and their gradients.

The device has channels last, so images and weights are transposed by copies on the way in and out; a tensor in the
format ``channels_last`` needs none for images.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sley.runtime.device.buffer import Buffer
from sley.runtime.frameworks.torch_device.operators.matrices import precision
from sley.runtime.frameworks.torch_device.registry import operator
from sley.runtime.frameworks.torch_device.tensors import dense, wrap
from sley.runtime.nn import operators as nn


def channels_last(x: Tensor) -> Buffer:
    """[images, channels, ...] as [images, ..., channels]."""
    return dense(x.movedim(1, -1))


def taps_first(weight: Tensor) -> Buffer:
    """[outputs, channels, taps ...] as [taps ..., channels, outputs]."""
    order = (*range(2, weight.dim()), 1, 0)
    return dense(weight.permute(order))


def channels_second(found: Buffer, dtype: torch.dtype) -> Tensor:
    """A result of the device as PyTorch has it, row-major."""
    return wrap(found, torch.float32 if str(found.dtype) == "float32" else dtype).movedim(-1, 1).contiguous().to(dtype)


def _with_height(x: Tensor) -> Tensor:
    return x.unsqueeze(-2)


def _plain(
    x: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Tensor:
    """Without bias, float32 results where operands are bfloat16, rounded at the end."""
    sides = x.dim() - 2
    image, taps = channels_last(x), taps_first(weight)
    function: Any = {2: nn.conv2d, 3: nn.conv3d}[sides]
    found = function(
        image,
        taps,
        stride=tuple(stride),
        padding=tuple(padding),
        dilation=tuple(dilation),
        groups=groups,
        dtype="float32",
        precision=precision(),
    )
    return channels_second(found, torch.float32)


def _transposed(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """The gradient of a convolution for its images, which a transposed convolution is. ``weight``: [channels of x,
    outputs / groups, taps ...]."""
    taps = dense(weight.permute((*range(2, weight.dim()), 1, 0)))
    function: Any = {2: nn.conv_transpose2d, 3: nn.conv_transpose3d}[x.dim() - 2]
    found = function(
        channels_last(x),
        taps,
        stride=tuple(stride),
        padding=tuple(padding),
        output_padding=tuple(output_padding),
        dilation=tuple(dilation),
        groups=groups,
        precision=precision(),
    )
    return channels_second(found, torch.float32)


@operator("convolution_overrideable")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    if input.dtype != weight.dtype:
        raise RuntimeError(f"Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same")
    if input.dim() == 3:
        found = convolution(
            _with_height(input),
            _with_height(weight),
            bias,
            [1, *stride],
            [0, *padding],
            [1, *dilation],
            transposed,
            [0, *output_padding],
            groups,
        )
        return found.squeeze(-2)
    if transposed:
        result = _transposed(input, weight, stride, padding, dilation, output_padding, groups)
    else:
        result = _plain(input, weight, stride, padding, dilation, groups)
    if bias is not None:
        result = result + bias.reshape(-1, *(1 for _ in stride))
    return result.to(input.dtype)


@operator("convolution_backward_overrideable")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if input.dim() == 3:
        x, w, b = convolution_backward(
            _with_height(grad_output),
            _with_height(input),
            _with_height(weight),
            [1, *stride],
            [0, *padding],
            [1, *dilation],
            transposed,
            [0, *output_padding],
            groups,
            output_mask,
        )
        return x if x is None else x.squeeze(-2), w if w is None else w.squeeze(-2), b
    axes = [0, *range(2, input.dim())]
    bias = grad_output.sum(axes) if output_mask[2] else None
    images = taps = None
    if output_mask[0]:
        images = _image_gradient(grad_output, input, weight, stride, padding, dilation, transposed, groups)
    if output_mask[1]:
        source, seen = (grad_output, input) if transposed else (input, grad_output)
        taps = _weight_gradient(source, seen, weight, stride, padding, dilation, groups)
    return images, taps, bias


def _image_gradient(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    groups: int,
) -> Tensor:
    if transposed:
        found = _plain(grad, weight, stride, padding, dilation, groups)
        return found[tuple(slice(0, side) for side in x.shape)].to(x.dtype)
    more = []
    for place, (step, pads, spread) in enumerate(zip(stride, padding, dilation, strict=True)):
        reached = (grad.shape[place + 2] - 1) * step + spread * (weight.shape[place + 2] - 1) + 1 - 2 * pads
        more.append(x.shape[place + 2] - reached)
    beyond = [max(extra - step + 1, 0) for extra, step in zip(more, stride, strict=True)]
    kept = [extra - over for extra, over in zip(more, beyond, strict=True)]
    found = _transposed(grad, weight, stride, padding, dilation, kept, groups).to(x.dtype)
    if any(beyond):  # pixels behind the last window
        found = torch.nn.functional.pad(found, [side for over in reversed(beyond) for side in (0, over)])
    return found


def _weight_gradient(
    x: Tensor,
    grad: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Of each tap, the product of the pixels that it saw with the gradients there."""
    sides = len(stride)
    pads = [side for extra in reversed(list(padding)) for side in (extra, extra)]
    padded = torch.nn.functional.pad(x, pads) if any(padding) else x
    count, outputs = padded.shape[1] // groups, grad.shape[1] // groups
    last = grad.movedim(1, -1).reshape(-1, groups, outputs).permute(1, 0, 2).contiguous()
    taps = []
    for number in range(weight[0, 0].numel()):
        place, part = number, [slice(None), slice(None)]
        spots: list[int] = []
        for side in reversed(weight.shape[2:]):
            spots.insert(0, place % side)
            place //= side
        for axis in range(sides):
            first = spots[axis] * dilation[axis]
            part.append(slice(first, first + (grad.shape[axis + 2] - 1) * stride[axis] + 1, stride[axis]))
        seen = padded[tuple(part)].movedim(1, -1).reshape(-1, groups, count).permute(1, 2, 0).contiguous()
        taps.append(torch.bmm(seen.float(), last.float()) if seen.dtype is torch.float32 else torch.bmm(seen, last))
    found = torch.stack(taps, -1).permute(0, 2, 1, 3)
    return found.reshape(weight.shape).contiguous().to(weight.dtype)
