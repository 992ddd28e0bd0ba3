"""The transposed convolution of three dimensions; that of two is in ``convolutions``."""

from __future__ import annotations

from numpy.typing import ArrayLike, DTypeLike

from sley.driver import BadRequest
from sley.runtime.device.buffer import Buffer
from sley.runtime.device.stream import Stream
from sley.runtime.errors import ShapeMismatch
from sley.runtime.nn.convolutions import Weights, conv3d, flipped, spaced_out
from sley.runtime.nn.shapes import pad
from sley.runtime.nn.weights import host

Sides = int | tuple[int, int, int]


def conv_transpose3d(
    x: Buffer,
    w: Weights,
    *,
    stride: Sides = 1,
    padding: Sides = 0,
    output_padding: Sides = 0,
    dilation: Sides = 1,
    groups: int = 1,
    bias: Buffer | ArrayLike | None = None,
    scale: float | Buffer | ArrayLike | None = None,
    relu: bool = False,
    dtype: DTypeLike | None = None,
    precision: str = "highest",
    stream: Stream | None = None,
) -> Buffer:
    """The gradient of ``conv3d`` with weights ``w`` for its images: x [images, z, y, x, outputs of w] to
    [images, z, y, x, channels]; parameters as those of ``conv_transpose2d``, results as those of ``conv3d``.
    """
    values = host(w)
    if x.ndim != 5 or values.ndim != 5 or values.shape[4] != x.shape[4]:
        raise ShapeMismatch(
            f"conv_transpose3d of x of shape {x.shape} and w of shape {values.shape}; both have 5 axes, and w as many "
            "outputs as x has channels"
        )
    steps, pads, more, spreads = (
        (value,) * 3 if isinstance(value, int) else value for value in (stride, padding, output_padding, dilation)
    )
    if min(*steps, *spreads) < 1 or min(*pads, *more) < 0:
        raise BadRequest(f"stride {stride}, dilation {dilation}, padding {padding}, output_padding {output_padding}")
    wide = [(taps - 1) * spread for taps, spread in zip(values.shape[:3], spreads, strict=True)]
    edges = [(size - cut, size - cut + extra) for size, cut, extra in zip(wide, pads, more, strict=True)]
    image = spaced_out(x, steps, stream)
    inside = [
        slice(max(-before, 0), size - max(-behind, 0))
        for (before, behind), size in zip(edges, image.shape[1:4], strict=True)
    ]
    kept = [(max(before, 0), max(behind, 0)) for before, behind in edges]
    padded = pad(image[(slice(None), *inside)], [*kept, (0, 0)], stream=stream)
    return conv3d(
        padded,
        flipped(values, groups),
        dilation=spreads,
        groups=groups,
        bias=bias,
        scale=scale,
        relu=relu,
        dtype=dtype,
        precision=precision,
        stream=stream,
    )
