"""A planned convolution to a stream."""

from sley.runtime.device.arguments import Argument
from sley.runtime.device.stream import Stream
from sley.runtime.kernels.conv.kernel import conv_program
from sley.runtime.kernels.conv.plan import plan
from sley.runtime.kernels.conv.problem import Conv


def launch(stream: Stream, problem: Conv, x: Argument, w: Argument, out: Argument, *more: Argument) -> None:
    """``more``: the bias, the scale, the residual and its factor, if the epilogue has them."""
    config = stream.device.config
    tiling = plan(config, problem).tiling
    stream.launch(conv_program(config, problem, tiling), [x, w, out, *more], tiling.grid, tiling.gang)
