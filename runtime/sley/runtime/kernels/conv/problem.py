"""What a convolution computes: its axes, channels, element types, epilogue, and where arrays lie in memory."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.runtime.kernels.epilogue import PLAIN, Epilogue


@dataclass(frozen=True)
class Axis:
    """One axis of the image: ``size`` pixels of the input, ``out`` of the output, ``taps`` of the window.

    Output o adds, for each tap t, input ``o * stride - pad + t * dilation``; outside of the input is a constant.
    """

    size: int
    out: int
    taps: int
    stride: int = 1
    dilation: int = 1
    pad: int = 0

    @property
    def window(self) -> int:
        """Input pixels from the first tap to the last one."""
        return (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True)
class Steps:
    """Bytes from one thing to the next in memory. Channels of a pixel are contiguous.

    ``pixel`` and ``row`` of the input, ``out_pixel`` and ``out_row`` of the output; from image to image of the batch
    those of the input, the output, the packed weights, and the values of bias and scale.
    """

    pixel: int
    row: int
    out_pixel: int
    out_row: int
    image: int = 0
    out_image: int = 0
    weights: int = 0
    values: int = 0


@dataclass(frozen=True)
class Conv:
    """A dense convolution of ``batch`` images: each output channel sees all ``channels`` of the input.

    Groups and few channels are mapped to such problems (``mapping.py``), with weights that are zero: ``products`` of a
    sum are others. ``outside``: what pixels outside of the image are, other than 0 of int8 alone.
    """

    y: Axis
    x: Axis
    channels: int
    outputs: int
    products: int
    steps: Steps
    dtype: ElementType = ElementType.INT8
    epilogue: Epilogue = PLAIN
    batch: int = 1
    outside: int = 0

    @property
    def taps(self) -> int:
        return self.y.taps * self.x.taps

    @property
    def bias_bound(self) -> int | None:
        """The largest absolute value of a bias whose sums cannot wrap in int32; ``None`` for sums in fp32."""
        return (1 << 31) - 1 - self.products * 128 * 128 if self.dtype is ElementType.INT8 else None

    def folds(self, config: ChipConfig) -> int:
        """Passes through the array that the channels of one pixel take."""
        return -(-self.channels // config.fold_depth(self.dtype))
