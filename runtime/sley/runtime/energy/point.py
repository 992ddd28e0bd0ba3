"""Operating points: how fast and at which voltage a chip runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sley.driver import BadRequest


@dataclass(frozen=True)
class OperatingPoint:
    """A frequency, a voltage, and what leaks.

    Dynamic energy on the chip scales with the square of ``volts`` over the supply that the table was published for;
    that of DRAM, which has a supply of its own, does not. Leakage scales with ``volts``: its current does not change.

    Attributes
    ----------
    hertz: of the chip's clock. volts: of the chip; the supply of the table if it is ``None``. leakage: watts of the
    whole chip at the supply of the table.

    Raises ``BadRequest`` for what is not above zero; ``leakage`` may be zero.
    """

    hertz: float = 1e9
    volts: float | None = None
    leakage: float = 0.0

    def __post_init__(self) -> None:
        for name, value, may_be_zero in (
            ("hertz", self.hertz, False),
            ("volts", self.volts, False),
            ("leakage", self.leakage, True),
        ):
            if value is None:
                continue
            if not 0 <= value < math.inf or (value == 0 and not may_be_zero):
                raise BadRequest(f"{name} is {value!r}; it must be {'at least' if may_be_zero else 'above'} zero")

    def share_of(self, supply: float) -> float:
        """Its voltage, in parts of a supply."""
        return 1.0 if self.volts is None else self.volts / supply
