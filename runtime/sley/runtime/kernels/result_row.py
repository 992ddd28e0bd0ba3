"""Where the results of a macro tile lie: in two slots of the scratchpad, as of the sums, or in place of these."""

from typing import Protocol

from sley.runtime.assembler.kernel import KernelBuilder
from sley.runtime.assembler.operands import Register


class ResultPlace(Protocol):
    """Rows of a half of the accumulators, and of the scratchpad the first row of slots and from one to the next."""

    @property
    def half(self) -> int: ...

    @property
    def out_base(self) -> int: ...

    @property
    def out_step(self) -> int: ...


def result_row(k: KernelBuilder, rd: Register, half: Register, place: ResultPlace, narrow: bool) -> None:
    """rd = the first row of the results whose sums begin in accumulator row ``half``; ``narrow``: in the scratchpad."""
    if not narrow:
        k.mov(rd, half)
        return
    k.shr(rd, half, place.half.bit_length() - 1)
    k.mul(rd, rd, place.out_step)
    k.add(rd, rd, place.out_base)
