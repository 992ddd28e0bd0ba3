"""What operators on images ask of their arguments: windows, steps, padding, channels last."""

from __future__ import annotations

from operator import index

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.errors import ShapeMismatch
from sley.runtime.kernels.conv.problem import Axis

Pair = int | tuple[int, int]
Padding = int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]


def axes_of(
    image: tuple[int, ...], window: tuple[int, ...], stride: Pair, padding: Padding, dilation: Pair
) -> tuple[Axis, Axis]:
    """Along y and x, for a window of so many taps. Raises ``BadRequest``, ``ShapeMismatch``."""
    if len(image) != 4 or 0 in image:
        raise ShapeMismatch(f"x has shape {image}; images are [images, y, x, channels], each at least 1")
    strides, dilations = pair_of("stride", stride, 1), pair_of("dilation", dilation, 1)
    sides = padding if isinstance(padding, tuple) else (padding, padding)
    if len(sides) != 2:
        raise BadRequest(f"padding is {padding!r}; give one number, (y, x), or ((top, bottom), (left, right))")
    found = []
    for name, size, taps, step, spread, pad in zip("yx", image[1:3], window, strides, dilations, sides, strict=True):
        before, behind = pair_of("padding", pad, 0)
        wide, padded = (taps - 1) * spread + 1, size + before + behind
        if wide > padded:
            raise ShapeMismatch(
                f"the window is {wide} pixels along {name}, the image with its padding {padded}: pad it by at least "
                f"{wide - padded} more"
            )
        found.append(Axis(size, (padded - wide) // step + 1, taps, step, spread, before))
    return found[0], found[1]


def channels_of(image: tuple[int, ...], weights: tuple[int, ...], groups: int) -> tuple[int, int]:
    """Of the input and the output. Raises ``ShapeMismatch``."""
    channels, outputs = image[3], weights[3]
    if not isinstance(groups, int) or groups < 1 or channels % groups or outputs % groups:
        raise ShapeMismatch(
            f"groups is {groups!r}; it must be a positive number that divides the {channels} channels of x and the "
            f"{outputs} outputs of w"
        )
    if weights[2] * groups != channels:
        raise ShapeMismatch(
            f"w has {weights[2]} channels and x {channels} in {groups} groups: it must have {channels // groups}"
        )
    return channels, outputs


def pair_of(name: str, value: object, least: int) -> tuple[int, int]:
    """One number, or those along y and x. Raises ``BadRequest``."""
    pair = value if isinstance(value, tuple) else (value, value)
    try:
        first, second = (index(number) for number in pair)
    except (TypeError, ValueError):
        raise BadRequest(f"{name} is {value!r}; give an integer, or a tuple of two") from None
    if min(first, second) < least:
        raise BadRequest(f"{name} is {value!r}; it must be at least {least}")
    return first, second


def check_dense(name: str, array: Buffer) -> None:
    """Raises ``BadRequest`` unless the channels of a pixel follow each other."""
    if array.shape[3] > 1 and array.strides[3] != array.dtype.itemsize:
        raise BadRequest(
            f"{name} is {array!r}; the channels of a pixel must be contiguous (channels last): use a copy, "
            f"device.array({name}.numpy())"
        )
