"""What pooling computes."""

from dataclasses import dataclass

from sley.abi.config import ChipConfig
from sley.abi.types import ElementType
from sley.abi.vector.operations import BinaryOp
from sley.runtime.kernels.conv.problem import Conv

_FILLS = {ElementType.INT8: 0x80808080, ElementType.BF16: 0xFF80FF80}
"""The least values, -128 and minus infinity."""


@dataclass(frozen=True)
class Pool(Conv):
    """Pooling of ``batch`` images: the axes, channels and strides of a convolution, whose outputs are the channels.

    ``op`` joins the taps: MAX or ADD; sums are multiplied by a factor, an argument of the program.
    """

    op: BinaryOp = BinaryOp.MAX

    @property
    def average(self) -> bool:
        return self.op is BinaryOp.ADD

    @property
    def fill(self) -> int:
        """What is outside of the image: the least value, or zero for sums."""
        return 0 if self.average else _FILLS[self.dtype]

    @property
    def words(self) -> ElementType:
        """The type in which taps are joined."""
        return ElementType.FP32 if self.dtype is ElementType.BF16 else ElementType.INT32

    def halves(self, config: ChipConfig) -> int:
        """Parts of a scratchpad row that the lanes take one after the other."""
        return config.lane_elements(self.dtype)
