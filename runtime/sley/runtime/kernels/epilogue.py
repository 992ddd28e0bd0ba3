"""What happens to the sums of a product or a convolution before they are stored."""

from dataclasses import dataclass

from sley.abi.types import WORD_TYPES, ElementType


@dataclass(frozen=True)
class Epilogue:
    """What happens to a sum before it is stored as ``result``: ``bias`` adds the value of its column, ``scale``
    multiplies in fp32, by the value of its column if ``scale_rows``, ``beta`` adds the former contents of the result
    times a factor, ``relu`` clips below zero; in this order. ``residual``, of convolutions to int8: an array of int8
    like the result is multiplied by a factor and added last. ``zero_point``, of results of int8 and uint8: a number is
    added to what is rounded."""

    result: ElementType = ElementType.INT32
    bias: bool = False
    scale: bool = False
    relu: bool = False
    beta: bool = False
    scale_rows: bool = False
    residual: bool = False
    zero_point: bool = False

    def __post_init__(self) -> None:
        if self.zero_point and (not self.scale or self.residual or self.beta or self.result.bits != 8):
            raise ValueError("zero_point is added to scaled sums that become int8 or uint8, without residual and beta")
        if self.residual and (self.result is not ElementType.INT8 or not self.scale):
            raise ValueError("residual is added to sums in fp32 that become int8: set scale, and a result of int8")
        if self.scale_rows and not self.scale:
            raise ValueError("scale_rows is set without scale: a row of factors is one kind of scale, set both")

    @property
    def value_rows(self) -> int:
        """Rows of values, one for each column, that it takes: the bias, and the scale."""
        return self.bias + self.scale_rows

    @property
    def row_names(self) -> tuple[str, ...]:
        """What these rows are, in the order in which they lie."""
        return (*(("bias",) if self.bias else ()), *(("scale",) if self.scale_rows else ()))

    @property
    def vector(self) -> bool:
        """Whether the vector unit has to touch the sums; otherwise they are stored as they are."""
        return self.bias or self.scale or self.relu or self.beta or self.narrow

    @property
    def narrow(self) -> bool:
        """Whether results are made in the scratchpad, not in place in the accumulators."""
        return self.result not in WORD_TYPES


PLAIN = Epilogue()
"""Sums as they are."""
